// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_schedule.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/options.h"

namespace weir::fuzz {
namespace {

constexpr int kMostScheduleTries = 12;

// Returns a number or word that some kind accepts for the option.
std::string ValueOf(absl::string_view option, int num_ranks, Choices* choices) {
  if (option == "pipelines") return absl::StrCat(2 * choices->Int(1, 3));
  if (option == "memory-limit") {
    return choices->OneIn(4) ? "unlimited"
                             : absl::StrCat(choices->Int(1, 3 * num_ranks),
                                            choices->OneIn(4) ? ".5" : "");
  }
  if (option == "annealing") return absl::StrCat(choices->Int(0, 1000));
  if (option == "replicas") {
    return choices->Of<std::string>({"3-1", "1-1", "2-2", "2-1-1", "1"});
  }
  if (option == "concatenation") {
    return choices->Of<std::string>(
        {"direct", "forward-doubling", "backward-halving"});
  }
  if (option == "mitigation") {
    return choices->Of<std::string>(
        {"none", "spike-compensation", "linear-prediction"});
  }
  if (option == "correction") return choices->OneIn(2) ? "t2" : "none";
  if (option == "order") return choices->OneIn(2) ? "cycle" : "1f1b";
  if (option == "ahead") {
    return choices->OneIn(2) ? "microbatch" : "minibatch";
  }
  if (option == "backward-order") {
    return choices->OneIn(2) ? "reverse" : "forward";
  }
  if (option == "offload") return choices->OneIn(2) ? "auto" : "never";
  if (option == "backward-p2") return choices->OneIn(2) ? "idle" : "end";
  return choices->OneIn(2) ? "yes" : "no";
}

schedules::PassCosts GenerateCosts(int num_stages, Choices* choices) {
  schedules::PassCosts costs;
  if (choices->OneIn(2)) return costs;
  for (int s = 0; s < num_stages; ++s) {
    schedules::StagePassCosts& stage = costs.stages.emplace_back();
    stage.forward = choices->Real(0.1, 3);
    stage.backward_input = choices->Real(0.1, 3);
    stage.backward_weight = choices->Real(0.1, 3);
    stage.offload = choices->Real(0, 3);
    stage.activation = choices->Real(0.1, 2);
    stage.weight_gradient_inputs = choices->Real(0, 2);
  }
  costs.hop = choices->Real(0, 1);
  return costs;
}

}  // namespace

std::string GenerateOptions(const schedules::ScheduleKind& kind, int num_ranks,
                            Choices* choices) {
  std::string options;
  for (const schedules::ScheduleOption& option : kind.options) {
    if (choices->OneIn(2)) continue;
    absl::StrAppend(&options, ":", option.name, "=",
                    ValueOf(option.name, num_ranks, choices));
  }
  return options;
}

ScheduleRequest GenerateScheduleRequest(Choices* choices) {
  const auto& kinds = schedules::AllScheduleKinds();
  const schedules::ScheduleKind& kind =
      kinds[choices->Int(0, static_cast<int>(kinds.size()) - 1)];
  ScheduleRequest request;
  for (int left = kMostScheduleTries; left > 0; --left) {
    schedules::ScheduleSpec spec;
    spec.num_ranks = choices->Int(1, 8);
    spec.num_chunks = choices->Of<int>({1, 1, 2, 2, 3, 4});
    spec.num_microbatches = choices->OneIn(3)
                                ? spec.num_ranks * choices->Int(1, 4)
                                : choices->Int(1, 24);
    spec.num_batches = kind.flush ? 1 : choices->Int(1, 4);
    request.name = absl::StrCat(
        kind.name, choices->OneIn(2)
                       ? GenerateOptions(kind, spec.num_ranks, choices)
                       : "");
    request.spec = spec;
    const auto full = schedules::WithOptionsOf(request.name, kind, spec);
    if (full.ok() && kind.check(*full).ok()) break;
  }
  if (kind.uses_costs) {
    request.spec.costs = GenerateCosts(
        request.spec.num_ranks * request.spec.num_chunks, choices);
  }
  return request;
}

}  // namespace weir::fuzz
