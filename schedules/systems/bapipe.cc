// SPDX-License-Identifier: Apache-2.0
// BaPipe (Zhao et al., 2020, section 3): four orders for four kinds of
// hardware. AS computes and transfers asynchronously. SO is synchronous, with
// transfers overlapped with computation; SNO is synchronous without overlap.
// FBP overlaps forwards with backwards.
#include <algorithm>

#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kAs = "bapipe-as";
constexpr absl::string_view kFbpAs = "bapipe-fbp-as";
constexpr absl::string_view kSno = "bapipe-sno";
constexpr absl::string_view kSo = "bapipe-so";

absl::Status CheckBaPipe(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateOneFOneB(absl::string_view name, const ScheduleSpec& spec) {
  return OneFOneBSchedule(name, spec);
}

// Twice the forwards before the first backward hide the latency of a hop in
// both directions.
Schedule GenerateEager(absl::string_view name, const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(name, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] =
        OneFOneB(rank, 2 * (spec.num_ranks - 1 - rank), spec.num_microbatches);
  }
  return schedule;
}

// Overlaps the backward of every microbatch on stage s with the forward of the
// microbatch that is 2(p-s)-1 later.
Schedule GenerateParallel(absl::string_view name, const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(name, spec);
  const int m = spec.num_microbatches;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const int first = std::min(2 * (spec.num_ranks - rank) - 1, m);
    std::vector<Action>& actions = schedule.rank_actions[rank];
    actions.reserve(2 * static_cast<size_t>(m));
    for (int k = 0; k < first; ++k) actions.push_back({Op::kForward, rank, k});
    for (int k = first; k < m; ++k) {
      actions.push_back({Op::kForward, rank, k, 1, /*overlaps_next=*/true});
      actions.push_back({Op::kBackward, rank, k - first});
    }
    for (int k = m - first; k < m; ++k) {
      actions.push_back({Op::kBackward, rank, k});
    }
  }
  return schedule;
}

// The four kinds differ in their orders and summaries.
template <const absl::string_view& kName,
          Schedule (*generate)(absl::string_view, const ScheduleSpec&)>
ScheduleKind BaPipeKind(absl::string_view alias, absl::string_view summary) {
  return {.name = kName,
          .aliases = {alias},
          .paper =
              "Zhao et al., BaPipe: Exploration of Balanced Pipeline "
              "Parallelism for DNN Training, 2020",
          .constraints = "chunks is 1, num_batches is 1",
          .summary = summary,
          .flush = true,
          .check =
              [](const ScheduleSpec& spec) { return CheckBaPipe(kName, spec); },
          .generate =
              [](const ScheduleSpec& spec) { return generate(kName, spec); }};
}

}  // namespace

ScheduleKind BaPipeAsKind() {
  return BaPipeKind<kAs, GenerateOneFOneB>(
      "1f1b-as",
      "1F1B for hardware that hides transfers, flush; one weight version");
}

ScheduleKind BaPipeFbpAsKind() {
  return BaPipeKind<kFbpAs, GenerateParallel>(
      "fbp-as",
      "every backward overlapped with a forward, flush; stage s of p keeps "
      "2(p-s) "
      "microbatches; one weight version");
}

ScheduleKind BaPipeSnoKind() {
  return BaPipeKind<kSno, GenerateOneFOneB>(
      "1f1b-sno",
      "1F1B without overlapped transfers (simulate with --transfers blocking), "
      "flush; one weight version");
}

ScheduleKind BaPipeSoKind() {
  return BaPipeKind<kSo, GenerateEager>(
      "1f1b-so",
      "1F1B with twice the warm-up to hide "
      "transfers, flush; stage s of p keeps "
      "2(p-s)-1 microbatches; one weight version");
}

}  // namespace weir::schedules
