// SPDX-License-Identifier: Apache-2.0
// Dropout masks from counter-based random bits, so that the kernels, their
// references and a recomputed mask agree element by element.
//
// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011): counter = (group, 0, 0), key = seed. One call yields 16 bits for
// each of 8 neighboring elements, which a thread loads together; an element is
// dropped if its bits are below probability x 2^16 (rounded).
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_DROPOUT_MASK_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_DROPOUT_MASK_H_

#include <cstdint>

#ifdef __CUDACC__
#define WEIR_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define WEIR_HOST_DEVICE inline
#endif

namespace weir::calibrate {

struct Philox4 {
  uint32_t words[4];
};

// Applies ten rounds; `key` is (low, high).
WEIR_HOST_DEVICE Philox4 Philox(Philox4 counter, uint64_t key) {
  uint32_t* c = counter.words;
  auto low = static_cast<uint32_t>(key);
  auto high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * c[0];
    const uint64_t second = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = static_cast<uint32_t>(second >> 32) ^ c1 ^ low;
    c[1] = static_cast<uint32_t>(second);
    c[2] = static_cast<uint32_t>(first >> 32) ^ c3 ^ high;
    c[3] = static_cast<uint32_t>(first);
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return counter;
}

// Returns 128 random bits, a function of seed and group.
WEIR_HOST_DEVICE Philox4 RandomWords(uint64_t seed, uint64_t group) {
  return Philox({{static_cast<uint32_t>(group),
                  static_cast<uint32_t>(group >> 32), 0, 0}},
                seed);
}

// Returns how many of the 2^16 values drop an element.
WEIR_HOST_DEVICE uint32_t DropThreshold(float probability) {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): also runs on GPUs.
  return static_cast<uint32_t>(probability * 65536.0F + 0.5F);
}

// Returns a mask whose bit j is set if element 8 group + j is kept.
WEIR_HOST_DEVICE uint32_t KeptOfEight(uint64_t seed, uint32_t drop_threshold,
                                      uint64_t group) {
  const Philox4 random = RandomWords(seed, group);
  uint32_t kept = 0;
  for (int j = 0; j < 8; ++j) {
    const uint32_t bits = random.words[j / 2] >> (16 * (j % 2)) & 0xFFFFu;
    kept |= static_cast<uint32_t>(bits >= drop_threshold) << j;
  }
  return kept;
}

// Returns true if element i of a tensor, counted row by row, is kept. Kept
// elements are scaled by 1 / (1 - probability).
WEIR_HOST_DEVICE bool IsKept(uint64_t seed, float probability, int64_t i) {
  const uint32_t kept = KeptOfEight(seed, DropThreshold(probability),
                                    static_cast<uint64_t>(i) / 8);
  return (kept >> (i % 8) & 1) != 0;
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_DROPOUT_MASK_H_
