// SPDX-License-Identifier: Apache-2.0
// Training without a pipeline, straight from the formulas of the papers: what a
// replay's losses and weights are compared with. Shares no code with the
// runner but the operations, the data and the optimizers' arithmetic; it knows
// no schedule order, no versions, no messages.
#ifndef WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_
#define WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/replay_record.h"

namespace weir {

struct SequentialRecord {
  std::vector<double> losses;  // [microbatch over all steps]
  // [stage]: cut as the plan's stages, final.
  std::vector<std::vector<double>> weights;
  std::string formula;  // "W(t+1) = W(t) - v grad f(W(t-1))", with its source
};

// By the system that plan.schedule.name names (options included): one stage
// that holds the whole model, minibatch SGD, for every one with flush; the
// paper's delays and estimates for the others (update_formula.h). NotFound: no
// formula is known for that name (a file's schedule without flush).
absl::StatusOr<SequentialRecord> TrainSequentially(const ReplayPlan& plan);

// Norm-wise: |a - b| / |b|, the largest over stages; of losses too. Infinite
// where lengths differ or something is no number.
struct TrainingDifference {
  double weights = 0, losses = 0;
  int worst_stage = 0;
};
TrainingDifference DifferenceOf(const ReplayRecord& replay,
                                const SequentialRecord& formula);
// The same, of weights that lie elsewhere: gigabytes of a model for a GPU.
TrainingDifference DifferenceOf(
    const ReplayRecord& replay, const std::vector<double>& losses,
    const std::vector<absl::Span<const double>>& weights);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_SEQUENTIAL_H_
