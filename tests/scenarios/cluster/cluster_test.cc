// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "base/textproto.h"

namespace weir::scenarios::cluster_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Cluster Parse(const std::string& text) {
  Cluster cluster;
  EXPECT_TRUE(ParseTextProto("test", text, &cluster).ok());
  return cluster;
}

std::vector<std::string> ProblemsOf(const Cluster& cluster) {
  const absl::Status status = ValidateCluster("c", cluster);
  if (status.ok()) return {};
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(std::string(status.message()), '\n');
}

std::vector<std::string> ProblemsOf(const std::string& text) {
  return ProblemsOf(Parse(text));
}

constexpr char kGood[] = R"(
  groups {
    count: 2
    node {
      num_gpus: 2
      device: "d"
      nv_switch { bytes_per_second: 1e9 latency_seconds: 1e-6 }
      nics { bytes_per_second: 1e9 }
    }
  }
  fabric { latency_seconds: 1e-6 }
)";

TEST(ClusterTest, AcceptsASmallClusterWithoutWarnings) {
  EXPECT_THAT(ProblemsOf(kGood), IsEmpty());
}

TEST(ClusterTest, EveryPresetIsValidAndNamedAsItsFile) {
  const std::vector<std::string> names =
      ListAssets("scenarios/cluster/presets");
  ASSERT_GE(names.size(), 6u);
  for (const std::string& name : names) {
    const auto cluster = LoadCluster(name);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(cluster->name(), name);
  }
}

TEST(ClusterTest, SeleneHas4480Gpus) {
  EXPECT_EQ(NumGpus(*LoadCluster("selene")), 4480);
  EXPECT_EQ(NumNodes(*LoadCluster("selene")), 560);
}

TEST(ClusterTest, NumNodesReplacesTheCount) {
  EXPECT_EQ(NumGpus(*LoadCluster("p3-16xlarge")), 64);
  EXPECT_EQ(NumGpus(*LoadCluster("p3-16xlarge", 3)), 24);
}

TEST(ClusterTest, UnknownNameListsThePresets) {
  const absl::Status status = LoadCluster("dgx-9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("p3-16xlarge"));
}

TEST(ClusterTest, EmptyClusterNamesItsGroups) {
  EXPECT_THAT(ProblemsOf(""),
              ElementsAre("c: groups is empty, expected a group of nodes"));
}

TEST(ClusterTest, EveryBadBandwidthIsNamedAtOnce) {
  Cluster cluster = Parse(kGood);
  Node& node = *cluster.mutable_groups(0)->mutable_node();
  node.mutable_nv_switch()->set_bytes_per_second(-1);
  node.mutable_nics(0)->set_bytes_per_second(std::nan(""));
  Nic& nic = *node.add_nics();
  nic.set_bytes_per_second(0);
  node.add_nics()->set_bytes_per_second(
      std::numeric_limits<double>::infinity());
  node.add_nics()->set_bytes_per_second(1e300);
  EXPECT_THAT(
      ProblemsOf(cluster),
      ElementsAre("c: groups[0].node.nv_switch.bytes_per_second is -1, "
                  "expected a number above 0",
                  "c: groups[0].node.nics[0].bytes_per_second is nan, "
                  "expected a number above 0",
                  "c: groups[0].node.nics[1].bytes_per_second is 0, "
                  "expected a number above 0",
                  "c: groups[0].node.nics[2].bytes_per_second is inf, "
                  "expected a number above 0",
                  "c: groups[0].node.nics[3].bytes_per_second is 1e+300, "
                  "expected 1 to 1e+18"));
}

TEST(ClusterTest, BadLatenciesAreNamed) {
  Cluster cluster = Parse(kGood);
  cluster.mutable_groups(0)
      ->mutable_node()
      ->mutable_nv_switch()
      ->set_latency_seconds(-1e-6);
  cluster.mutable_fabric()->set_latency_seconds(std::nan(""));
  cluster.mutable_fabric()->set_hop_latency_seconds(
      std::numeric_limits<double>::infinity());
  EXPECT_THAT(
      ProblemsOf(cluster),
      ElementsAre(HasSubstr("groups[0].node.nv_switch.latency_seconds is -1"),
                  HasSubstr("fabric.latency_seconds is nan"),
                  HasSubstr("fabric.hop_latency_seconds is inf")));
}

TEST(ClusterTest, BadMeshEdgesAreNamed) {
  EXPECT_THAT(
      ProblemsOf(R"(groups { count: 1 node { num_gpus: 3 device: "d"
        nv_link_mesh { bytes_per_second_per_link: 1
          edges { a: 0 b: 0 num_links: 1 }
          edges { a: 0 b: 1 num_links: 0 }
          edges { a: 1 b: 0 num_links: 1 }
          edges { a: 1 b: 3 num_links: 1 } } } })"),
      ElementsAre(
          "c: groups[0].node.nv_link_mesh.edges[0] joins GPU 0 to itself, "
          "expected two GPUs",
          "c: groups[0].node.nv_link_mesh.edges[1].num_links is 0, expected 1 "
          "to 1024",
          "c: groups[0].node.nv_link_mesh.edges[2] joins GPUs 1 and 0 again, "
          "expected one edge with num_links",
          "c: groups[0].node.nv_link_mesh.edges[3].b is GPU 3, but the node "
          "has 3 (0 to 2)",
          "c: groups[0].node.nv_link_mesh does not connect GPU 2 with GPU 0, "
          "and the node has no pcie"));
}

