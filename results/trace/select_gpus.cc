// SPDX-License-Identifier: Apache-2.0
#include "results/trace/select_gpus.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr int kLeftOut = -1;

// Keeps the entries of a column whose index is kept.
template <typename Column>
void Keep(const std::vector<int>& kept, Column* column) {
  if (column->empty()) return;  // an optional column
  Column copy;
  for (const int i : kept) copy.Add(column->Get(i));
  column->Swap(&copy);
}

template <typename Events>
void KeepTimes(const std::vector<int>& kept, Events* events) {
  Keep(kept, events->mutable_start_seconds());
  Keep(kept, events->mutable_end_seconds());
}

template <typename Gpus>
void Renumber(const std::vector<int>& number, Gpus* gpus) {
  for (auto& gpu : *gpus) gpu = static_cast<uint32_t>(number[gpu]);
}

// Returns the indices of the entries whose GPU stays.
template <typename Gpus>
std::vector<int> Kept(const std::vector<int>& number, const Gpus& gpus) {
  std::vector<int> kept;
  for (int i = 0; i < gpus.size(); ++i) {
    if (number[gpus.Get(i)] != kLeftOut) kept.push_back(i);
  }
  return kept;
}

void SelectCopies(const std::vector<int>& number, HostCopies* copies) {
  const auto kept = Kept(number, copies->gpu());
  Keep(kept, copies->mutable_gpu());
  Keep(kept, copies->mutable_op());
  Keep(kept, copies->mutable_stage());
  Keep(kept, copies->mutable_microbatch());
  Keep(kept, copies->mutable_block());
  Keep(kept, copies->mutable_bytes());
  KeepTimes(kept, copies);
  Renumber(number, copies->mutable_gpu());
}

void SelectEvents(const std::vector<int>& number, Timeline* timeline) {
  {
    auto& actions = *timeline->mutable_actions();
    const auto kept = Kept(number, actions.gpu());
    Keep(kept, actions.mutable_gpu());
    Keep(kept, actions.mutable_op());
    Keep(kept, actions.mutable_stage());
    Keep(kept, actions.mutable_microbatch());
    Keep(kept, actions.mutable_num_microbatches());
    Keep(kept, actions.mutable_weight_version());
    KeepTimes(kept, &actions);
    Renumber(number, actions.mutable_gpu());
  }
  {
    auto& transfers = *timeline->mutable_transfers();
    std::vector<int> kept;
    for (const int i : Kept(number, transfers.from_gpu())) {
      if (number[transfers.to_gpu(i)] != kLeftOut) kept.push_back(i);
    }
    Keep(kept, transfers.mutable_from_gpu());
    Keep(kept, transfers.mutable_to_gpu());
    Keep(kept, transfers.mutable_kind());
    Keep(kept, transfers.mutable_stage());
    Keep(kept, transfers.mutable_microbatch());
    Keep(kept, transfers.mutable_bytes());
    Keep(kept, transfers.mutable_ready_seconds());
    KeepTimes(kept, &transfers);
    Renumber(number, transfers.mutable_from_gpu());
    Renumber(number, transfers.mutable_to_gpu());
  }
  {
    auto& collectives = *timeline->mutable_collectives();
    const auto kept = Kept(number, collectives.gpu());
    Keep(kept, collectives.mutable_gpu());
    Keep(kept, collectives.mutable_kind());
    Keep(kept, collectives.mutable_stage());
    Keep(kept, collectives.mutable_microbatch());
    Keep(kept, collectives.mutable_bytes());
    KeepTimes(kept, &collectives);
    Renumber(number, collectives.mutable_gpu());
  }
  {
    auto& memory = *timeline->mutable_memory();
    const auto kept = Kept(number, memory.gpu());
    Keep(kept, memory.mutable_gpu());
    Keep(kept, memory.mutable_seconds());
    Keep(kept, memory.mutable_bytes());
    Renumber(number, memory.mutable_gpu());
  }
  if (!timeline->has_class_memory()) return;
  auto& classes = *timeline->mutable_class_memory();
  const auto kept = Kept(number, classes.gpu());
  Keep(kept, classes.mutable_gpu());
  Keep(kept, classes.mutable_kind());
  Keep(kept, classes.mutable_seconds());
  Keep(kept, classes.mutable_bytes());
  Renumber(number, classes.mutable_gpu());
}

}  // namespace

absl::StatusOr<Result> SelectGpus(const Result& result,
                                  const GpuSelection& selection) {
  if (selection.all()) return result;
  RETURN_IF_ERROR(ValidateTimeline(result.schedule(), result));
  uint32_t num_ranks = 0, num_replicas = 0;
  for (const RankResult& gpu : result.ranks()) {
    num_ranks = std::max(num_ranks, gpu.rank() + 1);
    num_replicas = std::max(num_replicas, gpu.replica() + 1);
  }
  Problems problems("command line");
  if (selection.replica.has_value() && *selection.replica >= num_replicas) {
    problems.Add("--replica",
                 absl::StrCat("is ", *selection.replica, ", expected 0 to ",
                              num_replicas - 1));
  }
  for (const uint32_t rank : selection.ranks) {
    if (rank < num_ranks) continue;
    problems.Add("--ranks",
                 absl::StrCat("has ", rank, ", expected 0 to ", num_ranks - 1));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  Result selected = result;
  selected.clear_ranks();
  std::vector<int> number(result.ranks_size(), kLeftOut);
  for (int i = 0; i < result.ranks_size(); ++i) {
    const RankResult& gpu = result.ranks(i);
    const bool of_replica = !selection.replica.has_value() ||
                            (gpu.replica() == *selection.replica &&
                             gpu.tensor_rank() == selection.tensor_rank);
    const bool of_rank =
        selection.ranks.empty() ||
        std::find(selection.ranks.begin(), selection.ranks.end(), gpu.rank()) !=
            selection.ranks.end();
    if (!of_replica || !of_rank) continue;
    number[i] = selected.ranks_size();
    *selected.add_ranks() = gpu;
  }
  selected.set_busiest_gpu(0);
  SelectEvents(number, selected.mutable_timeline());
  if (selected.has_host_copies()) {
    SelectCopies(number, selected.mutable_host_copies());
  }
  return selected;
}

}  // namespace weir::results
