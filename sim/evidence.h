// SPDX-License-Identifier: Apache-2.0
// How the seconds of a prediction are known. docs/measured-profiles.md defines
// it.
#ifndef WEIR_SIM_EVIDENCE_H_
#define WEIR_SIM_EVIDENCE_H_

#include <vector>

#include "calibrate/device_profile.pb.h"
#include "calibrate/figure.pb.h"
#include "results/result.pb.h"
#include "sim/gpu_work.h"

namespace weir {

// The weakest kind among the figures that move a cost by at least a tenth of
// their own move: assumed, fitted, measured, else datasheet.
class WeakestKinds {
 public:
  // REQUIRES: `base` outlives this, and prices `work`.
  WeakestKinds(const GpuWork& work, const WorkPrices& base);

  // One figure of this kind was moved by so much of its logarithm.
  void Note(Figure::Kind kind, double log_move, const WorkPrices& moved);

  // What a call rests on is known without.
  void SetCall(size_t index, Figure::Kind kind) { calls_[index] = kind; }

  Figure::Kind of_kernel(size_t index) const { return kernels_[index]; }
  Figure::Kind of_call(size_t index) const { return calls_[index]; }
  // What the host needs for a pass.
  Figure::Kind of_host(size_t pass) const { return hosts_[pass]; }

 private:
  const GpuWork& work_;
  const WorkPrices& base_;
  std::vector<Figure::Kind> kernels_, calls_, hosts_;
};

// Of the batch's critical path, as GpuWork tells it, stretched to
// `batch_seconds`.
SecondsByEvidence EvidenceOf(const GpuWork& work, const WorkPrices& prices,
                             const WeakestKinds& kinds,
                             const DeviceProfile& device, double batch_seconds);

}  // namespace weir

#endif  // WEIR_SIM_EVIDENCE_H_
