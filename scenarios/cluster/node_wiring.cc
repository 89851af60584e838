// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/node_wiring.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace weir::scenarios {
namespace {

// Adds "<name>.tx" and "<name>.rx".
void AddPair(NodeWiring& wiring, const std::string& name,
             double bytes_per_second) {
  wiring.links.push_back({name + ".tx", bytes_per_second});
  wiring.links.push_back({name + ".rx", bytes_per_second});
}

int32_t NextLink(const NodeWiring& wiring) {
  return static_cast<int32_t>(wiring.links.size());
}

void WireNvSwitch(NodeWiring& wiring) {
  wiring.first_nv_switch = NextLink(wiring);
  for (int gpu = 0; gpu < wiring.num_gpus(); ++gpu) {
    AddPair(wiring, absl::StrCat("gpu", gpu, ".nvlink"),
            wiring.node.nv_switch().bytes_per_second());
  }
}

// Fills mesh_next toward `to` by breadth-first search; ties go to the lowest
// number.
void FindWaysTo(NodeWiring& wiring, int to) {
  const int n = wiring.num_gpus();
  std::vector<int> order = {to};
  wiring.mesh_next[to * n + to] = to;
  for (size_t done = 0; done < order.size(); ++done) {
    const int via = order[done];
    for (int from = 0; from < n; ++from) {
      int32_t& next = wiring.mesh_next[from * n + to];
      if (next >= 0 || wiring.mesh_link[from * n + via] < 0) continue;
      next = via;
      order.push_back(from);
    }
  }
}

void WireMesh(NodeWiring& wiring) {
  const NvLinkMesh& mesh = wiring.node.nv_link_mesh();
  const int n = wiring.num_gpus();
  wiring.mesh_link.assign(size_t{1} * n * n, -1);
  wiring.mesh_next.assign(size_t{1} * n * n, -1);
  wiring.mesh_lanes.assign(size_t{1} * n * n, 0);
  for (const NvLinkMesh::Edge& edge : mesh.edges()) {
    for (const auto& [from, to] :
         {std::pair(edge.a(), edge.b()), std::pair(edge.b(), edge.a())}) {
      wiring.mesh_link[from * n + to] = NextLink(wiring);
      wiring.mesh_lanes[from * n + to] = edge.num_links();
      wiring.links.push_back(
          {absl::StrCat("gpu", from, "-gpu", to, ".nvlink"),
           edge.num_links() * mesh.bytes_per_second_per_link()});
    }
  }
  for (int to = 0; to < n; ++to) FindWaysTo(wiring, to);
}

void WireSockets(NodeWiring& wiring) {
  const int n = wiring.num_sockets;
  wiring.socket_link.assign(size_t{1} * n * n, -1);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      wiring.socket_link[from * n + to] = NextLink(wiring);
      wiring.links.push_back({absl::StrCat("socket", from, "-socket", to),
                              wiring.node.pcie().socket_bytes_per_second()});
    }
  }
}

void WirePcie(NodeWiring& wiring) {
  const PcieTree& pcie = wiring.node.pcie();
  wiring.first_pcie_gpu = NextLink(wiring);
  for (int gpu = 0; gpu < wiring.num_gpus(); ++gpu) {
    AddPair(wiring, absl::StrCat("gpu", gpu, ".pcie"),
            pcie.gpu_bytes_per_second());
  }
  wiring.first_pcie_uplink = NextLink(wiring);
  wiring.gpu_switch.assign(wiring.num_gpus(), 0);
  std::map<uint32_t, int32_t> dense;
  for (const auto& pcie_switch : pcie.switches()) dense[pcie_switch.socket()];
  for (auto& [socket, index] : dense) index = wiring.num_sockets++;
  for (int i = 0; i < pcie.switches_size(); ++i) {
    AddPair(wiring, absl::StrCat("pcie", i), pcie.uplink_bytes_per_second());
    wiring.switch_socket.push_back(dense[pcie.switches(i).socket()]);
    for (const uint32_t gpu : pcie.switches(i).gpus())
      wiring.gpu_switch[gpu] = i;
  }
  WireSockets(wiring);
}

