// SPDX-License-Identifier: Apache-2.0
// OptPipe (Li et al., 2025): the order and the offloads that make a batch
// shortest under a memory limit. The paper's mixed-integer program starts from
// a greedy schedule, AdaOffload; this is a greedy schedule, the best of many,
// and for small shapes nearly always an optimum
// (tests/schedules/optpipe_test.cc).
#include <utility>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/offload_search.h"

namespace weir {
namespace {

constexpr absl::string_view kName = "optpipe";

double MemoryLimit(const ScheduleSpec& spec, Problems* problems) {
  return NumberOption(spec, "memory-limit", spec.num_ranks, 1, kMaxActions,
                      problems);
}

bool MayOffload(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, "offload", {"auto", "never"}, problems) == "auto";
}

// Sums and ratios of costs in this range are numbers.
constexpr double kLargestCost = 1e100;

void CheckCosts(const ScheduleSpec& spec, Problems* problems) {
  const PassCosts& costs = spec.costs;
  problems->CheckRange("costs.hop", costs.hop, 0, kLargestCost);
  const size_t num_stages = costs.stages.size();
  if (num_stages > 1 && num_stages != static_cast<size_t>(spec.num_ranks)) {
    problems->Add("costs.stages", absl::StrCat("has ", num_stages,
                                               " stages, expected none, 1 or ",
                                               spec.num_ranks));
  }
  for (size_t s = 0; s < num_stages; ++s) {
    const StagePassCosts& stage = costs.stages[s];
    const auto check = [&](absl::string_view field, double cost,
                           double low = 0) {
      problems->CheckRange(absl::StrCat("costs.stages[", s, "].", field), cost,
                           low, kLargestCost);
    };
    check("forward", stage.forward);
    check("backward_input", stage.backward_input);
    check("backward_weight", stage.backward_weight);
    check("backward", stage.fused_backward());
    check("offload", stage.offload);
    check("weight_gradient_inputs", stage.weight_gradient_inputs);
    check("activation", stage.activation, 1 / kLargestCost);
  }
}

absl::Status Check(const ScheduleSpec& spec) {
  Problems problems(kName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckCosts(spec, &problems);
  MemoryLimit(spec, &problems);
  MayOffload(spec, &problems);
  return problems.ToStatus();
}

Schedule Generate(const ScheduleSpec& spec) {
  Problems none(kName);  // Check has seen them
  OffloadOrder order =
      FastestOrder(spec, MemoryLimit(spec, &none), MayOffload(spec, &none));
  Schedule schedule = EmptySchedule(kName, spec);
  schedule.rank_actions = std::move(order.rank_actions);
  schedule.resident_activations = order.resident_activations;
  return schedule;
}

}  // namespace

ScheduleKind OptPipeKind() {
  return {.name = kName,
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
          .uses_costs = true,
          .options = {{"memory-limit", "num_ranks",
                       "microbatches whose activations a rank may hold"},
                      {"offload", "auto",
                       "auto or never: what the limit costs without"}},
          .check = Check,
          .generate = Generate};
}

}  // namespace weir
