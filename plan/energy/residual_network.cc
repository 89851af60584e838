// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/residual_network.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cstdint>

namespace weir::plan {
namespace {

using Traits =
    boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, int64_t,
                    boost::property<boost::edge_residual_capacity_t, int64_t,
                                    boost::property<boost::edge_reverse_t,
                                                    Traits::edge_descriptor>>>>;

}  // namespace

struct ResidualNetwork::Impl {
  Impl(int num_vertices, int sink)
      : start(num_vertices),
        sink(sink),
        network(num_vertices + 1),
        capacity(get(boost::edge_capacity, network)),
        residual(get(boost::edge_residual_capacity, network)),
        reverse(get(boost::edge_reverse, network)),
        predecessor(num_vertices + 1),
        color(num_vertices + 1),
        distance(num_vertices + 1) {}

  int start, sink;
  Graph network;
  boost::property_map<Graph, boost::edge_capacity_t>::type capacity;
  boost::property_map<Graph, boost::edge_residual_capacity_t>::type residual;
  boost::property_map<Graph, boost::edge_reverse_t>::type reverse;
  std::vector<Traits::edge_descriptor> forward, backward;  // by arc
  std::vector<Traits::edge_descriptor> predecessor;
  std::vector<boost::default_color_type> color;
  std::vector<int64_t> distance;
};

// An arc from a start of its own to the source limits the flow, so that sums do
// not overflow.
ResidualNetwork::ResidualNetwork(int num_vertices, int source, int sink)
    : impl_(std::make_unique<Impl>(num_vertices, sink)) {
  AddArc(impl_->start, source);
  SetCapacity(-1, kUnlimited, 0);
}

ResidualNetwork::~ResidualNetwork() = default;

void ResidualNetwork::AddArc(int from, int to) {
  const auto edge = add_edge(from, to, impl_->network).first;
  const auto back = add_edge(to, from, impl_->network).first;
  impl_->reverse[edge] = back;
  impl_->reverse[back] = edge;
  impl_->forward.push_back(edge);
  impl_->backward.push_back(back);
}

void ResidualNetwork::SetCapacity(int arc, int64_t forward, int64_t backward) {
  impl_->capacity[impl_->forward[arc + 1]] = forward;
  impl_->capacity[impl_->backward[arc + 1]] = backward;
}

int64_t ResidualNetwork::MaxFlow() {
  return boost::boykov_kolmogorov_max_flow(
      impl_->network, impl_->capacity, impl_->residual, impl_->reverse,
      impl_->predecessor.data(), impl_->color.data(), impl_->distance.data(),
      get(boost::vertex_index, impl_->network), impl_->start, impl_->sink);
}

int64_t ResidualNetwork::FlowOf(int arc) const {
  const auto& edge = impl_->forward[arc + 1];
  return impl_->capacity[edge] - impl_->residual[edge];
}

std::vector<char> ResidualNetwork::SinkSide() const {
  std::vector<char> far(num_vertices(impl_->network), 1);
  std::vector<int> reached = {impl_->start};
  far[impl_->start] = 0;
  while (!reached.empty()) {
    const int from = reached.back();
    reached.pop_back();
    const auto [begin, end] = out_edges(from, impl_->network);
    for (auto edge = begin; edge != end; ++edge) {
      const int to = static_cast<int>(target(*edge, impl_->network));
      if (far[to] == 0 || impl_->residual[*edge] == 0) continue;
      far[to] = 0;
      reached.push_back(to);
    }
  }
  far.pop_back();
  return far;
}

}  // namespace weir::plan
