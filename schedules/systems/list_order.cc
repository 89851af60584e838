// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/list_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace weir::schedules {
namespace {

class ListScheduler {
 public:
  ListScheduler(const std::vector<double>& forward,
                const std::vector<double>& backward, int num_microbatches)
      : forward_(forward),
        backward_(backward),
        ready_(forward.size()),
        idle_(forward.size(), true),
        kept_(forward.size()) {
    for (int k = 0; k < num_microbatches; ++k) ready_[0].push({true, k});
    const size_t num_stages = (forward.size() + 1) / 2;
    order_.rank_actions.resize(num_stages);
    order_.ends.resize(num_stages);
    order_.most_kept.resize(num_stages);
  }

  ListOrder Run() {
    Start(0, 0);
    while (!running_.empty()) {
      // Ends everything that ends now before anything starts.
      const double now = std::get<0>(running_.top());
      std::vector<int> touched;
      while (!running_.empty() && std::get<0>(running_.top()) == now) {
        const auto [end, resource, is_forward, k] = running_.top();
        running_.pop();
        idle_[resource] = true;
        if (!is_forward) --kept_[resource];
        if (resource % 2 == 0) order_.ends[resource / 2] = end;
        touched.push_back(resource);
        const int next = Next(resource, is_forward);
        if (next < 0) continue;
        // The last stage continues with the backward.
        const bool turns = next == resource;
        ready_[next].push({is_forward && !turns, k});
        touched.push_back(next);
        // A transfer that takes no time arrives before a stage chooses.
        if (next % 2 == 1 && forward_[next] == 0 && backward_[next] == 0) {
          Start(next, now);
        }
      }
      for (int resource : touched) Start(resource, now);
    }
    return std::move(order_);
  }

 private:
  int Next(int resource, bool is_forward) const {
    const int last = static_cast<int>(forward_.size()) - 1;
    if (is_forward) return resource == last ? last : resource + 1;
    return resource - 1;
  }

  void Start(int resource, double now) {
    if (!idle_[resource] || ready_[resource].empty()) return;
    const auto [is_forward, k] = ready_[resource].top();
    ready_[resource].pop();
    idle_[resource] = false;
    if (is_forward) ++kept_[resource];
    if (resource % 2 == 0) {
      const int stage = resource / 2;
      int& most = order_.most_kept[stage];
      most = std::max(most, kept_[resource]);
      order_.rank_actions[stage].push_back(
          {is_forward ? Op::kForward : Op::kBackward, stage, k});
    }
    running_.emplace(now + (is_forward ? forward_ : backward_)[resource],
                     resource, is_forward, k);
  }

  // Backwards (false) first, then by microbatch.
  using Block = std::pair<bool, int>;
  using Running = std::tuple<double, int, bool, int>;
  const std::vector<double>&forward_, &backward_;
  std::vector<
      std::priority_queue<Block, std::vector<Block>, std::greater<Block>>>
      ready_;
  std::vector<bool> idle_;
  std::vector<int> kept_;
  std::priority_queue<Running, std::vector<Running>, std::greater<Running>>
      running_;
  ListOrder order_;
};

}  // namespace

ListOrder ListOrderOf(const std::vector<double>& forward,
                      const std::vector<double>& backward,
                      int num_microbatches) {
  return ListScheduler(forward, backward, num_microbatches).Run();
}

}  // namespace weir::schedules