// Attaches a NIC to the PCIe switch that its GPUs share, otherwise to the root
// complex of its first GPU.
void AttachNic(NodeWiring& wiring, const std::vector<int>& gpus) {
  const int first = wiring.gpu_switch[gpus[0]];
  const bool one_switch = std::all_of(gpus.begin(), gpus.end(), [&](int gpu) {
    return wiring.gpu_switch[gpu] == first;
  });
  wiring.nic_switch.push_back(one_switch ? first : -1);
  wiring.nic_socket.push_back(wiring.switch_socket[first]);
}

void WireNics(NodeWiring& wiring) {
  wiring.first_nic = NextLink(wiring);
  wiring.gpu_nics.resize(wiring.num_gpus());
  for (int i = 0; i < wiring.node.nics_size(); ++i) {
    const Nic& nic = wiring.node.nics(i);
    AddPair(wiring, absl::StrCat("nic", i), nic.bytes_per_second());
    std::vector<int> gpus(nic.gpus().begin(), nic.gpus().end());
    if (gpus.empty()) {
      for (int gpu = 0; gpu < wiring.num_gpus(); ++gpu) gpus.push_back(gpu);
    }
    for (const int gpu : gpus) wiring.gpu_nics[gpu].push_back(i);
    if (wiring.node.has_pcie()) AttachNic(wiring, gpus);
    std::vector<int32_t>& on_rail = wiring.rail_gpus[nic.rail()];
    on_rail.insert(on_rail.end(), gpus.begin(), gpus.end());
  }
  for (auto& [rail, gpus] : wiring.rail_gpus) {
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  }
}

void AppendPcie(const NodeWiring& wiring, int from, int to, int32_t first_link,
                Route& route) {
  const PcieTree& pcie = wiring.node.pcie();
  const int from_switch = wiring.gpu_switch[from];
  const int to_switch = wiring.gpu_switch[to];
  route.links.push_back(first_link + wiring.first_pcie_gpu + 2 * from);
  int num_switches = 1;
  if (from_switch != to_switch) {
    const int from_socket = wiring.switch_socket[from_switch];
    const int to_socket = wiring.switch_socket[to_switch];
    route.links.push_back(first_link + wiring.first_pcie_uplink +
                          2 * from_switch);
    num_switches = 3;  // including the root complex
    if (from_socket != to_socket) {
      route.links.push_back(
          first_link +
          wiring.socket_link[from_socket * wiring.num_sockets + to_socket]);
      num_switches = 4;
    }
    route.links.push_back(first_link + wiring.first_pcie_uplink +
                          2 * to_switch + 1);
  }
  route.links.push_back(first_link + wiring.first_pcie_gpu + 2 * to + 1);
  route.latency_seconds += num_switches * pcie.latency_seconds();
}

// Appends the PCIe links from a GPU to a NIC or, if inbound, from the NIC to
// the GPU.
void AppendPcieToNic(const NodeWiring& wiring, int gpu, int nic, bool inbound,
                     int32_t first_link, Route& route) {
  if (!wiring.node.has_pcie()) return;
  const int rx = inbound ? 1 : 0;
  std::vector<int32_t> links = {first_link + wiring.first_pcie_gpu + 2 * gpu +
                                rx};
  int num_switches = 1;
  const int own_switch = wiring.gpu_switch[gpu];
  if (wiring.nic_switch[nic] != own_switch) {
    links.push_back(first_link + wiring.first_pcie_uplink + 2 * own_switch +
                    rx);
    num_switches = 2;
    int near = wiring.switch_socket[own_switch];
    int far = wiring.nic_socket[nic];
    if (near != far) {
      if (inbound) std::swap(near, far);
      links.push_back(first_link +
                      wiring.socket_link[near * wiring.num_sockets + far]);
      num_switches = 3;
    }
  }
  if (inbound) std::reverse(links.begin(), links.end());
  route.links.insert(route.links.end(), links.begin(), links.end());
  route.latency_seconds += num_switches * wiring.node.pcie().latency_seconds();
}

}  // namespace

