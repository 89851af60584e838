// SPDX-License-Identifier: Apache-2.0
// The parts of ResolveScenario: checks of the fields alone, and of the fields
// against what they name. Each notes all that it finds.
#ifndef WEIR_SCENARIOS_CHECK_SCENARIO_H_
#define WEIR_SCENARIOS_CHECK_SCENARIO_H_

#include <string>
#include <vector>

#include "base/problems.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/runtime.pb.h"
#include "models/model.pb.h"
#include "scenarios/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir {

// More tasks than one simulation may have (about 100 bytes each).
inline constexpr double kMaxActions = 2e8;

// Every field that is wrong whatever the scenario names: numbers out of range,
// fields that exclude each other, costs by hand.
void CheckFields(Problems& problems, const Scenario& scenario);

// Megatron-LM's layout of layers: the chunks that it means where none are
// given, its words and number of stages, and whether it holds the model's
// layers.
void FillChunksFromLayout(Scenario& scenario);
void CheckLayout(Problems& problems, const Parallelism& parallelism);
void CheckLayoutAgainst(Problems& problems, const Parallelism& parallelism,
                        int num_blocks);

// Whether microbatches and replicas divide the batch. REQUIRES: CheckFields
// found nothing, also below.
void CheckBatchDivides(Problems& problems, const Scenario& scenario);

// Where the schedule is a file, its shape stands in the fields that are not
// given; those that are given and differ are problems that name both. Errors of
// the file come back as they are.
absl::Status FillFromScheduleFile(Problems& problems, Scenario& scenario);

// Whether the schedule exists and, `with_shape`, takes the scenario's.
absl::Status CheckSchedule(absl::string_view label, const Scenario& scenario,
                           bool with_shape);

// What the model cannot be asked: degrees that do not divide it, sequences that
// it has no positions for, stages it has no blocks for.
void CheckAgainstModel(Problems& problems, const Scenario& scenario,
                       const Model& model);

// The devices of the cluster's GPUs, each name once, in order; the scenario's
// instead, if it names one.
struct DeviceNames {
  std::vector<std::string> names;
  std::vector<int> gpu_device;  // [GPU]: index into names; empty with one name
};
DeviceNames NamesOfDevices(const Scenario& scenario, const Cluster& cluster);

// Whether the device computes in the scenario's precision.
void CheckAgainstDevice(Problems& problems, const Scenario& scenario,
                        const DeviceProfile& device);

// Microbatches of one batch and pipeline. REQUIRES: CheckFields found nothing.
int NumMicrobatches(const Scenario& scenario);

// Fills in the defaults that the fields alone decide.
void FillDefaults(Scenario& scenario);

// Fills in the defaults that the model decides, then those of the runtime.
void FillDefaultsOf(const Model& model, Scenario& scenario);
void FillDefaultsOf(const Runtime& runtime, Scenario& scenario);

}  // namespace weir

#endif  // WEIR_SCENARIOS_CHECK_SCENARIO_H_
