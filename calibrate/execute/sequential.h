// SPDX-License-Identifier: Apache-2.0
// Reference training without a pipeline, written directly from the papers'
// formulas, on any device. A replay's losses and weights are compared with it.
// It shares with the runner only the device (operations, optimizers), the
// lifetimes of a stage program's buffers, and the data; it does not use the
// schedule order, the semantics table or messages.
#ifndef WEIR_CALIBRATE_EXECUTE_SEQUENTIAL_H_
#define WEIR_CALIBRATE_EXECUTE_SEQUENTIAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

struct SequentialRecord {
  std::vector<double> losses;  // [microbatch over all steps]
  // [stage]: final, partitioned like the plan's stages.
  std::vector<std::vector<double>> weights;
  std::string formula;  // "w(t+1) = w(t) - eta grad f(w(t-1))", with its source
};

// Opens a serial device for a plan of one rank; the plan outlives it.
using OpenDevice =
    std::function<absl::StatusOr<std::unique_ptr<ExecutionDevice>>(
        const ExecutionPlan& plan)>;

// Trains according to the system named by plan.schedule.name (options
// included). Systems with flush: minibatch SGD on one stage that holds the
// whole model. Others: the paper's delays and estimates (update_formula.h),
// with all stages on one rank. Returns NotFound if no formula is known for that
// name (a file's schedule without flush). Also returns errors of the device:
// ResourceExhausted if it cannot hold all stages with the versions that the
// formula reads.
absl::StatusOr<SequentialRecord> TrainSequentially(const ExecutionPlan& plan,
                                                   const OpenDevice& open);
// The same on the host, in double precision.
absl::StatusOr<SequentialRecord> TrainSequentially(const ExecutionPlan& plan);

// Norm-wise differences, the largest over stages; infinite if lengths differ or
// a value is NaN.
struct TrainingDifference {
  double weights = 0;  // |a - b| / |b|
  // |a - b| / |b - initial|, relative to the change by training: 1 if a was not
  // trained at all.
  double change = 0;
  int worst_stage = 0;  // by its change
  double losses = 0;    // |a - b| / |b|
};
TrainingDifference DifferenceOf(const ExecutionPlan& plan,
                                const ExecutionRecord& replay,
                                const SequentialRecord& formula);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_SEQUENTIAL_H_
