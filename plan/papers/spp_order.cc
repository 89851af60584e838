// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "plan/papers/spp.h"

namespace weir::plan {
namespace {

// Returns the bandwidth of both directions. Unlimited bandwidth weighs more
// than all finite ones together.
std::vector<std::vector<double>> Weights(
    const std::vector<std::vector<double>>& bandwidth,
    const std::vector<int>& devices) {
  double finite = 0;
  for (int from : devices) {
    for (int to : devices) {
      if (bandwidth[from][to] < std::numeric_limits<double>::infinity()) {
        finite += bandwidth[from][to];
      }
    }
  }
  const size_t n = devices.size();
  std::vector<std::vector<double>> weights(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      weights[i][j] = std::min(bandwidth[devices[i]][devices[j]], finite + 1) +
                      std::min(bandwidth[devices[j]][devices[i]], finite + 1);
    }
  }
  return weights;
}

double WeightOf(const std::vector<std::vector<double>>& bandwidth,
                const std::vector<int>& side, const std::vector<int>& devices) {
  double weight = 0;
  for (int one : side) {
    for (int other : devices) {
      if (std::find(side.begin(), side.end(), other) == side.end()) {
        weight += bandwidth[one][other] + bandwidth[other][one];
      }
    }
  }
  return weight;
}

void AppendOrder(const PlannerWork& work, const std::vector<int>& devices,
                 std::vector<int>* order) {
  if (devices.size() < 2) {
    order->insert(order->end(), devices.begin(), devices.end());
    return;
  }
  const std::vector<int> side = MinimumCut(work.bytes_per_second, devices);
  std::vector<int> rest;
  std::set_difference(devices.begin(), devices.end(), side.begin(), side.end(),
                      std::back_inserter(rest));
  AppendOrder(work, rest, order);
  AppendOrder(work, side, order);
}

// Removes single devices while they provably are minimum cuts, as most are in a
// large cluster, since a general cut costs devices^3.
//
// Let b be the smallest weight of all pairs and m_i the minimum cut of server i
// under the weights w - b. A cut into s and n - s devices weighs at least m_i +
// b (n-1) if it splits server i, and at least b s (n-s) if it splits no server.
class SingleDeviceCuts {
 public:
  explicit SingleDeviceCuts(const PlannerWork& work) : n_(work.devices.size()) {
    weights_.assign(n_, std::vector<double>(n_));
    degrees_.assign(n_, 0);
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        if (i == j) continue;
        weights_[i][j] =
            work.bytes_per_second[i][j] + work.bytes_per_second[j][i];
        degrees_[i] += weights_[i][j];
        least_ = std::min(least_, weights_[i][j]);
      }
      left_.push_back(static_cast<int>(i));
      servers_[work.devices[i].server].devices.push_back(static_cast<int>(i));
    }
    for (auto& [number, server] : servers_) SetLeastCut(&server);
    for (const PlannerDevice& device : work.devices) {
      server_of_.push_back(&servers_[device.server]);
    }
  }

  // Returns the order in three parts; `left` still needs general cuts.
  void Run(std::vector<int>* front, std::vector<int>* left,
           std::vector<int>* last) {
    while (left_.size() > 1) {
      // Ties go to the last device, as in MinimumCut.
      const auto at = std::min_element(
          left_.rbegin(), left_.rend(),
          [&](int a, int b) { return degrees_[a] < degrees_[b]; });
      if (!(degrees_[*at] <= LeastOfOthers() * (1 + 1e-12))) break;
      const int device = *at;
      if (device == left_.front()) {
        front->push_back(device);
      } else {
        last->push_back(device);
      }
      Remove(device);
    }
    *left = left_;
    std::reverse(last->begin(), last->end());
  }

 private:
  struct Server {
    std::vector<int> devices;
    double least_cut = std::numeric_limits<double>::infinity();
  };

  void SetLeastCut(Server* server) const {
    server->least_cut = std::numeric_limits<double>::infinity();
    const size_t size = server->devices.size();
    if (size < 2) return;
    std::vector<std::vector<double>> above(size, std::vector<double>(size));
    std::vector<int> all(size);
    std::iota(all.begin(), all.end(), 0);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        if (i == j) continue;
        above[i][j] =
            (weights_[server->devices[i]][server->devices[j]] - least_) / 2;
      }
    }
    server->least_cut = WeightOf(above, MinimumCut(above, all), all);
  }

  // Returns a lower bound on cuts with several devices on both sides.
  double LeastOfOthers() const {
    const double n = static_cast<double>(left_.size());
    double least_cut = std::numeric_limits<double>::infinity(), smallest = n;
    for (const auto& [number, server] : servers_) {
      if (server.devices.empty()) continue;
      least_cut = std::min(least_cut, server.least_cut);
      smallest = std::min(smallest, static_cast<double>(server.devices.size()));
    }
    smallest = std::max(smallest, 2.0);
    const double whole = smallest <= n / 2
                             ? least_ * smallest * (n - smallest)
                             : std::numeric_limits<double>::infinity();
    return std::min(least_cut + least_ * (n - 1), whole);
  }

  void Remove(int device) {
    left_.erase(std::find(left_.begin(), left_.end(), device));
    for (int other : left_) degrees_[other] -= weights_[other][device];
    Server& server = *server_of_[device];
    server.devices.erase(
        std::find(server.devices.begin(), server.devices.end(), device));
    SetLeastCut(&server);
  }

  size_t n_;
  std::vector<std::vector<double>> weights_;
  std::vector<double> degrees_;  // sums of weights among `left_`
  double least_ = std::numeric_limits<double>::infinity();
  std::vector<int> left_;
  std::map<int, Server> servers_;
  std::vector<Server*> server_of_;
};

}  // namespace

