// SPDX-License-Identifier: Apache-2.0
// Training without a pipeline, straight from the formulas of the papers: what a
// replay's losses and weights are compared with, on any device. Shares no code
// with the runner but the device (operations, optimizers), when a stage
// program's buffers come and go, and the data; it knows no schedule order, no
// semantics table, no messages.
#ifndef WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_
#define WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/replay_record.h"

namespace weir {

struct SequentialRecord {
  std::vector<double> losses;  // [microbatch over all steps]
  // [stage]: cut as the plan's stages, final.
  std::vector<std::vector<double>> weights;
  std::string formula;  // "W(t+1) = W(t) - v grad f(W(t-1))", with its source
};

// A serial device for a plan of one rank; the plan outlives it.
using OpenDevice = std::function<absl::StatusOr<std::unique_ptr<ReplayDevice>>(
    const ReplayPlan& plan)>;

// By the system that plan.schedule.name names (options included): one stage
// that holds the whole model, minibatch SGD, for every one with flush; the
// paper's delays and estimates for the others (update_formula.h), with all
// stages on one rank. NotFound: no formula is known for that name (a file's
// schedule without flush). Errors of the device: ResourceExhausted where it
// does not hold all stages with the versions that the formula reads.
absl::StatusOr<SequentialRecord> TrainSequentially(const ReplayPlan& plan,
                                                   const OpenDevice& open);
// On the host, in double precision.
absl::StatusOr<SequentialRecord> TrainSequentially(const ReplayPlan& plan);

// Norm-wise, infinite where lengths differ or something is no number; the
// largest over stages.
struct TrainingDifference {
  double weights = 0;  // |a - b| / |b|
  // |a - b| / |b - initial|, relative to what training has changed: 1 where a
  // was not trained at all.
  double change = 0;
  int worst_stage = 0;  // by its change
  double losses = 0;    // |a - b| / |b|
};
TrainingDifference DifferenceOf(const ReplayPlan& plan,
                                const ReplayRecord& replay,
                                const SequentialRecord& formula);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_
