// SPDX-License-Identifier: Apache-2.0
// What viewers show about a slice: names, categories and bytes.
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "results/pipeline_events.h"
#include "results/trace/trace_events.h"

namespace weir::results {

absl::string_view LaneName(Lane lane) {
  static constexpr std::array<const char*, std::size(kAllLanes)> kNames = {
      "compute",
      "send",
      "receive",
      "tensor collectives",
      "gradient all-reduce",
      "weight all-gather",
      "to host",
      "from host",
      "expert exchange",
      "context exchange",
      "layers to host",
      "layers from host"};
  return kNames[static_cast<size_t>(lane)];
}

absl::string_view LaneCategory(Lane lane) {
  static constexpr std::array<const char*, std::size(kAllLanes)> kCategories = {
      "compute",    "transfer",   "transfer", "collective",
      "collective", "collective", "transfer", "transfer",
      "collective", "collective", "transfer", "transfer"};
  return kCategories[static_cast<size_t>(lane)];
}

std::vector<std::string> GpuNames(const Result& result) {
  std::vector<std::string> names;
  for (const RankResult& rank : result.ranks()) {
    std::string name =
        absl::StrCat("rank ", rank.rank(), " replica ", rank.replica());
    if (result.tensor_parallel() > 1) {
      absl::StrAppend(&name, " tensor ", rank.tensor_rank());
    }
    absl::StrAppend(&name, " (gpu ", rank.gpu(), ")");
    names.push_back(std::move(name));
  }
  return names;
}

void AppendSliceName(const Result& result, const TraceEvents& events,
                     const TraceSlice& slice, std::string* out) {
  const Timeline& timeline = result.timeline();
  const auto& transfers = timeline.transfers();
  const auto gpu_number = [&](uint32_t gpu) {
    return result.ranks(static_cast<int>(gpu)).gpu();
  };
  const int i = static_cast<int>(slice.event);
  const auto sent = [&] {
    return ActionText(events.transfer_op[slice.event], transfers.stage(i),
                      transfers.microbatch(i), 1);
  };
  switch (events.tracks[slice.track].lane) {
    case Lane::kCompute:
    case Lane::kToHost:
    case Lane::kFromHost: {
      const auto& actions = timeline.actions();
      const auto& spans = actions.num_microbatches();
      out->append(ActionText(actions.op(i), actions.stage(i),
                             actions.microbatch(i),
                             spans.empty() ? 1 : spans.Get(i)));
      return;
    }
    case Lane::kSend:
      absl::StrAppend(out, "send ", sent(), " -> gpu ",
                      gpu_number(transfers.to_gpu(i)));
      return;
    case Lane::kReceive:
      absl::StrAppend(out, "recv ", sent(), " <- gpu ",
                      gpu_number(transfers.from_gpu(i)));
      return;
    case Lane::kTensorCollective:
      absl::StrAppend(out, "collective ", timeline.collectives().stage(i),
                      " mb", timeline.collectives().microbatch(i));
      return;
    case Lane::kContextExchange:
      absl::StrAppend(out, "context ", timeline.collectives().stage(i), " mb",
                      timeline.collectives().microbatch(i));
      return;
    case Lane::kExpertExchange:
      absl::StrAppend(out, "experts ", timeline.collectives().stage(i), " mb",
                      timeline.collectives().microbatch(i));
      return;
    case Lane::kGradientReduction:
      absl::StrAppend(out,
                      timeline.collectives().kind(i) ==
                              Timeline::Collectives::TIED_REDUCTION
                          ? "tied embedding "
                          : "all-reduce ",
                      timeline.collectives().stage(i), " u",
                      timeline.collectives().microbatch(i));
      return;
    case Lane::kWeightGather:
      absl::StrAppend(out, "gather ", timeline.collectives().stage(i));
      return;
    case Lane::kLayersToHost:
    case Lane::kLayersFromHost: {
      const HostCopies& copies = result.host_copies();
      absl::StrAppend(
          out,
          ActionText(copies.op(i), copies.stage(i), copies.microbatch(i), 1),
          " block ", copies.block(i));
      return;
    }
  }
}

double SliceBytes(const Result& result, const TraceEvents& events,
                  const TraceSlice& slice) {
  const int i = static_cast<int>(slice.event);
  switch (events.tracks[slice.track].lane) {
    case Lane::kCompute:
    case Lane::kToHost:
    case Lane::kFromHost:
      return -1;
    case Lane::kSend:
    case Lane::kReceive:
      return result.timeline().transfers().bytes(i);
    case Lane::kTensorCollective:
    case Lane::kExpertExchange:
    case Lane::kContextExchange:
    case Lane::kGradientReduction:
    case Lane::kWeightGather:
      return result.timeline().collectives().bytes(i);
    case Lane::kLayersToHost:
    case Lane::kLayersFromHost:
      return result.host_copies().bytes(i);
  }
  return -1;
}

}  // namespace weir::results