TEST(ClusterTest, MeshWithGapsIsFineWherePcieFillsThem) {
  EXPECT_THAT(ProblemsOf(R"(groups { count: 1 node { num_gpus: 3 device: "d"
        nv_link_mesh { bytes_per_second_per_link: 1
          edges { a: 0 b: 1 num_links: 1 } }
        pcie { switches { gpus: [0, 1, 2] }
          gpu_bytes_per_second: 1 uplink_bytes_per_second: 1 } } })"),
              IsEmpty());
}

TEST(ClusterTest, BadPcieTreesAreNamed) {
  EXPECT_THAT(
      ProblemsOf(R"(groups { count: 1 node { num_gpus: 3 device: "d"
        pcie { switches { gpus: [0, 1] } switches { gpus: [1, 7] socket: 1 }
               switches { socket: 99 } gpu_bytes_per_second: 1 } } })"),
      ElementsAre(
          "c: groups[0].node.pcie.switches[1].gpus[0] is GPU 1 again, expected "
          "each GPU under one switch",
          "c: groups[0].node.pcie.switches[1].gpus[1] is GPU 7, but the node "
          "has 3 (0 to 2)",
          "c: groups[0].node.pcie.switches[2].gpus is empty, expected GPU "
          "numbers",
          "c: groups[0].node.pcie.switches[2].socket is 99, expected 0 to 7",
          "c: groups[0].node.pcie.switches do not list GPU 2, expected every "
          "GPU of the node",
          "c: groups[0].node.pcie.uplink_bytes_per_second is 0, expected a "
          "number above 0",
          "c: groups[0].node.pcie.socket_bytes_per_second is 0, expected a "
          "number above 0"));
}

TEST(ClusterTest, GpuWithoutNicIsNamed) {
  Cluster cluster = Parse(kGood);
  Nic& nic = *cluster.mutable_groups(0)->mutable_node()->mutable_nics(0);
  nic.add_gpus(0);
  nic.add_gpus(0);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre("c: groups[0].node.nics[0].gpus[1] is GPU 0 again, "
                          "expected it once",
                          "c: groups[0].node.nics do not serve GPU 1, expected "
                          "every GPU of the node to have one"));
}

TEST(ClusterTest, SeveralNodesNeedNicsAndFabric) {
  EXPECT_THAT(
      ProblemsOf(R"(groups { count: 2 node { num_gpus: 1 device: "d" } })"),
      ElementsAre("c: groups[0].node.nics is empty, expected a NIC where there "
                  "are several nodes",
                  "c: fabric is missing, required for several nodes"));
  EXPECT_THAT(
      ProblemsOf(R"(groups { count: 1 node { num_gpus: 1 device: "d" } })"),
      IsEmpty());
}

TEST(ClusterTest, SenselessNodesAreNamed) {
  EXPECT_THAT(
      ProblemsOf(R"(groups { node { num_gpus: 2 } }
                            groups { count: 1 node { } })"),
      ElementsAre("c: groups[0].count is 0, expected at least 1 node",
                  "c: groups[0].node.device is empty, expected a device "
                  "profile",
                  "c: groups[0].node has 2 GPUs and no link between them, "
                  "expected nv_switch, nv_link_mesh or pcie",
                  "c: groups[1].node.num_gpus is 0, expected 1 to 1024",
                  "c: groups[1].node.device is empty, expected a device "
                  "profile"));
}

TEST(ClusterTest, OnlyEmulatedGpusNeedNoDevice) {
  const std::string node = "groups { count: 1 node { num_gpus: 1 } }";
  EXPECT_THAT(ProblemsOf(node), testing::SizeIs(1));
  EXPECT_THAT(ProblemsOf(node + " plain_links: true"), IsEmpty());
}

TEST(ClusterTest, SenselessFabricsAreNamed) {
  Cluster cluster = Parse(kGood);
  cluster.mutable_fabric()->set_oversubscription(0.5);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre("c: fabric.oversubscription is 0.5, expected 1 to "
                          "1000000"));
  cluster.mutable_fabric()->set_oversubscription(2);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre(HasSubstr("is 2 without nodes_per_leaf")));
}

TEST(ClusterTest, RailsMustBeTheSameInAllGroups) {
  Cluster cluster = Parse(kGood);
  *cluster.add_groups() = cluster.groups(0);
  cluster.mutable_groups(1)->mutable_node()->mutable_nics(0)->set_rail(1);
  EXPECT_THAT(ProblemsOf(cluster), IsEmpty());
  cluster.mutable_fabric()->set_rail_optimized(true);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre(HasSubstr(
                  "groups[1].node.nics have rails {1}, expected those of "
                  "groups[0] {0}")));
}

TEST(ClusterTest, AbsurdCountsAreRefusedBeforeMemoryIsTaken) {
  Cluster cluster = Parse(kGood);
  cluster.mutable_groups(0)->set_count(4000000000u);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre("c: groups have 8000000000 GPUs, expected at most "
                          "1048576"));
  cluster.mutable_groups(0)->mutable_node()->set_num_gpus(4000000000u);
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre("c: groups[0].node.num_gpus is 4000000000, expected "
                          "1 to 1024",
                          HasSubstr("GPUs, expected at most 1048576")));
}

TEST(ClusterTest, MoreLinksThanMemoryAreRefused) {
  Cluster cluster = Parse(kGood);
  cluster.mutable_groups(0)->set_count(200000);
  for (int i = 0; i < 50; ++i) {
    *cluster.mutable_groups(0)->mutable_node()->add_nics() =
        cluster.groups(0).node().nics(0);
  }
  EXPECT_THAT(ProblemsOf(cluster),
              ElementsAre("c: groups have 21200000 links, expected at most "
                          "16777216"));
}

}  // namespace weir::scenarios::cluster_test
