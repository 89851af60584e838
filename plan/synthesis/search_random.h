// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine.
#ifndef WEIR_PLAN_SYNTHESIS_SEARCH_RANDOM_H_
#define WEIR_PLAN_SYNTHESIS_SEARCH_RANDOM_H_

#include <cstdint>

namespace weir::plan {

// SplitMix64 (Steele et al., 2014).
class SearchRandom {
 public:
  explicit SearchRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
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
