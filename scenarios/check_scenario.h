// SPDX-License-Identifier: Apache-2.0
// Parts of ResolveScenario: checks of the fields alone, and of the fields
// against the model, devices and schedule. Each check reports all problems it
// finds.
#ifndef WEIR_SCENARIOS_CHECK_SCENARIO_H_
#define WEIR_SCENARIOS_CHECK_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/problems.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/model.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// The most actions that a simulation may have (about 160 bytes each).
inline constexpr double kMaxActions = 2e8;

// The most GPUs that may share a sequence.
inline constexpr uint32_t kMaxContext = 1024;

// Returns a degree of parallelism, where 0 means 1.
double Degree(uint32_t value);

// Returns true if the schedule has options. An option may change the number of
// stages from pipeline x chunks (replicated stages); the numbers of stage costs
// are then checked when the costs are computed.
bool HasOptions(const Scenario& scenario);

// Checks the fields alone: ranges, fields that exclude each other, given costs.
void CheckFields(Problems& problems, const Scenario& scenario);

// Check Megatron-LM's layout of layers: its syntax and number of stages, and
// that it contains the model's layers.
void CheckLayout(Problems& problems, const Parallelism& parallelism);
void CheckLayoutAgainst(Problems& problems, const Parallelism& parallelism,
                        int num_blocks, int num_mtp_modules);

// Checks that the microbatches and data-parallel ranks divide the batch.
// Requires: CheckFields found no problem; also for the functions below.
void CheckBatchDivides(Problems& problems, const Scenario& scenario);

// Fills fields that are not given from the shape of a schedule file. Adds a
// problem with both values for each given field that differs. Returns errors of
// the file unchanged.
absl::Status FillFromScheduleFile(Problems& problems, Scenario& scenario);

// Checks that the schedule exists and, if `with_shape`, that it supports the
// scenario's shape.
absl::Status CheckSchedule(absl::string_view label, const Scenario& scenario,
                           bool with_shape);

// How the number of stages is checked against the model.
enum class StageCheck {
  kNone,  // not at all: another error already suggests their number
  kAny,
  // Suggests only numbers that also divide the GPUs, from which the
  // data-parallel size follows.
  kDividesGpus,
};

// Checks the scenario against the model: degrees must divide it, and it must
// have enough positions for the sequences and enough blocks for the stages.
void CheckAgainstModel(Problems& problems, const Scenario& scenario,
                       const Model& model,
                       StageCheck stages = StageCheck::kAny);

// Checks that the tensor-parallel ranks divide every size that they split.
// `own_expert_size`: experts have a tensor-parallel size of their own.
void CheckTensorDegree(Problems& problems, uint32_t tensor,
                       const Transformer& transformer,
                       bool own_expert_size = false);

// The devices of the cluster's GPUs, each name and speed once, in order; with
// only the scenario's profile if that is given.
struct DeviceNames {
  std::vector<std::string> names;
  // [GPU] index into names; empty for a single name.
  std::vector<int> gpu_device;
  // [name] relative to other GPUs of the kind; a slow GPU is a device of its
  // own.
  std::vector<double> speeds;
};
DeviceNames NamesOfDevices(const Scenario& scenario, const Cluster& cluster);

// Checks that a recipe with formats of 8 or 4 bits leaves blocks to quantize.
void CheckQuantizedBlocks(Problems& problems, const Recipe& recipe,
                          const Transformer& transformer);

// Checks that the device supports the scenario's precision and the formats of
// its recipe.
void CheckAgainstDevice(Problems& problems, const Scenario& scenario,
                        const Recipe& recipe, const DeviceProfile& device);

// Returns the number of microbatches per batch and pipeline. Requires:
// CheckFields found no problem.
int NumMicrobatches(const Scenario& scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_SCENARIO_H_
