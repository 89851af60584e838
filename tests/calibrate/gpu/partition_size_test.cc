// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/partition_size.h"

#include <gtest/gtest.h>

namespace weir::calibrate::partition_size_test {

TEST(PartitionSizeTest, GpusOfAnySizeAreDividedWithARestForCopies) {
  const struct {
    int num_multiprocessors, num_partitions, each, for_copies;
  } cases[] = {
      {132, 2, 64, 4},
      {132, 4, 32, 4},
      {132, 8, 16, 4},
      {114, 2, 56, 2},
      {114, 4, 24, 18},
      {114, 8, 8, 50},
      {108, 2, 48, 12},
      {108, 8, 8, 44},
      {148, 8, 16, 20},
      // 128 in eighths would leave none for copies.
      {128, 8, 8, 64},
      {128, 2, 56, 16},
      {67, 8, 8, 3},
  };
  for (const auto& c : cases) {
    const PartitionSize size =
        SizeOfPartitions(c.num_multiprocessors, c.num_partitions);
    EXPECT_EQ(size.num_multiprocessors, c.each)
        << c.num_multiprocessors << " by " << c.num_partitions;
    EXPECT_EQ(size.num_for_copies, c.for_copies)
        << c.num_multiprocessors << " by " << c.num_partitions;
  }
}

TEST(PartitionSizeTest, TooFewMultiprocessorsDoNotFit) {
  EXPECT_EQ(SizeOfPartitions(66, 8).num_multiprocessors, 0);
  EXPECT_EQ(SizeOfPartitions(40, 8).num_multiprocessors, 0);
  EXPECT_EQ(SizeOfPartitions(0, 2).num_multiprocessors, 0);
  // Older GPUs are divided in smaller steps.
  EXPECT_EQ(SizeOfPartitions(40, 8, 2).num_multiprocessors, 4);
}

TEST(PartitionSizeTest, CopiesCanServeAllLinksAtTheSameTime) {
  for (const int num_partitions : {2, 4, 8, 16}) {
    const int least = MinCopyMultiprocessors(num_partitions);
    const double links = 2 * num_partitions * kPartitionLinkBytesPerSecond;
    EXPECT_GE(least * kCopyBytesPerSecond, links);
    EXPECT_LT((least - 1) * kCopyBytesPerSecond, links);
  }
  EXPECT_EQ(MinCopyMultiprocessors(8), 3);
}

}  // namespace weir::calibrate::partition_size_test
