// SPDX-License-Identifier: Apache-2.0
// Checks of the fields of training, low-rank adapters, token dispatchers and
// the formats of attention and dispatch.
#ifndef WEIR_SCENARIOS_CHECK_TRAINING_H_
#define WEIR_SCENARIOS_CHECK_TRAINING_H_

#include <cstdint>

#include "base/problems.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/model.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Largest values of fields that flags set.
inline constexpr uint32_t kMaxLoraRank = 1 << 16;
inline constexpr uint32_t kMaxMuonIterations = 100;
inline constexpr uint32_t kMaxDispatchMultiprocessors = 10000;

// Checks the fields of training alone: ranges and fields that exclude each
// other. CheckRollbacks is the part that also applies with given costs.
void CheckTraining(Problems& problems, const Training& training,
                   const Parallelism& parallelism);
void CheckRollbacks(Problems& problems, const Training& training);

// Check the fields on their own, against the model and against a device.
void CheckAdapters(Problems& problems, const Scenario& scenario);
void CheckDispatch(Problems& problems, const Communication& communication);
// Refuses overlapped exchanges without expert parallelism.
void CheckOverlapOfExchanges(Problems& problems, const Scenario& scenario);
void CheckAdaptersAgainst(Problems& problems, const Scenario& scenario,
                          const Model& model);
void CheckDispatchAgainst(Problems& problems, const Scenario& scenario,
                          const Model& model);
void CheckFormatsAgainst(Problems& problems, const Scenario& scenario,
                         const Recipe& recipe, const DeviceProfile& device);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_TRAINING_H_
