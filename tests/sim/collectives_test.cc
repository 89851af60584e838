// SPDX-License-Identifier: Apache-2.0
// Tests collectives and sends as flows. Uncontended, they take exactly the time
// that the collective model gives for their links, which are written by hand
// here. Together, they share the links.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "calibrate/profile/device_profile.h"
#include "scenarios/cluster/cluster.h"
#include "sim/engine/engine.h"
#include "sim/graph/communication_lowering.h"
#include "tests/sim/measured.h"

namespace weir::sim::collectives_test {

const CollectiveModel& Model() {
  static const auto& model = *new CollectiveModel(
      calibrate::LoadDeviceProfile("h100-sxm").value().collectives());
  return model;
}

std::vector<int> Gpus(int first, int count, int stride = 1) {
  std::vector<int> gpus(count);
  for (int i = 0; i < count; ++i) gpus[i] = first + i * stride;
  return gpus;
}

// Runs tasks concurrently, each between its own start and end timers.
class Lab {
 public:
  explicit Lab(const Cluster& cluster)
      : network_(cluster), lowering_(network_, &Model(), nullptr, &tasks_) {}

  CommunicationLowering& lowering() { return lowering_; }
  const TaskGraph& tasks() const { return tasks_; }

  void Add(const std::vector<int>& gpus, const Collectives& collectives) {
    const int32_t start = tasks_.AddTimer(0);
    ends_.push_back(tasks_.AddTimer(0));
    lowering_.AddCollectives(lowering_.GroupOf(gpus), collectives, start,
                             ends_.back());
  }
  void Send(int from, int to, double bytes, double extra_seconds = 0) {
    const SendCost send = lowering_.SendBetween(from, to, bytes, extra_seconds);
    ends_.push_back(tasks_.AddFlow(send.pair, send.bytes));
  }
  std::vector<double> Run() {
    tasks_.Finish();
    const auto recording = RunTaskGraph(tasks_, network_.links());
    EXPECT_TRUE(recording.ok()) << recording.status();
    std::vector<double> seconds;
    for (int32_t end : ends_) seconds.push_back(recording->end_seconds()[end]);
    return seconds;
  }

