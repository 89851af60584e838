// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "plan/papers/planner_work.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/placement.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

std::string StageName(size_t stage) {
  return absl::StrCat("stages[", stage, "]");
}

// Counts the embedding and the head, which a measured model does not have.
int NumLayers(const Model& model) {
  return model.has_measured()
             ? model.measured().layers_size()
             : static_cast<int>(model.transformer().num_layers()) + 2;
}

int NumBlocks(const PlannedStage& stage, const Model& model) {
  if (model.has_measured()) return stage.end_layer - stage.first_layer;
  const int last = NumLayers(model) - 1;
  return std::min(stage.end_layer, last) - std::max(stage.first_layer, 1);
}

void CheckStages(const PlannedPipeline& plan, const Model& model,
                 Problems* problems) {
  int next = 0;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlannedStage& stage = plan.stages[s];
    if (stage.first_layer != next || stage.end_layer <= next) {
      problems->Add(StageName(s),
                    absl::StrCat("has layers ", stage.first_layer, " to ",
                                 stage.end_layer - 1, ", expected layers from ",
                                 next, " on"));
    }
    next = stage.end_layer;
    if (NumBlocks(stage, model) < 1) {
      problems->Add(
          StageName(s),
          "has no transformer block of the model, expected at least one");
    }
    if (stage.devices.empty()) problems->Add(StageName(s), "has no device");
    if (stage.swap) {
      problems->Add(StageName(s),
                    "swaps activations to the host, which no schedule that "
                    "supports planned stages does");
    }
    if (stage.recompute != plan.stages[0].recompute) {
      problems->Add(
          StageName(s),
          "differs from stage 0 in recomputation, expected all stages or none");
    }
  }
  if (next != NumLayers(model)) {
    problems->Add("stages", absl::StrCat("end with layer ", next - 1,
                                         ", expected the model's ",
                                         NumLayers(model), " layers"));
  }
}

bool EquallyReplicated(const PlannedPipeline& plan) {
  return std::all_of(
      plan.stages.begin(), plan.stages.end(), [&](const PlannedStage& stage) {
        return stage.devices.size() == plan.stages[0].devices.size();
      });
}

// Returns the GPUs by Placement::index. Devices are numbered as in
// PlannerWorkOf.
absl::StatusOr<std::vector<int>> GpusOf(
    const PlannedPipeline& plan, const scenarios::ResolvedScenario& given,
    bool is_equal) {
  const auto& listed = given.scenario.parallelism().gpus();
  const int num_gpus =
      listed.empty() ? scenarios::NumGpus(given.cluster) : listed.size();
  const int tensor = given.placement.tensor;
  std::vector<int> devices;
  const size_t replicas = is_equal ? plan.stages[0].devices.size() : 1;
  for (size_t replica = 0; replica < replicas; ++replica) {
    for (const PlannedStage& stage : plan.stages) {
      if (is_equal) {
        devices.push_back(stage.devices[replica]);
      } else {
        devices.insert(devices.end(), stage.devices.begin(),
                       stage.devices.end());
      }
    }
  }
  std::vector<int> gpus;
  for (int device : devices) {
    if (device < 0 || (device + 1) * tensor > num_gpus) {
      return absl::InvalidArgumentError(absl::StrCat("plan: device is ", device,
                                                     ", expected 0 to ",
                                                     num_gpus / tensor - 1));
    }
    for (int i = device * tensor; i < (device + 1) * tensor; ++i) {
      gpus.push_back(listed.empty() ? i : static_cast<int>(listed[i]));
    }
  }
  return gpus;
}

// Prefers an equivalent named order, which is easier to read.
void SetPlacement(const std::vector<int>& gpus, int num_gpus,
                  Parallelism* parallelism) {
  parallelism->clear_gpus();
  for (const char* order : {"tp-dp-pp", "tp-pp-dp"}) {
    const auto named = scenarios::PlaceInOrder(
        "order", order, std::max<int>(parallelism->tensor(), 1),
        static_cast<int>(parallelism->data()),
        static_cast<int>(parallelism->pipeline()), num_gpus);
    if (named.ok() && named->gpus == gpus) {
      parallelism->set_order(order);
      return;
    }
  }
  parallelism->clear_order();
  for (int gpu : gpus) parallelism->add_gpus(gpu);
}

absl::Status SetSchedule(const PlannedPipeline& plan, bool is_equal,
                         Scenario* scenario) {
  std::string name =
      plan.schedule.empty() ? scenario->schedule() : plan.schedule;
  if (!is_equal) {
    const std::vector<std::string> parts =
        absl::StrSplit(name, absl::MaxSplits(':', 1));
    if (parts[0] != "pipedream") {
      return absl::InvalidArgumentError(
          absl::StrCat("plan: stages have different numbers of replicas, which "
                       "only the schedule pipedream supports, found ",
                       name));
    }
    name = absl::StrCat(
        "pipedream:replicas=",
        absl::StrJoin(plan.stages, "-",
                      [](std::string* out, const PlannedStage& stage) {
                        absl::StrAppend(out, stage.devices.size());
                      }));
  }
  scenario->set_schedule(name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Scenario> ScenarioOf(const PlannedPipeline& plan,
                                    const scenarios::ResolvedScenario& given) {
  Problems problems("plan");
  if (plan.stages.empty())
    problems.Add("stages", "are missing, expected at least one");
  if (given.given_costs) problems.Add("", "has given costs, expected a model");
  if (problems.empty()) CheckStages(plan, given.model, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  const bool is_equal = EquallyReplicated(plan);
  ASSIGN_OR_RETURN(const std::vector<int> gpus, GpusOf(plan, given, is_equal));
  Scenario scenario = given.scenario;
  RETURN_IF_ERROR(SetSchedule(plan, is_equal, &scenario));
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.clear_layout();
  parallelism.set_chunks(1);
  parallelism.set_data(is_equal ? plan.stages[0].devices.size() : 1);
  parallelism.set_pipeline(static_cast<uint32_t>(
      is_equal ? plan.stages.size() : gpus.size() / given.placement.tensor));
  parallelism.clear_blocks_per_stage();
  for (const PlannedStage& stage : plan.stages) {
    parallelism.add_blocks_per_stage(NumBlocks(stage, given.model));
  }
  SetPlacement(gpus, scenarios::NumGpus(given.cluster), &parallelism);
  if (plan.microbatch_size > 0) {
    scenario.mutable_batch()->set_microbatch_size(plan.microbatch_size);
  }
  if (plan.chooses_recompute) {
    scenarios::SetRecompute(
        plan.stages[0].recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE,
        scenario.mutable_training());
  }
  return scenario;
}

}  // namespace weir::plan
