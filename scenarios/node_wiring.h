// SPDX-License-Identifier: Apache-2.0
// The links inside one kind of node and the ways over them. GPUs, NICs and
// links are numbered from 0 inside the node; Network adds the offsets.
#ifndef WEIR_SCENARIOS_NODE_WIRING_H_
#define WEIR_SCENARIOS_NODE_WIRING_H_

#include <cstdint>
#include <map>
#include <vector>

#include "scenarios/cluster.pb.h"
#include "scenarios/network.h"

namespace weir {

struct NodeWiring {
  Node node;
  std::vector<Link> links;  // named without the node: "gpu0.nvlink.tx"

  // Where each kind of link begins; of each, tx comes before rx.
  int32_t first_nv_switch = 0;
  int32_t first_pcie_gpu = 0;
  int32_t first_pcie_uplink = 0;
  int32_t first_nic = 0;

  // Mesh, [from * num_gpus + to]; empty without one.
  std::vector<int32_t> mesh_link;   // -1: no NVLink between the two
  std::vector<int32_t> mesh_next;   // next GPU on the shortest way
  std::vector<int32_t> mesh_lanes;  // NVLinks between the two

  // PCIe; empty without it.
  std::vector<int32_t> gpu_switch;     // [gpu]
  std::vector<int32_t> switch_socket;  // [switch], sockets numbered densely
  int32_t num_sockets = 0;
  std::vector<int32_t> socket_link;  // [from * num_sockets + to]
  std::vector<int32_t> nic_switch;   // [nic], -1: at the root complex
  std::vector<int32_t> nic_socket;   // [nic]

  std::vector<std::vector<int32_t>> gpu_nics;          // [gpu], ascending
  std::map<uint32_t, std::vector<int32_t>> rail_gpus;  // ascending

  int num_gpus() const { return static_cast<int>(node.num_gpus()); }
};

// REQUIRES: the node is valid.
NodeWiring WireNode(const Node& node);

// Appends the way between two GPUs of the node: NVLink where the two have it,
// else PCIe, else NVLink through other GPUs.
void AppendGpuToGpu(const NodeWiring& wiring, int from, int to,
                    int32_t first_link, Route& route);

// What that way is made of.
Wire WireInNode(const NodeWiring& wiring, int from, int to);

// Appends the way from a GPU out of a NIC that serves it.
void AppendGpuToNic(const NodeWiring& wiring, int gpu, int nic,
                    int32_t first_link, Route& route);

// Appends the way into a GPU by a NIC that serves it.
void AppendNicToGpu(const NodeWiring& wiring, int nic, int gpu,
                    int32_t first_link, Route& route);

// Appends the way from a GPU to the root complex of its socket; nothing without
// PCIe.
void AppendGpuToHost(const NodeWiring& wiring, int gpu, int32_t first_link,
                     Route& route);

// The NIC that a GPU uses: its number modulo those that serve it.
// REQUIRES: the node has NICs.
int NicOf(const NodeWiring& wiring, int gpu);

// The rail of that NIC.
uint32_t RailOf(const NodeWiring& wiring, int gpu);

// The NIC of a rail that serves this GPU, -1 when none does.
int NicOnRail(const NodeWiring& wiring, int gpu, uint32_t rail);

// These GPUs by socket, then PCIe switch, then number.
std::vector<int> InPcieOrder(const NodeWiring& wiring, std::vector<int> gpus);

}  // namespace weir

#endif  // WEIR_SCENARIOS_NODE_WIRING_H_
