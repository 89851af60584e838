// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine.
#ifndef WEIR_PLAN_SYNTHESIS_SEARCH_RANDOM_H_
#define WEIR_PLAN_SYNTHESIS_SEARCH_RANDOM_H_

#include <cstdint>

#include "base/split_mix.h"

namespace weir::plan {

// Returns the numbers of SplitMix64.
class SearchRandom {
 public:
  explicit SearchRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += kSplitMixStep;
    return SplitMix(state_);
  }
  // Returns a number from 0 to n-1.
  int Below(int n) {
    return static_cast<int>(((Next() >> 32) * static_cast<uint64_t>(n)) >> 32);
  }

 private:
  uint64_t state_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SEARCH_RANDOM_H_
