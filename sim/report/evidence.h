// SPDX-License-Identifier: Apache-2.0
// The kinds of evidence for a predicted time, as defined in
// docs/measured-profiles.md.
#ifndef WEIR_SIM_REPORT_EVIDENCE_H_
#define WEIR_SIM_REPORT_EVIDENCE_H_

#include <vector>

#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/figure.pb.h"
#include "results/result.pb.h"
#include "sim/report/gpu_work.h"

namespace weir::sim {

// The weakest kind of evidence for each cost, among the model parameters that
// change the cost by at least a tenth of their own relative change. From
// weakest to strongest: assumed, fitted, measured, datasheet.
class WeakestKinds {
 public:
  // Requires: `work` and `base` outlive this object, and `base` prices `work`.
  WeakestKinds(const GpuWork& work, const WorkPrices& base);

  // Records that `moved` are the prices after the logarithm of one parameter of
  // this kind was changed by `log_move`.
  void Note(Figure::Kind kind, double log_move, const WorkPrices& moved);

  // Sets the kind of a collective that is already known.
  void SetCall(size_t index, Figure::Kind kind) { calls_[index] = kind; }

  Figure::Kind of_kernel(size_t index) const { return kernels_[index]; }
  Figure::Kind of_call(size_t index) const { return calls_[index]; }
  // Kind of the host time of a pass.
  Figure::Kind of_host(size_t pass) const { return hosts_[pass]; }

 private:
  const GpuWork& work_;
  const WorkPrices& base_;
  std::vector<Figure::Kind> kernels_, calls_, hosts_;
};

// Attributes the time of the batch's critical path, as described by `work`, to
// kinds of evidence and scales them to `batch_seconds`.
SecondsByEvidence EvidenceOf(const GpuWork& work, const WorkPrices& prices,
                             const WeakestKinds& kinds,
                             const DeviceProfile& device, double batch_seconds);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_EVIDENCE_H_