 private:
  const scenarios::Network network_;
  TaskGraph tasks_;
  CommunicationLowering lowering_;
  std::vector<int32_t> ends_;
};

// Nodes of four GPUs on two PCIe switches, with one adapter.
Cluster PcieNodes(int num_nodes) {
  return *scenarios::LoadCluster("nc24rs-v3", num_nodes);
}

struct Shape {
  std::string name;
  Cluster cluster;
  std::vector<int> gpus;
  calibrate::CollectiveGroup links;
};

std::vector<Shape> Shapes() {
  const Cluster dgx1 = *scenarios::LoadCluster("dgx-1-v100", 2);
  const Cluster h100 = *scenarios::LoadCluster("dgx-h100", 4);
  const double nv = 450e9, pcie = 48e9;  // narrower than its adapter of 50e9
  return {
      {"two in a node",
       h100,
       Gpus(0, 2),
       {.num_ranks = 2,
        .ranks_per_node = 2,
        .intra_bytes_per_second = nv,
        .nvls = true}},
      {"a node",
       h100,
       Gpus(0, 8),
       {.num_ranks = 8,
        .ranks_per_node = 8,
        .intra_bytes_per_second = nv,
        .nvls = true}},
      {"two nodes on eight rails",
       h100,
       Gpus(0, 16),
       {.num_ranks = 16,
        .ranks_per_node = 8,
        .intra_bytes_per_second = nv,
        .inter_bytes_per_second = pcie,
        .nvls = true}},
      {"four nodes on eight rails",
       h100,
       Gpus(0, 32),
       {.num_ranks = 32,
        .ranks_per_node = 8,
        .intra_bytes_per_second = nv,
        .inter_bytes_per_second = pcie,
        .nvls = true}},
      {"one GPU of each node",
       h100,
       Gpus(3, 4, 8),
       {.num_ranks = 4, .ranks_per_node = 1, .inter_bytes_per_second = pcie}},
      {"two of four in each node",
       h100,
       {0, 1, 8, 9, 16, 17},
       {.num_ranks = 6,
        .ranks_per_node = 2,
        .intra_bytes_per_second = nv,
        .inter_bytes_per_second = pcie,
        .nvls = true}},
      {"replica order across nodes",
       h100,
       {0, 8, 1, 9},
       {.num_ranks = 4,
        .ranks_per_node = 2,
        .intra_bytes_per_second = nv,
        .inter_bytes_per_second = pcie,
        .nvls = true}},
      // One ring, on the rail that both nodes use.
      {"two here, one there",
       h100,
       {0, 1, 8},
       {.num_ranks = 3, .ranks_per_node = 1, .inter_bytes_per_second = pcie}},
      // Three NVLink cycles in both directions, at 25e9 each. GPUs 3 and 4 are
      // not connected by NVLink.
      {"a V100 mesh",
       dgx1,
       Gpus(0, 8),
       {.num_ranks = 8, .ranks_per_node = 8, .intra_bytes_per_second = 150e9}},
      {"two V100 with two NVLinks",
       dgx1,
       {0, 3},
       {.num_ranks = 2, .ranks_per_node = 2, .intra_bytes_per_second = 50e9}},
      {"two V100 without NVLink",
       dgx1,
       {0, 5},
       {.num_ranks = 2,
        .ranks_per_node = 2,
        .intra_bytes_per_second = 6e9,
        .pci = true}},
      {"PCIe", OneSwitch(1, 1, 0), {}, {}},  // set below
  };
}

TEST(CollectivesTest, AloneTakeWhatTheModelSays) {
  for (Shape& shape : Shapes()) {
    SCOPED_TRACE(shape.name);
    if (shape.name == "PCIe") {
      shape.cluster = PcieNodes(1);
      shape.gpus = Gpus(0, 2);
      shape.links = {.num_ranks = 2,
                     .ranks_per_node = 2,
                     .intra_bytes_per_second = 12e9,
                     .pci = true};
    }
    for (models::CollectiveKind kind : {models::CollectiveKind::kAllReduce,
                                        models::CollectiveKind::kAllGather,
                                        models::CollectiveKind::kReduceScatter,
                                        models::CollectiveKind::kAllToAll}) {
      for (double bytes : {1024.0, 1e6, 64e6, 16e9}) {
        SCOPED_TRACE(testing::Message() << Name(kind) << " " << bytes);
        Lab lab(shape.cluster);
        lab.Add(shape.gpus, {kind, bytes, 1});
        const double expected =
            calibrate::CheapestCollective(Model(), kind, bytes, shape.links)
                .Seconds();
        // Flows transfer whole bytes.
        const double byte = 1 / 6e9;
        EXPECT_NEAR(lab.Run()[0], expected, 1e-9 * expected + byte);
      }
    }
  }
}

TEST(CollectivesTest, SecondsAloneAreWhatTheyTakeAlone) {
  for (const Shape& shape : Shapes()) {
    if (shape.gpus.empty()) continue;
    SCOPED_TRACE(shape.name);
    const Collectives calls[] = {{models::CollectiveKind::kAllReduce, 8e9, 3},
                                 {models::CollectiveKind::kAllGather, 4e9, 2}};
    Lab lab(shape.cluster);
    const double alone =
        lab.lowering().SecondsAlone(lab.lowering().GroupOf(shape.gpus), calls);
    double sum = 0;
    for (const auto& [kind, bytes, count, routing] : calls) {
      sum += count *
             calibrate::CheapestCollective(Model(), kind, bytes, shape.links)
                 .Seconds();
    }
    // At most their sum: while one waits for the links between nodes, another
    // may use the links within the node.
    EXPECT_LE(alone, sum * (1 + 1e-9));
    EXPECT_GE(alone, 0.9 * sum);
  }
}

// Hops within and between nodes use the same PCIe links. The total is never
// less than the model for the remaining rates, and never more than both in
// sequence.
TEST(CollectivesTest, HopsThatShareAPcieTreeAreChargedTogether) {
  Lab lab(PcieNodes(2));
  const Group group = lab.lowering().GroupOf(Gpus(0, 8));
  lab.Add(Gpus(0, 8), {models::CollectiveKind::kAllReduce, 8e9, 1});
  const double expected =
      calibrate::CheapestCollective(Model(), models::CollectiveKind::kAllReduce,
                                    8e9, group.links)
          .Seconds();
  EXPECT_NEAR(lab.Run()[0], expected, 1e-8 * expected);
}

TEST(CollectivesTest, TwoOnTheSameLinksTakeTwiceTheTime) {
  const Cluster cluster = *scenarios::LoadCluster("dgx-h100", 2);
  const calibrate::CollectiveGroup links = {.num_ranks = 16,
                                            .ranks_per_node = 8,
                                            .intra_bytes_per_second = 450e9,
                                            .inter_bytes_per_second = 48e9,
                                            .nvls = true};
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      Model(), models::CollectiveKind::kAllGather, 16e9, links);
  Lab lab(cluster);
  for (int i : {0, 1}) {
    (void)i;
    lab.Add(Gpus(0, 16), {models::CollectiveKind::kAllGather, 16e9, 1});
  }
  const double expected = cost.latency_seconds + 2 * cost.LinkSeconds();
  for (double seconds : lab.Run()) {
    EXPECT_NEAR(seconds, expected, 1e-9 * expected + 1e-9);
  }
}

// Groups of different GPUs whose nodes have one adapter.
TEST(CollectivesTest, GroupsShareTheAdaptersOfTheirNodes) {
  Cluster cluster = OneSwitch(2, 450e9, 0);
  cluster.mutable_groups(0)->set_count(2);
  Nic* nic = cluster.mutable_groups(0)->mutable_node()->add_nics();
  nic->set_bytes_per_second(25e9);
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      Model(), models::CollectiveKind::kAllReduce, 8e9,
      {.num_ranks = 2, .ranks_per_node = 1, .inter_bytes_per_second = 25e9});
  Lab lab(cluster);
  lab.Add({0, 2}, {models::CollectiveKind::kAllReduce, 8e9, 1});
  lab.Add({1, 3}, {models::CollectiveKind::kAllReduce, 8e9, 1});
  const double expected = cost.latency_seconds + 2 * cost.LinkSeconds();
  for (double seconds : lab.Run()) {
    EXPECT_NEAR(seconds, expected, 1e-9 * expected);
  }
}

