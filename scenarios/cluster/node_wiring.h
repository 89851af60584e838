// SPDX-License-Identifier: Apache-2.0
// Links and routes inside a kind of node. GPUs, NICs and links are numbered
// from 0 within the node; Network adds the offsets.
#ifndef WEIR_SCENARIOS_CLUSTER_NODE_WIRING_H_
#define WEIR_SCENARIOS_CLUSTER_NODE_WIRING_H_

#include <cstdint>
#include <map>
#include <vector>

#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/network.h"

namespace weir::scenarios {

struct NodeWiring {
  Node node;
  std::vector<Link> links;  // named without the node: "gpu0.nvlink.tx"

  // Index of the first link of each kind; tx precedes rx.
  int32_t first_nv_switch = 0;
  int32_t first_pcie_gpu = 0;
  int32_t first_pcie_uplink = 0;
  int32_t first_nic = 0;

  // NVLink mesh, [from * num_gpus + to]; empty without a mesh.
  std::vector<int32_t> mesh_link;   // -1: no NVLink between the two
  std::vector<int32_t> mesh_next;   // next GPU on the shortest route
  std::vector<int32_t> mesh_lanes;  // NVLinks between the two

  // PCIe; empty without PCIe.
  std::vector<int32_t> gpu_switch;     // [gpu]
  std::vector<int32_t> switch_socket;  // [switch], sockets numbered densely
  int32_t num_sockets = 0;
  std::vector<int32_t> socket_link;  // [from * num_sockets + to]
  std::vector<int32_t> nic_switch;   // [nic], -1: attached to the root complex
  std::vector<int32_t> nic_socket;   // [nic]

  std::vector<std::vector<int32_t>> gpu_nics;          // [gpu], ascending
  std::map<uint32_t, std::vector<int32_t>> rail_gpus;  // [rail], ascending GPUs

  int num_gpus() const { return static_cast<int>(node.num_gpus()); }
};

// Requires: the node is valid.
NodeWiring WireNode(const Node& node);

// Appends the route between two GPUs of the node: a direct NVLink if there is
// one, otherwise PCIe, otherwise NVLinks through other GPUs.
void AppendGpuToGpu(const NodeWiring& wiring, int from, int to,
                    int32_t first_link, Route& route);

// Returns the kind of links on that route.
Wire WireInNode(const NodeWiring& wiring, int from, int to);

// Appends the route from a GPU to the network through a NIC that serves it.
void AppendGpuToNic(const NodeWiring& wiring, int gpu, int nic,
                    int32_t first_link, Route& route);

// Appends the route from the network to a GPU through a NIC that serves it.
void AppendNicToGpu(const NodeWiring& wiring, int nic, int gpu,
                    int32_t first_link, Route& route);

// Appends the route from a GPU to the root complex of its socket; nothing
// without PCIe.
void AppendGpuToHost(const NodeWiring& wiring, int gpu, int32_t first_link,
                     Route& route);

// Returns the NIC that a GPU uses: number `gpu` modulo the number of NICs that
// serve it. Requires: the node has NICs.
int NicOf(const NodeWiring& wiring, int gpu);

// Returns the rail of the NIC that a GPU uses.
uint32_t RailOf(const NodeWiring& wiring, int gpu);

// Returns the NIC of a rail that serves this GPU, or -1 if there is none.
int NicOnRail(const NodeWiring& wiring, int gpu, uint32_t rail);

// Sorts GPUs by socket, then PCIe switch, then number.
std::vector<int> InPcieOrder(const NodeWiring& wiring, std::vector<int> gpus);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CLUSTER_NODE_WIRING_H_
