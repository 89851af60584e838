// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/one_gpu.h"

#include <map>

#include "calibrate/gpu/host/nvml.h"
#include "gtest/gtest.h"

namespace weir::calibrate::one_gpu_test {

TEST(OneGpuTest, EveryRankIsAHostOfItsOwn) {
  const auto of = [](int rank) {
    const auto pairs = OneGpuEnvironment(rank);
    return std::map<std::string, std::string>(pairs.begin(), pairs.end());
  };
  EXPECT_NE(of(0).at("NCCL_HOSTID"), of(1).at("NCCL_HOSTID"));
  EXPECT_EQ(of(0).at("NCCL_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(of(0).at("NCCL_IB_DISABLE"), "1");
}

TEST(NvmlTest, BothEndsOfALinkNameItAlike) {
  EXPECT_EQ(Nvml::LinkBetween("0000:3B:00.0", "00000000:5e:00.0"),
            "0000:3b:00.0-0000:5e:00.0");
  EXPECT_EQ(Nvml::LinkBetween("0000:5E:00.0", "00000000:3B:00.0"),
            "0000:3b:00.0-0000:5e:00.0");
}

}  // namespace weir::calibrate::one_gpu_test
