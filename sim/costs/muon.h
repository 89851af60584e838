// SPDX-License-Identifier: Apache-2.0
// Muon (Liu et al. 2025, Muon is Scalable for LLM Training, section 2): the
// update of a matrix is its momentum, orthogonalized by Newton-Schulz
// iterations. With the shorter side m and the longer side n, each iteration
// computes A = X X^T, B = b A + c A A and X = a X + B X: 4 m^2 n + 2 m^3 FLOP.
#ifndef WEIR_SIM_COSTS_MUON_H_
#define WEIR_SIM_COSTS_MUON_H_

#include <vector>

#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_list.h"
#include "scenarios/scenario.pb.h"

namespace weir::sim {

// Returns true if the optimizer is Muon, distributed or not.
bool UsesMuon(const Training& training);

// Returns the parameters of the matrices that Muon updates in a stage; those of
// embeddings, heads, norms and biases are updated by Adam.
double MatrixParameters(const models::LayerList& layers, int first, int last);

// The Newton-Schulz iterations of all matrices of a stage. With tensor
// parallelism each GPU orthogonalizes its part of a matrix (Megatron Core's
// blockwise mode).
struct Orthogonalization {
  double seconds = 0, flops = 0;
  double scratch_bytes = 0;  // of the largest matrix
};

// `part` is the fraction of the matrices that a rank owns, of which it has a
// whole number.
Orthogonalization OrthogonalizationOf(const models::LayerList& layers,
                                      int first, int last,
                                      const Training& training, double part,
                                      const DeviceProfile& device,
                                      const calibrate::KernelPrices& prices,
                                      double peak_flops);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_MUON_H_
