// SPDX-License-Identifier: Apache-2.0
// Time of the dispatch and combine of DeepEP (high-throughput kernels;
// DeepSeek-V3, section 3.2.2) and of HybridEP: a token is sent once to each
// node that has one of its experts, to the GPU with the sender's index, and
// from there over NVLink once to each GPU that has one. With T tokens per GPU,
// of which a copy has b bytes, g GPUs in n nodes of r, C GPUs and N nodes
// reached by a token, m multiprocessors:
//
//   NVLink bytes  = T C (r - 1) / r b
//   network bytes = T N (n - 1) / n b
//   work seconds  = T (token + C (copy + b / rate) + N b / forward) / m
//   seconds       = base + (work^4 + link^4)^(1/4)
//
// where link is the longer of the two transfers at their efficiencies, and the
// two parts overlap except near the point where they are equal. Across nodes,
// the copy for the sender's own node passes through the buffers of the
// forwarding multiprocessors, too; in one node nothing is forwarded. The
// combine moves the same copies back.
#ifndef WEIR_CALIBRATE_PRICING_EXPERT_EXCHANGE_H_
#define WEIR_CALIBRATE_PRICING_EXPERT_EXCHANGE_H_

#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/collective_model.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

// Returns the cost of one exchange. Without TokenExchange in the model, the
// bytes are the same, with the fixed times and efficiencies of `pairs`, and
// multiprocessors do not matter. Requires: as CheapestCollective; the routing
// has tokens and multiprocessors.
CollectiveCost ExchangeCost(const CollectiveModel& model,
                            const models::TokenRouting& routing,
                            const CollectiveGroup& group);

// Returns ExchangeCost of a routing with tokens, else CheapestCollective.
CollectiveCost CallCost(const CollectiveModel& model,
                        models::CollectiveKind kind, double bytes,
                        const models::TokenRouting& routing,
                        const CollectiveGroup& group);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_EXPERT_EXCHANGE_H_
