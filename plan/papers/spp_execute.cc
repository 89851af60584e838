// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "plan/papers/spp.h"

namespace weir {
namespace {

// Resources in pipeline order: stage 0, link 0, stage 1, ... A microbatch
// passes all forwards, then all backwards.
class ListScheduler {
 public:
  ListScheduler(const std::vector<double>& forward,
                const std::vector<double>& backward, int num_microbatches)
      : forward_(forward),
        backward_(backward),
        ready_(forward.size()),
        idle_(forward.size(), true),
        end_(forward.size()),
        kept_(forward.size()),
        most_kept_(forward.size()) {
    for (int k = 0; k < num_microbatches; ++k) ready_[0].push({true, k});
  }

  void Run() {
    Start(0, 0);
    while (!running_.empty()) {
      // All that ends at one moment does before anything begins.
      const double now = std::get<0>(running_.top());
      std::vector<int> touched;
      while (!running_.empty() && std::get<0>(running_.top()) == now) {
        const auto [end, resource, is_forward, k] = running_.top();
        running_.pop();
        idle_[resource] = true;
        end_[resource] = end;
        if (!is_forward) --kept_[resource];
        touched.push_back(resource);
        const int next = Next(resource, is_forward);
        if (next < 0) continue;
        // The last stage turns round.
        const bool turns = next == resource;
        ready_[next].push({is_forward && !turns, k});
        touched.push_back(next);
      }
      for (int resource : touched) Start(resource, now);
    }
  }

  double end(int resource) const { return end_[resource]; }
  int most_kept(int resource) const { return most_kept_[resource]; }

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
    if (is_forward) {
      most_kept_[resource] = std::max(most_kept_[resource], ++kept_[resource]);
    }
    running_.emplace(now + (is_forward ? forward_ : backward_)[resource],
                     resource, is_forward, k);
  }

  // Backwards (false) first, then by number.
  using Block = std::pair<bool, int>;
  using Running = std::tuple<double, int, bool, int>;
  const std::vector<double>&forward_, &backward_;
  std::vector<
      std::priority_queue<Block, std::vector<Block>, std::greater<Block>>>
      ready_;
  std::vector<bool> idle_;
  std::vector<double> end_;
  std::vector<int> kept_, most_kept_;
  std::priority_queue<Running, std::vector<Running>, std::greater<Running>>
      running_;
};

}  // namespace

SppExecution ExecuteSpp(const PlannerWork& work,
                        const std::vector<PlannedStage>& stages) {
  const SppWorkload load = SppWorkloadOf(work, stages);
  const int m = work.num_microbatches;
  std::vector<double> forward, backward;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) {
      const double transfer = load.transfer_seconds[s - 1] / m / 2;
      forward.push_back(transfer);
      backward.push_back(transfer);
    }
    double layers_forward = 0, layers_backward = 0;
    for (int l = stages[s].first_layer; l < stages[s].end_layer; ++l) {
      layers_forward += work.layers[l].forward_seconds;
      layers_backward += work.layers[l].backward_seconds;
    }
    const double both = layers_forward + layers_backward;
    const double part = both > 0 ? layers_forward / both : 0;
    forward.push_back(load.stage_seconds[s] / m * part);
    backward.push_back(load.stage_seconds[s] / m * (1 - part));
  }
  ListScheduler scheduler(forward, backward, m);
  scheduler.Run();
  SppExecution execution;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int resource = static_cast<int>(2 * s);
    execution.seconds =
        std::max(execution.seconds,
                 scheduler.end(resource) + load.all_reduce_seconds[s]);
    execution.most_kept.push_back(scheduler.most_kept(resource));
  }
  return execution;
}

}  // namespace weir