// Sends to a GPU of the same node, of another node on the same rail, and of
// another node on another rail.
TEST(CollectivesTest, SendsTakeWhatTheModelSays) {
  for (double bytes : {1024.0, 1e6, 8e9}) {
    for (int to : {1, 8, 9}) {
      Lab lab(*scenarios::LoadCluster("dgx-h100", 2));
      lab.Send(0, to, bytes, 0.25);
      const calibrate::CollectiveGroup links = {
          .num_ranks = 2,
          .ranks_per_node = to == 1 ? 2 : 1,
          .intra_bytes_per_second = 450e9,
          .inter_bytes_per_second = 48e9};
      const double expected =
          0.25 +
          calibrate::CheapestCollective(
              Model(), models::CollectiveKind::kSendReceive, bytes, links)
              .Seconds();
      EXPECT_NEAR(lab.Run()[0], expected, 1e-9 * expected + 1 / 48e9)
          << bytes << " to " << to;
    }
  }
}

// One port, two receivers.
TEST(CollectivesTest, SendsShareTheirPort) {
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      Model(), models::CollectiveKind::kSendReceive, 8e9,
      {.num_ranks = 2, .ranks_per_node = 2, .intra_bytes_per_second = 450e9});
  Lab lab(*scenarios::LoadCluster("dgx-h100", 1));
  lab.Send(0, 1, 8e9);
  lab.Send(0, 2, 8e9);
  const double expected = cost.latency_seconds + 2 * cost.LinkSeconds();
  for (double seconds : lab.Run()) {
    EXPECT_NEAR(seconds, expected, 1e-9 * expected);
  }
}

// SimGrid has one latency per pair of hosts, so each latency gets its own
// hosts, separate from the hosts that represent GPU memory.
TEST(CollectivesTest, EveryLatencyOfAPairHasItsOwnHosts) {
  Cluster cluster = *scenarios::LoadCluster("dgx-h100", 1);
  Lab lab(cluster);
  const double extra[] = {0, 0.5, 1, 0.5};
  for (double seconds : extra) lab.Send(0, 1, 8e9, seconds);
  lab.Send(1, 0, 8e9, 0.5);
  EXPECT_GE(lab.lowering().HostPairOf(0, true), 0);
  EXPECT_GE(lab.lowering().HostPairOf(1, false), 0);
  std::set<std::pair<int, int>> hosts;
  for (const GpuPair& pair : lab.tasks().pairs) {
    EXPECT_TRUE(hosts.insert({pair.from, pair.to}).second);
  }
  // Three latencies in one direction, one in the other, and two paths to a
  // host.
  EXPECT_EQ(hosts.size(), 6u);
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      Model(), models::CollectiveKind::kSendReceive, 8e9,
      {.num_ranks = 2, .ranks_per_node = 2, .intra_bytes_per_second = 450e9});
  const double link = cost.LinkSeconds();
  ASSERT_LT(link, 0.2);
  const std::vector<double> ends = lab.Run();
  EXPECT_NEAR(ends[0], cost.latency_seconds + link, 1e-9);
  EXPECT_NEAR(ends[1], cost.latency_seconds + 0.5 + 2 * link, 1e-9);
  EXPECT_NEAR(ends[2], cost.latency_seconds + 1 + link, 1e-9);
  EXPECT_NEAR(ends[3], ends[1], 1e-9);
  EXPECT_NEAR(ends[4], cost.latency_seconds + 0.5 + link, 1e-9);
}

// Checks that one flow represents all hops whose links no other flow uses, and
// that all end times are bit-identical.
TEST(CollectivesTest, ReducedHopsChangeNoTime) {
  for (bool send_inside : {false, true}) {
    std::vector<double> ends[2];
    int num_flows[] = {0, 0};
    for (int folded : {0, 1}) {
      Lab lab(*scenarios::LoadCluster("dgx-h100", 2));
      for (int node : {0, 1}) {
        lab.Add(Gpus(8 * node, 8),
                {models::CollectiveKind::kAllGather, 3e8, 2});
        lab.Add(Gpus(8 * node, 8),
                {models::CollectiveKind::kReduceScatter, 1e8, 1});
      }
      lab.Send(0, send_inside ? 1 : 8, 2e8);
      if (folded == 1) lab.lowering().MergeHops();
      for (int32_t task = 0; task < lab.tasks().num_tasks(); ++task) {
        num_flows[folded] += !lab.tasks().is_timer(task);
      }
      ends[folded] = lab.Run();
    }
    EXPECT_EQ(ends[0], ends[1]);
    EXPECT_EQ(num_flows[0], 4 * 8 + 1);
    // The send uses two ports of the first node.
    EXPECT_EQ(num_flows[1], send_inside ? 2 * 8 + 2 + 1 : 4 + 1);
  }
}

}  // namespace weir::sim::collectives_test
