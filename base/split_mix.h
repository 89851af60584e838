// SPDX-License-Identifier: Apache-2.0
// SplitMix64 (Steele, Lea and Flood, 2014, "Fast Splittable Pseudorandom Number
// Generators"): random numbers that are the same on every machine.
#ifndef WEIR_BASE_SPLIT_MIX_H_
#define WEIR_BASE_SPLIT_MIX_H_

#include <cstdint>

namespace weir {

// The difference of consecutive states: 2^64 over the golden ratio.
inline constexpr uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

// Returns the output of a state, a hash of it.
constexpr uint64_t SplitMix(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace weir

#endif  // WEIR_BASE_SPLIT_MIX_H_
