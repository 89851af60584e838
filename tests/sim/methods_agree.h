// SPDX-License-Identifier: Apache-2.0
// Checks that the three methods agree on a scenario.
#ifndef WEIR_TESTS_SIM_METHODS_AGREE_H_
#define WEIR_TESTS_SIM_METHODS_AGREE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "results/result.pb.h"
#include "sim/fast/fast_simulator.h"

namespace weir::sim {

// Expects the step time and the peak memory of every rank to be those of the
// full simulation, to 1e-9 relative, and the bound on the step time to be below
// it by at most 70 %.
inline void ExpectMethodsAgree(const Result& full, const FastEstimate& fast,
                               double bound_seconds) {
  const double seconds = full.batch_seconds();
  EXPECT_NEAR(fast.batch_seconds, seconds, 1e-9 * seconds);
  EXPECT_LE(bound_seconds, seconds * (1 + 1e-9));
  EXPECT_GT(bound_seconds, 0.3 * seconds);
  std::map<uint32_t, double> peaks;
  for (const RankResult& rank : full.ranks()) {
    double& peak = peaks[rank.rank()];
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  for (const auto& [rank, peak] : peaks) {
    EXPECT_NEAR(fast.peak_bytes[rank], peak, 1e-9 * peak);
  }
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_METHODS_AGREE_H_
