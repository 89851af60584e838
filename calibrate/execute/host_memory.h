// SPDX-License-Identifier: Apache-2.0
// Checks whether a model fits on the host before it is tried.
#ifndef WEIR_CALIBRATE_EXECUTE_HOST_MEMORY_H_
#define WEIR_CALIBRATE_EXECUTE_HOST_MEMORY_H_

#include "absl/status/status.h"
#include "calibrate/execute/execution_plan.h"

namespace weir::calibrate {

// Returns a lower bound on the memory of a training on the host: weights,
// gradients and optimizer states of every stage once, in double precision.
double LeastHostBytes(const ExecutionPlan& plan);

// Returns the memory of this machine.
double HostMemoryBytes();

// Returns InvalidArgument if the plan needs more memory. Otherwise the
// operating system would kill the program without a message.
absl::Status CheckHostMemory(const ExecutionPlan& plan,
                             double memory_bytes = HostMemoryBytes());

// Returns InvalidArgument if `num_trainings` trainings exceed the time limit,
// or one exceeds the memory limit for the record of its passes
// (base/size_limits.h).
absl::Status CheckHostSize(const ExecutionPlan& plan, double num_trainings = 1);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_HOST_MEMORY_H_