std::vector<int> MinimumCut(const std::vector<std::vector<double>>& bandwidth,
                            const std::vector<int>& devices) {
  std::vector<std::vector<double>> weight = Weights(bandwidth, devices);
  const int n = static_cast<int>(devices.size());
  std::vector<std::vector<int>> merged(n);
  for (int i = 0; i < n; ++i) merged[i] = {i};
  std::vector<int> left(n);
  std::iota(left.begin(), left.end(), 0);
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> side;
  while (left.size() > 1) {
    // Orders the nodes by their total weight to the nodes before them.
    std::vector<double> strength(n);
    std::vector<int> rest = left;
    int before = -1, last = -1;
    while (!rest.empty()) {
      const auto next = std::max_element(
          rest.begin(), rest.end(),
          [&](int a, int b) { return strength[a] < strength[b]; });
      before = last;
      last = *next;
      rest.erase(next);
      for (int node : rest) strength[node] += weight[last][node];
    }
    if (strength[last] < best) {
      best = strength[last];
      side = merged[last];
    }
    merged[before].insert(merged[before].end(), merged[last].begin(),
                          merged[last].end());
    for (int node : left) {
      weight[before][node] += weight[last][node];
      weight[node][before] = weight[before][node];
    }
    weight[before][before] = 0;
    left.erase(std::find(left.begin(), left.end(), last));
  }
  std::sort(side.begin(), side.end());
  if (side.front() == 0) {
    std::vector<int> other;
    for (int i = 0; i < n; ++i) {
      if (!std::binary_search(side.begin(), side.end(), i)) other.push_back(i);
    }
    side = other;
  }
  for (int& node : side) node = devices[node];
  std::sort(side.begin(), side.end());
  return side;
}

std::vector<int> SppDeviceOrder(const PlannerWork& work) {
  std::vector<int> order, left, last;
  SingleDeviceCuts(work).Run(&order, &left, &last);
  AppendOrder(work, left, &order);
  order.insert(order.end(), last.begin(), last.end());
  return order;
}

}  // namespace weir::plan
