// SPDX-License-Identifier: Apache-2.0
// Unequal numbers of tokens per expert.
//
// The shares of a block's n experts follow a symmetric Dirichlet distribution
// of concentration a: X_i = G_i / sum(G), where the G_i are independent and
// Gamma(a)-distributed. The sum is independent of the shares, so that the
// largest share has the expectation
//   E[max X] = E[max G] / (n a),  E[max G] = integral of 1 - P(a, x)^n over x,
// where P is the regularized incomplete gamma function. The experts of a GPU
// together are again a component of such a distribution, of concentration a
// times their number. A token has k different experts, so that no share of an
// expert exceeds 1 / k.
#ifndef WEIR_MODELS_EXPERT_LOAD_H_
#define WEIR_MODELS_EXPERT_LOAD_H_

#include "models/model.pb.h"

namespace weir::models {

// Returns the expectation of the largest of n shares over the mean share, 1 /
// n. Requires: n >= 1, concentration > 0.
double LargestShare(double n, double concentration);

// Returns the concentration with which LargestShare() of n shares is `ratio`.
// Requires: 1 < ratio < n. The result is between 1e-3 and 1e9.
double ConcentrationFor(double n, double ratio);

// Returns the largest possible ratio of the most loaded expert to the mean.
double LargestImbalance(const Transformer& transformer);

// Returns the tokens of the most loaded of `expert_parallel` GPUs, with equally
// many experts each, over the mean of these GPUs, in expectation. `imbalance`:
// the same ratio for single experts; up to 1: balanced.
// With a capacity: the tokens that experts accept, or, if they are padded, 1.
double ExpertLoad(const Transformer& transformer, double imbalance,
                  int expert_parallel);

// Returns the mean tokens that experts with a capacity and without padding
// accept over those that are routed to them: E[min(n X, C)] of a share X of the
// above distribution, which is Beta(a, (n - 1) a), and C the capacity factor,
//   I(C/n; a + 1, (n - 1) a) + C (1 - I(C/n; a, (n - 1) a)),
// where I is the regularized incomplete beta function. 1 without a capacity.
double AcceptedTokens(const Transformer& transformer, double imbalance);

}  // namespace weir::models

#endif  // WEIR_MODELS_EXPERT_LOAD_H_
