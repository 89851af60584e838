// SPDX-License-Identifier: Apache-2.0
// OptPipe (Li et al., 2025): the order and the offloads with the shortest batch
// under a memory limit. The paper solves a mixed-integer program that starts
// from a greedy schedule, AdaOffload. This is the best of many greedy
// schedules, which is nearly always optimal for small shapes
// (tests/schedules/optpipe_test.cc).
#include <utility>

#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/offload_search.h"
#include "schedules/systems/zero_bubble_costs.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kOptPipeName = "optpipe";

bool MayOffload(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, "offload", {"auto", "never"}, problems) == "auto";
}

double Limit(const ScheduleSpec& spec, Problems* problems) {
  return MemoryLimit(spec, spec.num_ranks, 1, problems);
}

absl::Status CheckOptPipe(const ScheduleSpec& spec) {
  Problems problems(kOptPipeName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckCosts(spec, &problems);
  Limit(spec, &problems);
  MayOffload(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateOptPipe(const ScheduleSpec& spec) {
  Problems none(kOptPipeName);  // reported by Check
  OffloadOrder order =
      FastestOrder(spec, Limit(spec, &none), MayOffload(spec, &none));
  Schedule schedule = EmptySchedule(kOptPipeName, spec);
  schedule.rank_actions = std::move(order.rank_actions);
  schedule.resident_activations = order.resident_activations;
  return schedule;
}

}  // namespace

ScheduleKind OptPipeKind() {
  return {
      .name = kOptPipeName,
      .aliases = {"adaoffload"},
      .paper =
          "Li et al., OptPipe: Memory- and Scheduling-Optimized "
          "Pipeline Parallelism for LLM Training, arXiv 2510.05186, "
          "2025",
      .constraints = "chunks is 1, num_batches is 1",
      .summary =
          "offloads activations to the host under a memory limit; "
          "one weight version",
      .flush = true,
      .splits_backward = true,
      .uses_costs = true,
      .options =
          {{kMemoryLimit, "pipeline", kMemoryLimitSummary},
           {"offload", "auto",
            "auto, or never to show the cost of the limit without offloads"}},
      .check = CheckOptPipe,
      .generate = GenerateOptPipe};
}

}  // namespace weir::schedules
