// SPDX-License-Identifier: Apache-2.0
// Runs loops over large index ranges on all cores.
#ifndef WEIR_BASE_IN_PARTS_H_
#define WEIR_BASE_IN_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace weir {

// Calls run(first, last) for parts of [0, num_elements), in parallel if there
// are many elements. The result must not depend on the division into parts.
template <typename Run>
void InParts(int64_t num_elements, const Run& run) {
  constexpr int64_t kLeast = 1 << 18;
  const int64_t num_parts =
      std::clamp<int64_t>(num_elements / kLeast, 1,
                          std::max(std::thread::hardware_concurrency(), 1U));
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < num_parts; ++part) {
    threads.emplace_back(run, num_elements * part / num_parts,
                         num_elements * (part + 1) / num_parts);
  }
  run(int64_t{0}, num_elements / num_parts);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weir

#endif  // WEIR_BASE_IN_PARTS_H_
