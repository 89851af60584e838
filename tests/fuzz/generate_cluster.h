// SPDX-License-Identifier: Apache-2.0
// Generates clusters: nodes of several kinds with every kind of link, rates at
// both ends of the valid range, and occasionally one invalid value.
#ifndef WEIR_TESTS_FUZZ_GENERATE_CLUSTER_H_
#define WEIR_TESTS_FUZZ_GENERATE_CLUSTER_H_

#include "scenarios/cluster/cluster.pb.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

struct ClusterShape {
  int least_gpus = 1;
  int most_gpus_per_node = 8;
  // Limits rates and latencies to those of real machines. With rates from 1 to
  // 1e18 bytes per second, rounding would determine the result.
  bool realistic_rates = false;
  bool may_be_invalid = true;
};

Cluster GenerateCluster(const ClusterShape& shape, Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_CLUSTER_H_
