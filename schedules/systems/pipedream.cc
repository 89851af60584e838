// SPDX-License-Identifier: Apache-2.0
// 1F1B without flush: PipeDream (Narayanan et al., 2019, section 3.3) updates
// after every microbatch and stashes the weights that a forward read; its
// 1F1B-RR runs a stage on several replicas in turn. PipeDream-2BW (Narayanan et
// al., 2021, section 3.1) updates once per batch, and all stages read the
// version before the newest that the batch could see.
#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kPipeDream = "pipedream";
constexpr absl::string_view kTwoBufferedWeights = "pipedream-2bw";

constexpr absl::string_view kReplicas = "replicas";
constexpr absl::string_view kVerticalSync = "vertical-sync";

// There is one route per combination of replicas used by some microbatch.
constexpr int64_t kMaxRoutes = 10'000;

// Returns the number of ranks of each stage, by default one.
std::vector<int> ReplicasOf(const ScheduleSpec& spec, Problems* problems) {
  std::vector<int> replicas =
      IntsOption(spec, kReplicas, 1, kMaxRanks, problems);
  if (replicas.empty()) replicas.assign(spec.num_ranks, 1);
  return replicas;
}

bool SyncsVertically(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, kVerticalSync, {"no", "yes"}, problems) == "yes";
}

// Returns the least common multiple, at most kMaxRoutes + 1.
int64_t NumRoutes(const std::vector<int>& replicas) {
  int64_t routes = 1;
  for (int count : replicas) {
    routes = std::min(std::lcm(routes, int64_t{count}), kMaxRoutes + 1);
  }
  return routes;
}

// Requires: the counts of the spec are within their limits.
void CheckReplicas(const ScheduleSpec& spec, Problems* problems) {
  const std::vector<int> replicas = ReplicasOf(spec, problems);
  const int64_t num_ranks =
      std::accumulate(replicas.begin(), replicas.end(), int64_t{0});
  const int most = *std::max_element(replicas.begin(), replicas.end());
  const int least = *std::min_element(replicas.begin(), replicas.end());
  const int64_t total = int64_t{spec.num_microbatches} * spec.num_batches;
  if (num_ranks != spec.num_ranks) {
    problems->Add(kReplicas, absl::StrCat("is ", absl::StrJoin(replicas, "-"),
                                          ", which sums to ", num_ranks,
                                          " ranks, expected ", spec.num_ranks,
                                          " (pipeline)"));
  }
  if (NumRoutes(replicas) > kMaxRoutes) {
    problems->Add(kReplicas,
                  absl::StrCat("leads to more than ", kMaxRoutes,
                               " combinations of replicas, expected numbers "
                               "with a smaller least common multiple"));
  }
  if (most > total) {
    problems->Add(kReplicas, absl::StrCat("gives a stage ", most,
                                          " ranks, expected at most one for "
                                          "each of the ",
                                          total, " microbatches"));
  }
  if (SyncsVertically(spec, problems) && least != most) {
    problems->Add(kVerticalSync,
                  "is yes, expected no, as stages with different numbers of "
                  "replicas update at different times");
  }
}

absl::Status CheckPipeDream(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kPipeDream, spec);
  if (problems.empty()) CheckReplicas(spec, &problems);
  return problems.ToStatus();
}

absl::Status Check2BW(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kTwoBufferedWeights, spec);
  if (spec.num_microbatches >= 1 && spec.num_microbatches < spec.num_ranks) {
    problems.Add("num_microbatches",
                 absl::StrCat("is ", spec.num_microbatches,
                              ", expected at least pipeline, which is ",
                              spec.num_ranks));
  }
  return problems.ToStatus();
}

// Generates 1F1B-RR (section 3.2): the ranks are the replicas of stage 0, then
// those of stage 1, and so on; microbatch k runs on replica k mod r of a stage.
Schedule RoundRobin(const ScheduleSpec& spec,
                    const std::vector<int>& replicas) {
  Schedule schedule = EmptySchedule(kPipeDream, spec);
  schedule.num_stages = static_cast<int>(replicas.size());
  schedule.routes.assign(NumRoutes(replicas),
                         std::vector<int>(schedule.num_stages));
  const int total = schedule.total_microbatches();
  int first_rank = 0;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const int count = replicas[stage];
    for (int route = 0; route < schedule.num_routes(); ++route) {
      schedule.routes[route][stage] = first_rank + route % count;
    }
    // As in the runtime of the paper's artifact; p-1-s without replicas.
    const int num_warmup = (spec.num_ranks - 1 - first_rank) / count;
    for (int replica = 0; replica < count; ++replica) {
      std::vector<Action>& actions =
          schedule.rank_actions[first_rank + replica];
      actions = OneFOneB(stage, num_warmup, (total - 1 - replica) / count + 1);
      for (Action& action : actions) {
        action.microbatch = action.microbatch * count + replica;
      }
    }
    first_rank += count;
  }
  return schedule;
}

Schedule GeneratePipeDream(const ScheduleSpec& spec) {
  Problems none(kPipeDream);
  const std::vector<int> replicas = ReplicasOf(spec, &none);
  const bool is_straight = static_cast<int>(replicas.size()) == spec.num_ranks;
  Schedule schedule = is_straight ? OneFOneBSchedule(kPipeDream, spec)
                                  : RoundRobin(spec, replicas);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = 1,
                      .times_replicas = !is_straight,
                      .forward = SyncsVertically(spec, &none)
                                     ? WeightPolicy::ForwardRead::kFirstStage
                                     : WeightPolicy::ForwardRead::kLatest,
                      .backward = WeightPolicy::BackwardRead::kSameAsForward};
  return schedule;
}

Schedule Generate2BW(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kTwoBufferedWeights, spec);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = spec.num_microbatches,
                      .forward = WeightPolicy::ForwardRead::kDelayed,
                      .delay_updates = 1,
                      .backward = WeightPolicy::BackwardRead::kSameAsForward};
  return schedule;
}

}  // namespace

ScheduleKind PipeDreamKind() {
  return {
      .name = kPipeDream,
      .aliases = {"async-1f1b", "1f1b-async", "pipedream-stashing", "1f1b-rr"},
      .paper =
          "Narayanan et al., PipeDream: Generalized Pipeline "
          "Parallelism for DNN Training, SOSP 2019",
      .constraints = "chunks is 1, replicas add up to pipeline",
      .summary =
          "1F1B without flush, update after every microbatch; stage "
          "s of p holds p-s weight versions",
      .flush = false,
      .repeats_microbatches = true,
      .options = {{kReplicas, "one each",
                   "number of ranks of each stage, as in 3-1; these take "
                   "microbatches in turn and average their gradients"},
                  {kVerticalSync, "no",
                   "yes: all stages read the same version as stage 0"}},
      .check = CheckPipeDream,
      .generate = GeneratePipeDream};
}

ScheduleKind PipeDream2BWKind() {
  return {.name = kTwoBufferedWeights,
          .aliases = {"2bw", "double-buffered-weights",
                      "forward-backward-pipelining-no-flushes"},
          .paper =
              "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN "
              "Training, ICML 2021",
          .constraints = "chunks is 1, num_microbatches >= pipeline",
          .summary =
              "1F1B without flush, update after every batch; two weight "
              "versions, delay 1",
          .flush = false,
          .repeats_microbatches = true,
          .check = Check2BW,
          .generate = Generate2BW};
}

}  // namespace weir::schedules
