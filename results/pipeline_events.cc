// SPDX-License-Identifier: Apache-2.0
#include "results/pipeline_events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr int kNotHere = -1;

// Returns the pipeline rank of each GPU; kNotHere for other replicas and tensor
// ranks.
absl::StatusOr<std::vector<int>> RanksOfGpus(absl::string_view label,
                                             const Result& result) {
  std::vector<int> ranks(result.ranks_size(), kNotHere);
  std::vector<int> seen(result.ranks_size(), 0);
  int num_ranks = 0;
  Problems problems(label);
  for (int gpu = 0; gpu < result.ranks_size(); ++gpu) {
    const RankResult& rank = result.ranks(gpu);
    if (rank.replica() != 0 || rank.tensor_rank() != 0) continue;
    const uint32_t number = rank.rank();
    if (number >= seen.size() || seen[number]++ > 0) {
      problems.Add(absl::StrCat("ranks[", gpu, "].rank"),
                   absl::StrCat("is ", number,
                                ", expected each of 0, 1, 2, ... once in "
                                "replica 0"));
      continue;
    }
    ranks[gpu] = static_cast<int>(number);
    num_ranks = std::max(num_ranks, ranks[gpu] + 1);
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (seen[rank] == 0) {
      problems.Add("ranks", absl::StrCat("have no rank ", rank,
                                         " of replica 0, tensor rank 0"));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return ranks;
}

class Reader {
 public:
  Reader(const Result& result, std::vector<int> ranks)
      : in_(result.timeline()), ranks_(std::move(ranks)) {
    for (size_t gpu = 0; gpu < ranks_.size(); ++gpu) {
      if (ranks_[gpu] == kNotHere) continue;
      const auto num_ranks = static_cast<size_t>(ranks_[gpu]) + 1;
      if (out_.gpus.size() < num_ranks) out_.gpus.resize(num_ranks);
      out_.gpus[ranks_[gpu]] = static_cast<int>(gpu);
    }
    out_.ranks.resize(out_.gpus.size());
    out_.collectives.resize(out_.gpus.size());
    out_.makespan_seconds = result.makespan_seconds();
  }

  PipelineEvents Read() && {
    ReadCollectives();
    ReadActions();
    ReadTransfers();
    return std::move(out_);
  }

 private:
  void Reach(double end_seconds) {
    out_.makespan_seconds = std::max(out_.makespan_seconds, end_seconds);
  }

  void ReadCollectives() {
    const auto& columns = in_.collectives();
    for (int i = 0; i < columns.gpu_size(); ++i) {
      const int rank = ranks_[columns.gpu(i)];
      if (rank == kNotHere) continue;
      out_.collectives[rank].push_back(
          {columns.kind(i), columns.stage(i), columns.microbatch(i),
           columns.start_seconds(i), columns.end_seconds(i)});
      Reach(columns.end_seconds(i));
      out_.tied |= columns.kind(i) == Timeline::Collectives::TIED_REDUCTION;
      if (columns.kind(i) != Timeline::Collectives::TENSOR &&
          columns.kind(i) != Timeline::Collectives::EXPERT_EXCHANGE &&
          columns.kind(i) != Timeline::Collectives::CONTEXT_EXCHANGE) {
        continue;
      }
      inside_.emplace(std::tuple(rank, columns.stage(i), columns.microbatch(i),
                                 columns.start_seconds(i)),
                      columns.end_seconds(i));
    }
    for (auto& collectives : out_.collectives) {
      std::stable_sort(collectives.begin(), collectives.end(),
                       [](const auto& a, const auto& b) {
                         return a.start_seconds < b.start_seconds;
                       });
    }
  }

  // Returns the end with the exchange of keys and values after the kernels,
  // then the tensor collective, and the exchange of experts after that.
  double EndOf(int rank, const TimelineAction& action) const {
    double end = action.end_seconds;
    for (int i = 0; i < 3; ++i) {
      const auto next =
          inside_.find(std::tuple(rank, action.stage, action.microbatch, end));
      if (next == inside_.end()) break;
      end = next->second;
    }
    return end;
  }

  void ReadActions() {
    const auto& columns = in_.actions();
    const bool spans = !columns.num_microbatches().empty();
    for (int i = 0; i < columns.gpu_size(); ++i) {
      const int rank = ranks_[columns.gpu(i)];
      if (rank == kNotHere) continue;
      TimelineAction action = {columns.op(i),
                               columns.stage(i),
                               columns.microbatch(i),
                               spans ? columns.num_microbatches(i) : 1,
                               columns.start_seconds(i),
                               columns.end_seconds(i)};
      if (action.op < Timeline::Actions::OPTIMIZER_STEP)
        action.end_seconds = EndOf(rank, action);
      Reach(action.end_seconds);
      if (action.op < Timeline::Actions::BACKWARD_WEIGHT) {
        made_.emplace(std::tuple(rank, action.op != Timeline::Actions::FORWARD,
                                 action.stage, action.microbatch),
                      action.end_seconds);
      }
      out_.ranks[rank].push_back(action);
    }
    for (auto& actions : out_.ranks) {
      std::stable_sort(actions.begin(), actions.end(),
                       [](const auto& a, const auto& b) {
                         return std::tie(a.start_seconds, a.end_seconds) <
                                std::tie(b.start_seconds, b.end_seconds);
                       });
    }
  }

  void ReadTransfers() {
    const auto& columns = in_.transfers();
    for (int i = 0; i < columns.from_gpu_size(); ++i) {
      TimelineTransfer transfer = {
          ranks_[columns.from_gpu(i)],
          ranks_[columns.to_gpu(i)],
          columns.kind(i) == Timeline::Transfers::GRADIENT,
          columns.stage(i),
          columns.microbatch(i),
          columns.bytes(i),
          columns.start_seconds(i),
          columns.start_seconds(i),
          columns.end_seconds(i)};
      if (transfer.from_rank == kNotHere || transfer.to_rank == kNotHere) {
        continue;
      }
      Reach(transfer.end_seconds);
      const auto made =
          made_.find(std::tuple(transfer.from_rank, transfer.gradient,
                                transfer.stage, transfer.microbatch));
      if (!columns.ready_seconds().empty()) {
        transfer.ready_seconds = columns.ready_seconds(i);
      } else if (made != made_.end()) {
        transfer.ready_seconds = made->second;
      }
      transfer.ready_seconds =
          std::min(transfer.ready_seconds, transfer.start_seconds);
      out_.transfers.push_back(transfer);
    }
  }

  const Timeline& in_;
  const std::vector<int> ranks_;
  PipelineEvents out_;
  // [rank, stage, microbatch, start seconds]: end of the collective inside the
  // pass, in seconds.
  std::map<std::tuple<int, int32_t, int32_t, double>, double> inside_;
  // [rank, gradient, stage, microbatch]: end of the pass that computes the
  // activation or gradient, in seconds.
  absl::flat_hash_map<std::tuple<int, bool, int32_t, int32_t>, double> made_;
};

}  // namespace

std::string ActionText(Timeline::Actions::Op op, int32_t stage,
                       int32_t microbatch, uint32_t num_microbatches) {
  static constexpr const char* kLetters[Timeline::Actions::Op_ARRAYSIZE] = {
      "F", "B", "I", "W", " step u", "O", "R"};
  std::string text = absl::StrCat(stage, kLetters[op], microbatch);
  if (num_microbatches > 1) {
    absl::StrAppend(&text, "-", int64_t{microbatch} + num_microbatches - 1);
  }
  return text;
}

std::string ActionText(const TimelineAction& action) {
  return ActionText(action.op, action.stage, action.microbatch,
                    action.num_microbatches);
}

absl::StatusOr<PipelineEvents> PipelineEventsOf(absl::string_view label,
                                                const Result& result) {
  if (!result.has_timeline()) {
    return absl::FailedPreconditionError(absl::StrCat(
        label, ": has no timeline, expected a result written by --out"));
  }
  RETURN_IF_ERROR(ValidateTimeline(label, result));
  if (result.timeline().from_seconds() > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        label, ": the timeline begins at ", result.timeline().from_seconds(),
        " s: ", result.num_batches(),
        " batches were simulated to find the steady state, and the first ones "
        "are not in the timeline; simulate with --batches N, with N as in the "
        "other result"));
  }
  ASSIGN_OR_RETURN(std::vector<int> ranks, RanksOfGpus(label, result));
  return Reader(result, std::move(ranks)).Read();
}

}  // namespace weir::results