NodeWiring WireNode(const Node& node) {
  NodeWiring wiring;
  wiring.node = node;
  if (node.has_nv_switch()) WireNvSwitch(wiring);
  if (node.has_nv_link_mesh()) WireMesh(wiring);
  if (node.has_pcie()) WirePcie(wiring);
  WireNics(wiring);
  return wiring;
}

void AppendGpuToGpu(const NodeWiring& wiring, int from, int to,
                    int32_t first_link, Route& route) {
  if (from == to) return;
  if (wiring.node.has_nv_switch()) {
    const int32_t first = first_link + wiring.first_nv_switch;
    route.links.push_back(first + 2 * from);
    route.links.push_back(first + 2 * to + 1);
    route.latency_seconds += wiring.node.nv_switch().latency_seconds();
    return;
  }
  const int n = wiring.num_gpus();
  const bool direct =
      !wiring.mesh_link.empty() && wiring.mesh_link[from * n + to] >= 0;
  if (!direct && wiring.node.has_pcie()) {
    AppendPcie(wiring, from, to, first_link, route);
    return;
  }
  for (int gpu = from; gpu != to;) {
    const int next = direct ? to : wiring.mesh_next[gpu * n + to];
    route.links.push_back(first_link + wiring.mesh_link[gpu * n + next]);
    route.latency_seconds += wiring.node.nv_link_mesh().latency_seconds();
    gpu = next;
  }
}

Wire WireInNode(const NodeWiring& wiring, int from, int to) {
  if (wiring.node.has_nv_switch()) return Wire::kNvSwitch;
  const int n = wiring.num_gpus();
  const bool direct =
      !wiring.mesh_link.empty() && wiring.mesh_link[from * n + to] >= 0;
  return !direct && wiring.node.has_pcie() ? Wire::kPcie : Wire::kNvLink;
}

void AppendGpuToNic(const NodeWiring& wiring, int gpu, int nic,
                    int32_t first_link, Route& route) {
  AppendPcieToNic(wiring, gpu, nic, /*inbound=*/false, first_link, route);
  route.links.push_back(first_link + wiring.first_nic + 2 * nic);
}

void AppendNicToGpu(const NodeWiring& wiring, int nic, int gpu,
                    int32_t first_link, Route& route) {
  route.links.push_back(first_link + wiring.first_nic + 2 * nic + 1);
  AppendPcieToNic(wiring, gpu, nic, /*inbound=*/true, first_link, route);
}

void AppendGpuToHost(const NodeWiring& wiring, int gpu, int32_t first_link,
                     Route& route) {
  if (!wiring.node.has_pcie()) return;
  route.links.push_back(first_link + wiring.first_pcie_gpu + 2 * gpu);
  route.links.push_back(first_link + wiring.first_pcie_uplink +
                        2 * wiring.gpu_switch[gpu]);
  // The switch and the root complex.
  route.latency_seconds += 2 * wiring.node.pcie().latency_seconds();
}

int NicOf(const NodeWiring& wiring, int gpu) {
  const std::vector<int32_t>& nics = wiring.gpu_nics[gpu];
  return nics[gpu % nics.size()];
}

uint32_t RailOf(const NodeWiring& wiring, int gpu) {
  return wiring.node.nics(NicOf(wiring, gpu)).rail();
}

int NicOnRail(const NodeWiring& wiring, int gpu, uint32_t rail) {
  for (const int nic : wiring.gpu_nics[gpu]) {
    if (wiring.node.nics(nic).rail() == rail) return nic;
  }
  return -1;
}

std::vector<int> InPcieOrder(const NodeWiring& wiring, std::vector<int> gpus) {
  if (!wiring.node.has_pcie()) {
    std::sort(gpus.begin(), gpus.end());
    return gpus;
  }
  const auto key = [&](int gpu) {
    const int pcie_switch = wiring.gpu_switch[gpu];
    return std::tuple(wiring.switch_socket[pcie_switch], pcie_switch, gpu);
  };
  std::sort(gpus.begin(), gpus.end(),
            [&](int a, int b) { return key(a) < key(b); });
  return gpus;
}

}  // namespace weir::scenarios
