// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sweep_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::sim::sweep_memory_test {

// Activations of 50 bytes are exchanged for gradients of 30 at second 2, and
// gathered weights of 20 are held before and after.
const std::vector<MemoryEvent> kEvents = {
    {1, MemoryClass::ACTIVATIONS, 50, 1},
    {1, MemoryClass::GATHERED_WEIGHTS, 20, 1},
    {1.5, MemoryClass::GATHERED_WEIGHTS, -20, -1},
    {2, MemoryClass::ACTIVATIONS, -50, -1},
    {2, MemoryClass::GRADIENTS, 30, 1},
    {3, MemoryClass::GRADIENTS, -30, -1}};

MemoryByKind Weights() {
  MemoryByKind lasting{};
  lasting[MemoryClass::WEIGHTS] = 100;
  return lasting;
}

TEST(SweepMemoryTest, ThePeakIsOfOneMoment) {
  const MemoryTimeline memory =
      SweepMemory(Weights(), kEvents, {.keep_samples = true});
  EXPECT_EQ(memory.peak_bytes, 100 + 50 + 20);
  EXPECT_EQ(memory.peak_at_seconds, 1);
  EXPECT_EQ(memory.peak_by_kind[MemoryClass::GRADIENTS], 0);
  EXPECT_EQ(memory.cached_bytes, 0);
  EXPECT_EQ(memory.samples.size(), 5u);
  EXPECT_EQ(memory.final_bytes, 100);
}

// Blocks of one stream do not serve another, so every stream keeps its peak.
TEST(SweepMemoryTest, StreamsKeepTheirOwnPeaks) {
  const MemoryTimeline memory =
      SweepMemory(Weights(), kEvents, {.by_stream = true});
  EXPECT_EQ(memory.peak_bytes, 100 + 50 + 20);
  EXPECT_EQ(memory.peak_bytes + memory.cached_bytes, (100 + 50) + 20 + 30);
  EXPECT_TRUE(memory.samples.empty());
}

}  // namespace weir::sim::sweep_memory_test
