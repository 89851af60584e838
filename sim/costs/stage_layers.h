// SPDX-License-Identifier: Apache-2.0
// Sums the costs of a stage's layers.
#ifndef WEIR_SIM_COSTS_STAGE_LAYERS_H_
#define WEIR_SIM_COSTS_STAGE_LAYERS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_list.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Seconds of the passes of one microbatch in one layer.
struct LayerSeconds {
  double forward = 0;
  double recompute = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double backward = 0;  // of a measured layer, which has no parts
  double ring_forward = 0, ring_backward = 0;  // see StageSeconds
  // [StageKernels::forward and so on]; empty for a measured layer.
  std::array<std::vector<PricedKernel>, 3> kernels;
};

// Prices each kind of layer once: blocks are copies of one another and are
// identified by their names. The caller keeps `device` and `costs` alive.
class LayerPrices {
 public:
  LayerPrices(const DeviceProfile& device, const DeviceCosts& costs)
      : device_(device), costs_(costs) {}

  // The reference is valid until the next call.
  const LayerSeconds& Of(const models::LayerWork& layer);

 private:
  // Returns the seconds of fused attention, of all kernels or without the last.
  double AttentionSeconds(const std::vector<models::Kernel>& kernels,
                          bool with_last) const;
  double Price(const std::vector<models::Kernel>& kernels,
               std::vector<PricedKernel>* priced) const;

  const DeviceProfile& device_;
  const DeviceCosts& costs_;
  absl::flat_hash_map<std::string, LayerSeconds> known_;
  LayerSeconds measured_;
};

// Adds the costs of layers [first, last): seconds, launches, kernels,
// collectives and memory. Leaves out kernels and parts of backwards if `stage`
// has none.
void AddLayers(const models::LayerList& layers, int first, int last,
               LayerPrices* prices, StageCosts* stage);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_STAGE_LAYERS_H_
