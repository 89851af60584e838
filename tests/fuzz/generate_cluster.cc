// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_cluster.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/assets.h"

namespace weir::fuzz {
namespace {

class Generator {
 public:
  Generator(const ClusterShape& shape, Choices* choices)
      : shape_(shape), choices_(*choices) {}

  Cluster Generate() {
    Cluster cluster;
    cluster.set_name(choices_.Text());
    rail_optimized_ = choices_.OneIn(4);
    num_nics_ = choices_.Int(1, 3);
    int num_gpus = 0, num_nodes = 0;
    do {
      NodeGroup* group = cluster.add_groups();
      group->set_count(choices_.Int(1, 4));
      SetNode(group->mutable_node());
      num_nodes += static_cast<int>(group->count());
      num_gpus += static_cast<int>(group->count() * group->node().num_gpus());
    } while (num_gpus < shape_.least_gpus || choices_.OneIn(4));
    if (num_nodes > 1 || choices_.OneIn(2)) {
      SetFabric(cluster.mutable_fabric());
    }
    cluster.set_plain_links(choices_.OneIn(4));
    if (shape_.may_be_invalid && choices_.OneIn(12)) Break(&cluster);
    return cluster;
  }

 private:
  double Rate() {
    if (shape_.realistic_rates) return choices_.LogReal(1e9, 1e12);
    if (choices_.OneIn(16)) return choices_.OneIn(2) ? 1 : 1e18;
    return choices_.LogReal(1e3, 1e15);
  }

  double Latency() {
    if (choices_.OneIn(8)) return 0;
    if (!shape_.realistic_rates && choices_.OneIn(16)) return 10;
    return choices_.LogReal(1e-7, 1e-4);
  }

  void SetNode(Node* node) {
    node->set_name(choices_.Text());
    const int n = choices_.OneIn(3)
                      ? shape_.most_gpus_per_node
                      : choices_.Int(1, shape_.most_gpus_per_node);
    node->set_num_gpus(n);
    static const auto& devices =
        *new std::vector<std::string>(ListAssets("calibrate/profile/presets"));
    node->set_device(devices.empty() ? "t4" : choices_.Of(devices));
    const int wiring = choices_.Int(0, 4);
    if (wiring <= 1) {
      node->mutable_nv_switch()->set_bytes_per_second(Rate());
      node->mutable_nv_switch()->set_latency_seconds(Latency());
    } else if (wiring <= 3 && n > 1) {
      SetMesh(n, node->mutable_nv_link_mesh());
    }
    if (wiring % 2 == 0) SetPcie(n, node->mutable_pcie());
    // A rail-optimized fabric requires the same rails in all nodes.
    const int num_nics = rail_optimized_ ? num_nics_ : choices_.Int(1, 4);
    for (int i = 0; i < num_nics; ++i) {
      node->add_nics()->set_bytes_per_second(Rate());
      node->mutable_nics(i)->set_rail(i);
    }
    if (num_nics > 1 && choices_.OneIn(2)) {
      for (int gpu = 0; gpu < n; ++gpu) {
        node->mutable_nics(gpu % num_nics)->add_gpus(gpu);
      }
    }
  }

  // Generates a cycle and some chords.
  void SetMesh(int n, NvLinkMesh* mesh) {
    mesh->set_bytes_per_second_per_link(Rate());
    mesh->set_latency_seconds(Latency());
    const auto add = [&](int a, int b) {
      NvLinkMesh::Edge* edge = mesh->add_edges();
      edge->set_a(a);
      edge->set_b(b);
      edge->set_num_links(choices_.Int(1, 4));
    };
    for (int gpu = 0; gpu + 1 < n; ++gpu) add(gpu, gpu + 1);
    if (n > 2) add(0, n - 1);
    for (int a = 0; a < n; ++a) {
      for (int b = a + 2; b < n; ++b) {
        if (b - a < n - 1 && choices_.OneIn(3)) add(a, b);
      }
    }
  }

  void SetPcie(int n, PcieTree* pcie) {
    pcie->set_gpu_bytes_per_second(Rate());
    pcie->set_uplink_bytes_per_second(Rate());
    pcie->set_socket_bytes_per_second(Rate());
    pcie->set_latency_seconds(Latency());
    std::vector<int> gpus(n);
    std::iota(gpus.begin(), gpus.end(), 0);
    if (choices_.OneIn(3)) choices_.Shuffle(&gpus);
    const int num_sockets = choices_.Int(1, 2);
    for (size_t next = 0; next < gpus.size();) {
      PcieTree::Switch* pcie_switch = pcie->add_switches();
      pcie_switch->set_socket(choices_.Int(0, num_sockets - 1));
      for (int left = choices_.Int(1, 4); left > 0 && next < gpus.size();
           --left) {
        pcie_switch->add_gpus(gpus[next++]);
      }
    }
  }

  void SetFabric(Fabric* fabric) {
    fabric->set_latency_seconds(Latency());
    fabric->set_rail_optimized(rail_optimized_);
    if (choices_.OneIn(2)) return;
    fabric->set_nodes_per_leaf(choices_.Int(1, 5));
    fabric->set_hop_latency_seconds(Latency());
    fabric->set_oversubscription(choices_.OneIn(3) ? 1
                                                   : choices_.LogReal(1, 100));
  }

  void Break(Cluster* cluster) {
    Node* node = cluster->mutable_groups(0)->mutable_node();
    switch (choices_.Int(0, 6)) {
      case 0:
        return cluster->clear_groups();
      case 1:
        return node->set_num_gpus(choices_.Of<uint32_t>({0, 9, 5000}));
      case 2:
        return node->clear_nics();
      case 3:
        return node->mutable_nv_switch()->set_bytes_per_second(
            choices_.Of<double>({-1, 0, 1e300}));
      case 4:
        return node->add_nics()->add_gpus(node->num_gpus());
      case 5:
        return cluster->mutable_groups(0)->set_count(
            choices_.Of<uint32_t>({0, 2000000, 4294967295}));
      default:
        return cluster->mutable_fabric()->set_latency_seconds(-1e-9);
    }
  }

  const ClusterShape& shape_;
  Choices& choices_;
  bool rail_optimized_ = false;
  int num_nics_ = 1;
};

}  // namespace

Cluster GenerateCluster(const ClusterShape& shape, Choices* choices) {
  return Generator(shape, choices).Generate();
}

}  // namespace weir::fuzz
