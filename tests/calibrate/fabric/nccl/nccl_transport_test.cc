// SPDX-License-Identifier: Apache-2.0
// NCCL with one rank, if there is a GPU.
#include "calibrate/fabric/nccl/nccl_transport.h"

#include <cuda_runtime_api.h>

#include "gtest/gtest.h"

namespace weir::calibrate::nccl_transport_test {

bool HasGpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

TEST(NcclTransportTest, WithoutAGpuItSaysSo) {
  if (HasGpu()) GTEST_SKIP() << "there is a GPU";
  const auto transport = MakeNcclTransport(TransportRequest());
  EXPECT_EQ(transport.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(transport.status().message().empty());
}

TEST(NcclTransportTest, MessagesToItselfAreTimedAndMemoryIsSeen) {
  if (!HasGpu()) GTEST_SKIP() << "there is no GPU";
  auto transport = MakeNcclTransport(TransportRequest());
  ASSERT_TRUE(transport.ok()) << transport.status();
  EXPECT_FALSE((*transport)->gpu_address().empty());
  const double before = (*transport)->memory_in_use_bytes();
  const auto id = (*transport)->MakeId();
  ASSERT_TRUE(id.ok()) << id.status();
  auto joined = (*transport)->Join(*id, 1, 0);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const auto small = (*joined)->TimePair(PairMode::kOneWay, 0, 0, 1024, 20);
  ASSERT_TRUE(small.ok()) << small.status();
  // Up to 64 MiB, launching takes longer than copying: on an H100 40 to 130 us
  // for any size, and 210 us for 256 MiB.
  const auto large = (*joined)->TimePair(PairMode::kOneWay, 0, 0, 0x1p30, 20);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_GT(*small, 1e-7);
  EXPECT_GT(*large, 2 * *small);
  const auto reduced =
      (*joined)->TimeCollective(models::CollectiveKind::kAllReduce, 0x1p20, 5);
  EXPECT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_GE((*transport)->memory_in_use_bytes(), before);
}

}  // namespace weir::calibrate::nccl_transport_test
