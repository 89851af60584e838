// SPDX-License-Identifier: Apache-2.0
// Did a replay train what it should have trained?
#ifndef WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_
#define WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/replay_record.h"
#include "calibrate/replay/sequential.h"

namespace weir {

// What may differ, as TrainingDifference has it.
struct TrainingTolerance {
  double weights = 0, change = 0, losses = 0;
};

// In double precision: what the order of sums leaves; of the change more, since
// Adam divides gradients that are 0 but for that (2e-12 is the most seen).
inline constexpr TrainingTolerance kHostTolerance = {1e-12, 1e-10, 1e-12};
// On a GPU. The same kernels make the same products, but sums may have another
// order, and a number that then rounds the other way changes all that it meets:
// four times what rounding one number to the format changes (u; bf16: 2^-9).
// Adam's early steps are the signs of gradients: where a gradient's error is e
// of its usual size, about e of them turn, which changes the step by 2 sqrt(e);
// e = u / 4.
TrainingTolerance GpuTolerance(ElementFormat format, OptimizerKind optimizer);

struct TrainingCheck {
  std::string formula;  // what it was compared with; empty: with nothing
  std::string why_not;  // then
  TrainingDifference difference;
  TrainingTolerance tolerance;

  bool holds() const {
    return formula.empty() || (difference.weights <= tolerance.weights &&
                               difference.change <= tolerance.change &&
                               difference.losses <= tolerance.losses);
  }
};

// Against the papers' formulas, computed one after the other on a device that
// `open` opens (TrainSequentially). Not checked where no formula is known, or
// that device's memory does not suffice.
absl::StatusOr<TrainingCheck> CheckTraining(const ReplayPlan& plan,
                                            const ReplayRecord& record,
                                            const OpenDevice& open,
                                            const TrainingTolerance& tolerance);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_
