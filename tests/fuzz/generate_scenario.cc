// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_scenario.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibrate/profile/device_profile.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/registry.h"
#include "tests/fuzz/generate_cluster.h"
#include "tests/fuzz/generate_profile.h"
#include "tests/fuzz/generate_schedule.h"
#include "tests/sim/random_plan.h"

namespace weir::fuzz {
namespace {

constexpr int kMostTries = 8;
// Most scenarios are small, as most bugs show in small ones, which run several
// times as fast.
constexpr sim::RandomPlan::Limits kSmall = {.num_gpus = 8, .num_actions = 96};
constexpr sim::RandomPlan::Limits kLarge = {.num_gpus = 16, .num_actions = 512};

Scenario DrawScenario(sim::RandomPlan* plan, Choices* choices) {
  Scenario scenario;
  for (int left = kMostTries; left > 0; --left) {
    scenario = plan->DrawScenario();
    const auto kind = schedules::FindScheduleKind(scenario.schedule());
    if (kind.ok() && choices->OneIn(3)) {
      const auto num_ranks =
          static_cast<int>(scenario.parallelism().pipeline());
      scenario.set_schedule(absl::StrCat(
          scenario.schedule(), GenerateOptions(**kind, num_ranks, choices)));
    }
    if (scenarios::CheckSchedule("fuzz", scenario, true).ok()) break;
  }
  return scenario;
}

void Break(Scenario* scenario, Choices* choices) {
  Parallelism* parallelism = scenario->mutable_parallelism();
  switch (choices->Int(0, 5)) {
    case 0:
      return parallelism->set_tensor(
          choices->Of<uint32_t>({5, 100000, 4294967295}));
    case 1:
      return parallelism->set_pipeline(parallelism->pipeline() + 1);
    case 2:
      return scenario->set_schedule(choices->Text());
    case 3:
      return scenario->mutable_batch()->set_sequence_length(
          choices->Of<uint32_t>({257, 4294967295}));
    case 4:
      return parallelism->add_blocks_per_stage(choices->Int(0, 1000000));
    default:
      return scenario->set_num_batches(1000001);
  }
}

void ReplaceCluster(scenarios::ResolvedScenario* resolved, Choices* choices) {
  const std::vector<int>& gpus = resolved->placement.gpus;
  resolved->cluster = GenerateCluster(
      {.least_gpus = *std::max_element(gpus.begin(), gpus.end()) + 1,
       .realistic_rates = true,
       .may_be_invalid = false},
      choices);
  resolved->other_devices.clear();
  resolved->gpu_device.clear();
}

// Changes the scenario within the limits of validation, so that the simulator
// must accept it too.
absl::Status Change(sim::RandomPlan* plan, GeneratedScenario* generated,
                    Choices* choices) {
  scenarios::ResolvedScenario* resolved = &*generated->resolved;
  generated->changed = !resolved->given_costs;
  if (resolved->given_costs) return absl::OkStatus();
  if (choices->OneIn(2)) {
    plan->Change(resolved);
  } else {
    ReplaceCluster(resolved, choices);
    if (choices->OneIn(2)) VaryProfile(false, &resolved->device, choices);
  }
  absl::Status status = scenarios::ValidateCluster("fuzz", resolved->cluster);
  status.Update(calibrate::ValidateDeviceProfile("fuzz", resolved->device));
  return status;
}

}  // namespace

GeneratedScenario GenerateScenario(Choices* choices) {
  sim::RandomPlan plan(choices, choices->OneIn(6) ? kLarge : kSmall);
  GeneratedScenario generated = {DrawScenario(&plan, choices),
                                 absl::UnknownError("not resolved")};
  generated.scenario.set_name(choices->Text());
  if (choices->OneIn(20)) Break(&generated.scenario, choices);
  generated.resolved = scenarios::ResolveScenario("fuzz", generated.scenario);
  if (!generated.resolved.ok() || choices->OneIn(3)) return generated;
  const absl::Status status = Change(&plan, &generated, choices);
  if (!status.ok()) generated.resolved = status;
  return generated;
}

}  // namespace weir::fuzz
