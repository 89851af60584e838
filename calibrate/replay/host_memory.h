// SPDX-License-Identifier: Apache-2.0
// Whether a model fits on the host, before it is tried.
#ifndef WEIR_CALIBRATE_REPLAY_HOST_MEMORY_H_
#define WEIR_CALIBRATE_REPLAY_HOST_MEMORY_H_

#include "absl/status/status.h"
#include "calibrate/replay/replay_plan.h"

namespace weir {

// What a training on the host takes at least: weights, gradients and optimizer
// states of every stage once, in double precision.
double LeastHostBytes(const ReplayPlan& plan);

// Of this machine.
double HostMemoryBytes();

// InvalidArgument where the plan needs more: the system would end the program
// without a word.
absl::Status CheckHostMemory(const ReplayPlan& plan,
                             double memory_bytes = HostMemoryBytes());

// InvalidArgument where so many trainings need more time, or one more memory
// for what is noted of its passes, than base/size_limits.h allows.
absl::Status CheckHostSize(const ReplayPlan& plan, double num_trainings = 1);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_HOST_MEMORY_H_
