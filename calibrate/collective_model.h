// SPDX-License-Identifier: Apache-2.0
// The figures of a CollectiveModel, by name.
#ifndef WEIR_CALIBRATE_COLLECTIVE_MODEL_H_
#define WEIR_CALIBRATE_COLLECTIVE_MODEL_H_

#include <vector>

#include "calibrate/collective_model.pb.h"

namespace weir {

// One figure of the message and what it may be.
struct CollectiveFigure {
  const char* name;  // "simple.base_seconds"
  const Figure& (*get)(const CollectiveModel& model);
  Figure* (*mutate)(CollectiveModel* model);
  bool (*has)(const CollectiveModel& model);
  double low, high;
  bool optional;
};

// All of them, in the order of the message.
const std::vector<CollectiveFigure>& CollectiveFigures();

// What NCCL reckons with where it knows nothing else.
enum class NcclGeneration { kVolta, kAmpere, kHopper, kBlackwell };

// The constants of NCCL v2.28.9 src/graph/tuning.cc (Intel hosts) as a model,
// without the terms that its table lacks; `pairs` from src/enqueue.cc's limits
// and the latencies of a ring's first hop.
CollectiveModel NcclDefaults(NcclGeneration generation);

}  // namespace weir

#endif  // WEIR_CALIBRATE_COLLECTIVE_MODEL_H_
