// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/zero_bubble_costs.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "schedules/options.h"

namespace weir::schedules {
namespace {

// Small enough for sums over the largest schedule to be finite.
constexpr double kLargestCost = 1e200;

}  // namespace

void CheckTwoChunks(const ScheduleSpec& spec, Problems* problems) {
  if (spec.num_chunks == 2) return;
  problems->Add(
      "chunks",
      absl::StrCat(
          "is ", spec.num_chunks,
          ", expected 2: a rank holds one stage in each direction of the V"));
}

void CheckCosts(const ScheduleSpec& spec, Problems* problems) {
  const size_t num_stages =
      static_cast<size_t>(spec.num_ranks) * spec.num_chunks;
  const size_t given = spec.costs.stages.size();
  if (given > 1 && given != num_stages) {
    problems->Add("costs.stages", absl::StrCat("has ", given, ", expected ",
                                               num_stages, ", one or none"));
  }
  problems->CheckRange("costs.hop", spec.costs.hop, 0, kLargestCost);
  for (size_t stage = 0; stage < given; ++stage) {
    const StagePassCosts& costs = spec.costs.stages[stage];
    const auto check = [&](absl::string_view field, double value) {
      problems->CheckRange(absl::StrCat("costs.stages[", stage, "].", field),
                           value, 0, kLargestCost);
    };
    check("forward", costs.forward);
    check("backward_input", costs.backward_input);
    check("backward_weight", costs.backward_weight);
    check("backward", costs.fused_backward());
    check("offload", costs.offload);
    check("activation", costs.activation);
    check("weight_gradient_inputs", costs.weight_gradient_inputs);
  }
}

double MemoryLimit(const ScheduleSpec& spec, double standard, double lowest,
                   Problems* problems) {
  return NumberOption(spec, kMemoryLimit, standard, lowest,
                      std::numeric_limits<double>::max(), problems);
}

}  // namespace weir::schedules
