// SPDX-License-Identifier: Apache-2.0
// Time of the dispatch and combine of DeepEP (high-throughput kernels;
// DeepSeek-V3, section 3.2.2) and of HybridEP: a token is sent once to each
// node that has one of its experts, to the GPU with the sender's index, and
// from there over NVLink once to each GPU that has one. The combine moves the
// same copies back.
//
//   NVLink bytes  = T C b (r - 1) / r
//   network bytes = T N b (n - 1) / n
//   work          = T (token_seconds + C copy_seconds
//                      + C b / multiprocessor_bytes_per_second
//                      + N b / forward_bytes_per_second) / m
//   link          = the longer of the two transfers, at link_efficiency and
//                   net_efficiency
//   seconds       = base_seconds + net_base_seconds + (work^4 + link^4)^(1/4)
//
// where names with underscores are fields of TokenExchange, and
//
//   T  tokens of a GPU
//   b  bytes of a copy of a token
//   n  nodes of the group, each with r of its GPUs
//   C  mean number of GPUs that have an expert of a token
//   N  mean number of nodes that have one
//   m  multiprocessors of a GPU that work on the exchange
//
// Work and transfers overlap, except near the point where they take equally
// long. In a single node nothing is forwarded, and the terms with
// forward_bytes_per_second and net_base_seconds are absent. Across nodes, the
// copy for the sender's own node is forwarded, too.
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
