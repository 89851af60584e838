// SPDX-License-Identifier: Apache-2.0
// The parameters of a CollectiveModel, by name.
#ifndef WEIR_CALIBRATE_PROFILE_COLLECTIVE_MODEL_H_
#define WEIR_CALIBRATE_PROFILE_COLLECTIVE_MODEL_H_

#include <vector>

#include "calibrate/profile/collective_model.pb.h"

namespace weir::calibrate {

// One parameter of the message and its valid range.
struct CollectiveFigure {
  const char* name;  // "simple.base_seconds"
  const Figure& (*get)(const CollectiveModel& model);
  Figure* (*mutate)(CollectiveModel* model);
  bool (*has)(const CollectiveModel& model);
  double low, high;
  bool optional;
};

// Returns all parameters, in the order of the message.
const std::vector<CollectiveFigure>& CollectiveFigures();

// Hardware generations for which NCCL has default constants.
enum class NcclGeneration { kVolta, kAmpere, kHopper, kBlackwell };

// Returns the constants of NCCL v2.28.9 src/graph/tuning.cc (Intel hosts) as a
// model, without the terms that its table lacks. `pairs` come from the limits
// in src/enqueue.cc and the latencies of a ring's first hop.
CollectiveModel NcclDefaults(NcclGeneration generation);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_COLLECTIVE_MODEL_H_
