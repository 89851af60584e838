// SPDX-License-Identifier: Apache-2.0
#include "scenarios/profile_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/describe_cluster.h"
#include "tests/toy_profile.h"

namespace weir::scenarios::profile_warnings_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Software SoftwareOf(const char* text) {
  Software software;
  EXPECT_TRUE(ParseTextProto("x", text, &software).ok());
  return software;
}

TEST(ProfileWarningsTest, OtherVersionsAreNamed) {
  EXPECT_THAT(ProfileWarnings(ToyProfile(), SoftwareOf("")), IsEmpty());
  EXPECT_THAT(
      ProfileWarnings(ToyProfile(), SoftwareOf("nccl: '2.28.9' cudnn: '9'")),
      IsEmpty());
  EXPECT_THAT(
      ProfileWarnings(ToyProfile(), SoftwareOf("nccl: '2.27.3' cuda: '12.8'")),
      ElementsAre("Toy-1: was measured with CUDA 13.0, not 12.8; NCCL 2.28.9, "
                  "not 2.27.3 as on the cluster"));
}

TEST(ProfileWarningsTest, KernelsOfNoKnownGpuWarn) {
  DeviceProfile toy = ToyProfile();
  toy.clear_provenance();
  EXPECT_THAT(ProfileWarnings(toy, Software()),
              ElementsAre("Toy-1: has measured kernels, but no provenance"));
  toy.clear_kernels();
  EXPECT_THAT(ProfileWarnings(toy, Software()), IsEmpty());
}

TEST(ProfileWarningsTest, AnotherGpuIsToldByNameMultiprocessorsAndMemory) {
  const DeviceProfile h200 = *calibrate::LoadDeviceProfile("h200-sxm");
  DeviceProfile measured = h200;
  measured.mutable_provenance()->set_gpu_name("NVIDIA H200");
  EXPECT_EQ(OtherGpuWarning(measured, h200), "");
  EXPECT_THAT(
      OtherGpuWarning(*calibrate::LoadDeviceProfile("h100-sxm"), h200),
      HasSubstr("the profile is for H100-SXM5-80GB, but the cluster has "
                "H200"));
  measured.mutable_provenance()->set_num_multiprocessors(144);
  EXPECT_THAT(OtherGpuWarning(measured, h200),
              HasSubstr(": 144 multiprocessors, not 132"));
}

TEST(ProfileWarningsTest, ProfilesForReplaysAndFrameworksAreNotExchanged) {
  const Cluster emulated = *LoadCluster("one-gpu", 1);
  const Cluster real = *LoadCluster("dgx-h200", 1);
  DeviceProfile profile = ToyProfile();
  profile.clear_provenance();
  // A preset predicts neither better.
  EXPECT_EQ(PurposeWarning(profile, emulated, "weir"), "");
  profile.mutable_provenance()->set_gpu_name("Toy");
  EXPECT_EQ(PurposeWarning(profile, real, "megatron-lm"), "");
  EXPECT_EQ(PurposeWarning(profile, real, "weir"), "");
  EXPECT_THAT(PurposeWarning(profile, emulated, "weir"),
              HasSubstr("Toy-1: predicts frameworks, whose attention is not"));
  profile.set_purpose(DeviceProfile::REPLAYS);
  EXPECT_EQ(PurposeWarning(profile, emulated, "weir"), "");
  EXPECT_THAT(PurposeWarning(profile, real, "megatron-lm"),
              HasSubstr("Toy-1: predicts replays, with weir's own attention, "
                        "not that of megatron-lm"));
}

TEST(ProfileWarningsTest, PartsOfGpusThatAreNoWholeGpusWarn) {
  DeviceProfile part = ToyProfile();
  part.mutable_partition_slowdown()->set_num_partitions(4);
  const Cluster eight = *LoadCluster("one-gpu", 1);
  EXPECT_THAT(PartitionWarnings(part, eight, {0, 1, 2, 3}), IsEmpty());
  EXPECT_THAT(PartitionWarnings(part, eight, {4, 5}), IsEmpty());
  EXPECT_THAT(
      PartitionWarnings(part, eight, {0, 1, 2, 3, 4}),
      ElementsAre("Toy-1: describes one of 4 partitions of a GPU, but the "
                  "partitions in use on a node belong to 2 GPUs; to share a "
                  "GPU among more ranks, use a profile with more partitions"));
  // Four partitions of one GPU, four of the next.
  EXPECT_THAT(PartitionWarnings(part, *LoadCluster("one-gpu", 2), {2, 9}),
              IsEmpty());
  part.mutable_partition_slowdown()->set_num_partitions(3);
  EXPECT_THAT(
      PartitionWarnings(part, eight, {0}),
      ElementsAre("Toy-1: describes one of 3 partitions of a GPU, but the "
                  "8 partitions of a node are 2 whole GPUs and 2 "
                  "partitions of another, whose rest is idle"));
}

TEST(ProfileWarningsTest, TheScenarioReplacesVersionsOfTheCluster) {
  Cluster cluster = *LoadCluster("dgx-a100", 1);
  cluster.mutable_software()->set_nccl("2.27.3");
  cluster.mutable_software()->set_driver("580.65.06");
  EXPECT_THAT(DescribeCluster(cluster),
              HasSubstr("\nsoftware: driver 580.65.06, NCCL 2.27.3\n"));
  EXPECT_EQ(ClusterJson(cluster)["software"]["nccl"], "2.27.3");
  cluster.mutable_software()->set_nccl("the newest");
  EXPECT_THAT(std::string(ValidateCluster("x", cluster).message()),
              HasSubstr("x: software.nccl is \"the newest\", expected a "
                        "version such as \"13.0\""));
}

}  // namespace weir::scenarios::profile_warnings_test
