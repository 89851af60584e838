// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/describe_cluster.h"

#include <gtest/gtest.h>

#include "base/assets.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios::describe_cluster_test {

Cluster Preset(const std::string& name, int num_nodes = 0) {
  const auto cluster = LoadCluster(name, num_nodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *cluster;
}

TEST(DescribeTest, P3ShowsItsMeshAndItsOneAdapter) {
  EXPECT_EQ(DescribeCluster(Preset("p3-16xlarge")),
            R"(p3-16xlarge: 8 nodes, 64 GPUs

8 x p3.16xlarge: 8 GPUs (v100-sxm2-16gb)
  NVLink  mesh of 24 links, 25 GB/s each way, 3.4 us
            to  0  1  2  3  4  5  6  7
          gpu0  -  1  1  2  2  .  .  .
          gpu1  1  -  2  1  .  2  .  .
          gpu2  1  2  -  2  .  .  1  .
          gpu3  2  1  2  -  .  .  .  1
          gpu4  2  .  .  .  -  1  1  2
          gpu5  .  2  .  .  1  -  2  1
          gpu6  .  .  1  .  1  2  -  2
          gpu7  .  .  .  1  2  1  2  -
  PCIe    GPU 12 GB/s, uplink 12 GB/s, between sockets 6 GB/s, 1.9 us per switch
       socket0 -+- pcie0 --- gpu0 gpu1
                +- pcie1 --- gpu2 gpu3
                +- nic0
       socket1 -+- pcie2 --- gpu4 gpu5
                +- pcie3 --- gpu6 gpu7
  NICs    1 x 3.125 GB/s (25 Gb/s), shared by 8 GPUs

fabric: one switch, 30 us, non-blocking
bisection: 12.5 GB/s in each direction between 4 and 4 nodes
)");
}

TEST(DescribeTest, DgxH100ShowsItsRails) {
  EXPECT_EQ(DescribeCluster(Preset("dgx-h100", 64)),
            R"(dgx-h100: 64 nodes, 512 GPUs

64 x DGX H100: 8 GPUs (h100-sxm)
  NVLink  switch, 450 GB/s per GPU each way, 3.4 us
  PCIe    GPU 48 GB/s, uplink 48 GB/s, between sockets 22 GB/s, 1.9 us per
          switch
       socket0 -+- pcie0 --- gpu0 gpu1 nic0 nic1
                +- pcie1 --- gpu2 gpu3 nic2 nic3
       socket1 -+- pcie2 --- gpu4 gpu5 nic4 nic5
                +- pcie3 --- gpu6 gpu7 nic6 nic7
  NICs    8 x 50 GB/s (400 Gb/s), of 1 GPU

fabric: leaf switches of 32 nodes, 10 us, over the spine 10.3 us,
  rail-optimized, non-blocking
bisection: 12.8 TB/s in each direction between 32 and 32 nodes
)");
}

TEST(DescribeTest, OversubscriptionLowersTheBisection) {
  Cluster cluster = Preset("dgx-h100", 64);
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(cluster), 32 * 8 * 50e9);
  cluster.mutable_fabric()->set_oversubscription(4);
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(cluster), 8 * 8 * 50e9);
  // Halves that fit below one leaf switch do not need its uplinks.
  cluster.mutable_groups(0)->set_count(16);
  EXPECT_DOUBLE_EQ(BisectionBytesPerSecond(cluster), 8 * 8 * 50e9);
  cluster.mutable_groups(0)->set_count(1);
  EXPECT_EQ(BisectionBytesPerSecond(cluster), 0);
}

TEST(DescribeTest, JsonHasNumbersAsNumbers) {
  const nlohmann::ordered_json json = ClusterJson(Preset("p3-16xlarge"));
  EXPECT_EQ(json["name"], "p3-16xlarge");
  EXPECT_EQ(json["num_gpus"], 64);
  EXPECT_EQ(json["groups"][0]["count"], 8);
  const auto& node = json["groups"][0]["node"];
  EXPECT_EQ(node["nics"][0]["bytes_per_second"], 3.125e9);
  EXPECT_TRUE(node["nics"][0]["gpus"].is_array());
  EXPECT_EQ(node["nv_link_mesh"]["edges"][2]["num_links"], 2);
  EXPECT_EQ(node["pcie"]["switches"][3]["gpus"][1], 7);
  EXPECT_TRUE(node["pcie"]["latency_seconds"].is_number_float());
  EXPECT_EQ(json["fabric"]["rail_optimized"], false);
  EXPECT_EQ(json["bisection_bytes_per_second"], 12.5e9);
}

TEST(DescribeTest, EveryPresetCanBeShown) {
  for (const std::string& name : ListAssets("scenarios/cluster/presets")) {
    EXPECT_NE(DescribeCluster(Preset(name)).find(name + ": "),
              std::string::npos);
    EXPECT_FALSE(ClusterJson(Preset(name)).dump(2).empty());
  }
}

TEST(DescribeTest, NamesThatAreNoUtf8StillGiveJson) {
  Cluster cluster = Preset("dgx-a100");
  cluster.set_name("a\xff");
  EXPECT_FALSE(ClusterJson(cluster).dump().empty());
}

}  // namespace weir::scenarios::describe_cluster_test
