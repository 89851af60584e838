// SPDX-License-Identifier: Apache-2.0
// Did a replay train what it should have trained?
#ifndef WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_
#define WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/replay/replay_record.h"

namespace weir {

struct TrainingCheck {
  std::string formula;  // what it was compared with; empty: with nothing
  std::string why_not;  // then
  double weights_difference = 0, losses_difference = 0;  // norm-wise, relative
  double tolerance = 0;
  int worst_stage = 0;

  bool holds() const {
    return formula.empty() ||
           (weights_difference <= tolerance && losses_difference <= tolerance);
  }
};

// In double precision, on the CPU: what the order of sums leaves.
inline constexpr double kHostTolerance = 1e-12;
// On a GPU: four times what rounding one number to the format changes. The same
// kernels make the same products, but gradients are added up in another order,
// and a weight that rounds the other way changes all that it meets.
double GpuTolerance(ElementFormat format);

// Against the papers' formulas, computed one after the other on the host
// (TrainSequentially). Not checked where no formula is known.
absl::StatusOr<TrainingCheck> CheckOnHost(const ReplayPlan& plan,
                                          const ReplayRecord& record);

using OpenDevice = std::function<absl::StatusOr<std::unique_ptr<ReplayDevice>>(
    const ReplayPlan& plan)>;

// Against a single stage with the whole model, trained on the same device: for
// schedules with a flush. Others are not checked: versions that were read are
// (CheckVersions), and their arithmetic is on the host's back end.
absl::StatusOr<TrainingCheck> CheckOnDevice(const ReplayPlan& plan,
                                            const ReplayRecord& record,
                                            const OpenDevice& open);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_TRAINING_CHECK_H_
