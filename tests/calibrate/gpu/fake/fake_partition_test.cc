// SPDX-License-Identifier: Apache-2.0
// Partitioning of fake GPUs.
#include <gmock/gmock.h>

#include <cstdlib>

#include "calibrate/gpu/partition.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate::fake_partition_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PartitionTest : public testing::Test {
 protected:
  void SetUp() override { Gpu() = FakeState(); }
  ~PartitionTest() override {
    EXPECT_TRUE(Gpu().parts.empty());
    EXPECT_TRUE(Gpu().streams.empty());
    EXPECT_EQ(Gpu().num_streams_without_part, 0);
  }

  static void ExpectParts(int num_parts, int each, int for_copies,
                          int min_copy_multiprocessors = 1) {
    const auto card =
        GpuPartitions::Create(0, num_parts, min_copy_multiprocessors);
    ASSERT_TRUE(card.ok()) << card.status();
    ASSERT_EQ((*card)->size(), num_parts);
    for (int i = 0; i < num_parts; ++i) {
      EXPECT_EQ((*card)->part(i).num_multiprocessors(), each);
    }
    EXPECT_EQ((*card)->copies().num_multiprocessors(), for_copies);
    EXPECT_EQ(Gpu().parts.size(), num_parts + 1);
  }
};

TEST_F(PartitionTest, EqualPartsAndARestForCopies) {
  ExpectParts(1, 128, 4);
  ExpectParts(2, 64, 4);
  ExpectParts(3, 40, 12);
  ExpectParts(4, 32, 4);
  ExpectParts(8, 16, 4);
  ExpectParts(16, 8, 4);
}

TEST_F(PartitionTest, WithoutARestAStepOfEachPartIsForCopies) {
  Gpu().num_multiprocessors = 128;
  Gpu().multiprocessor_step = 2;
  ExpectParts(2, 62, 4);
  ExpectParts(4, 30, 8);
}

TEST_F(PartitionTest, CopiesGetWhatTheyAskFor) {
  ExpectParts(4, 24, 36, 8);
  ExpectParts(2, 56, 20, 5);
}

TEST_F(PartitionTest, ARestThatIsTooSmallForAContextIsMadeLarger) {
  Gpu().least_part = 8;
  for (const bool is_invalid : {false, true}) {
    Gpu().small_part_is_invalid = is_invalid;
    ExpectParts(4, 24, 36);
  }
}

TEST_F(PartitionTest, TooManyPartsSayHowManyFit) {
  EXPECT_EQ(GpuPartitions::Create(0, 17).status(),
            absl::InvalidArgumentError(
                "Fake GPU cannot be divided into 17 partitions: it has "
                "132 multiprocessors, partitions have at least 8, and 1 are "
                "needed for copies; at most 16 partitions fit"));
  for (const int none : {0, -1}) {
    EXPECT_EQ(GpuPartitions::Create(0, none).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  Gpu().num_multiprocessors = 128;
  EXPECT_THAT(GpuPartitions::Create(0, 16).status().message(),
              HasSubstr("at most 15 partitions fit"));
}

TEST_F(PartitionTest, AnOldDriverIsNamedWithWhatItLacks) {
  Gpu().driver_version = 12030;
  const absl::Status status = GpuPartitions::Create(0, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("CUDA 12.5 or later"), HasSubstr("CUDA 12.3"),
                    HasSubstr("cuDeviceGetDevResource")));
  Gpu().driver_version = 12040;
  EXPECT_THAT(GpuPartitions::Create(0, 2).status().message(),
              HasSubstr("cuGreenCtxStreamCreate"));
  Gpu().driver_version = 12050;
  EXPECT_TRUE(GpuPartitions::Create(0, 2).ok());
}

TEST_F(PartitionTest, EachEntryThatIsMissingIsNamed) {
  for (const char* entry :
       {"cuGetErrorName", "cuDeviceGet", "cuDevSmResourceSplitByCount",
        "cuDevResourceGenerateDesc", "cuGreenCtxCreate", "cuGreenCtxDestroy",
        "cuGreenCtxGetDevResource", "cuGreenCtxStreamCreate"}) {
    Gpu().missing_entry = entry;
    const absl::Status status = GpuPartitions::Create(0, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr(entry));
  }
}

TEST_F(PartitionTest, StreamsBelongToTheirPart) {
  const auto card = GpuPartitions::Create(0, 2);
  ASSERT_TRUE(card.ok());
  const auto first = (*card)->part(0).MakeStream();
  const auto second = (*card)->part(1).MakeStream();
  const auto copies = (*card)->copies().MakeStream();
  ASSERT_TRUE(first.ok() && second.ok() && copies.ok());
  EXPECT_NE(first->get()->part, second->get()->part);
  EXPECT_EQ(first->get()->part->num_multiprocessors, 64);
  EXPECT_EQ(copies->get()->part->num_multiprocessors, 4);
}

TEST_F(PartitionTest, QueuesAreAskedForUnlessTheUserHas) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  RequestManyQueues();
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  RequestManyQueues();
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "8");
}

}  // namespace weir::calibrate::fake_partition_test
