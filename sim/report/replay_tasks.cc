// SPDX-License-Identifier: Apache-2.0
#include "sim/report/replay_tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "sim/engine/longest_path.h"
#include "sim/report/batch_ends.h"

namespace weir::sim {
namespace {

// Returns the seconds that lead from start to end in floating-point numbers.
double SecondsBetween(double start, double end) {
  double seconds = end - start;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4 && start + seconds < end; ++i) {
    seconds = std::nextafter(seconds, kInfinity);
  }
  for (int i = 0; i < 4 && start + seconds > end; ++i) {
    seconds = std::nextafter(seconds, 0);
  }
  return seconds;
}

// Returns the seconds of fused attention in an action of one microbatch.
double AttentionSeconds(const StageCosts& stage, schedules::Op op) {
  if (!stage.kernels.has_value()) return 0;
  double seconds = 0;
  const auto add = [&](const std::vector<PricedKernel>& kernels) {
    for (const PricedKernel& priced : kernels) {
      if (priced.kernel.part != models::KernelPart::kAttentionCore) continue;
      seconds += priced.count * priced.seconds;
    }
  };
  if (op == schedules::Op::kForward) add(stage.kernels->forward);
  if (schedules::MakesInputGradient(op)) add(stage.kernels->backward_input);
  return seconds;
}

void AddFlows(const TaskGraph& tasks, std::span<const scenarios::Link> links,
              const std::vector<int32_t>& number, ReplayTasks* replay) {
  for (const GpuPair& pair : tasks.pairs) {
    std::vector<std::string>& names = replay->pair_links.emplace_back();
    for (const int32_t link : pair.route.links) {
      names.push_back(links[link].name);
    }
  }
  std::map<std::pair<int32_t, int32_t>, int32_t> counts;
  for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
    if (tasks.is_timer(task)) continue;
    const int32_t index = tasks.pair(task);
    const GpuPair& pair = tasks.pairs[index];
    replay->flows.push_back({number[task], pair.from, pair.to,
                             counts[{pair.from, pair.to}]++, index});
  }
}

}  // namespace

std::vector<int32_t> TopologicalOrder(const TaskGraph& graph) {
  std::vector<int32_t> waiting = graph.num_predecessors();
  std::vector<int32_t> order;
  order.reserve(waiting.size());
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (waiting[task] == 0) order.push_back(task);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const int32_t next : graph.successors(order[i])) {
      if (--waiting[next] == 0) order.push_back(next);
    }
  }
  return order;
}

ReplayTasks ReplayTasksOf(const PipelineInputs& inputs,
                          const PipelineGraph& graph,
                          const Recording& recording, const Window& window) {
  const schedules::Schedule& schedule = inputs.schedule;
  const std::span<const scenarios::Link> links = inputs.links();
  const TaskGraph& tasks = graph.tasks;
  const auto start = recording.start_seconds();
  const auto end = recording.end_seconds();
  const std::vector<int32_t> order = TopologicalOrder(tasks);
  const size_t n = order.size();
  std::vector<int32_t> number(n);
  ReplayTasks replay;
  replay.first_before.assign(n + 1, 0);
  for (size_t i = 0; i < n; ++i) number[order[i]] = static_cast<int32_t>(i);
  for (size_t i = 0; i < n; ++i) {
    replay.first_before[i + 1] =
        replay.first_before[i] + tasks.num_predecessors()[order[i]];
    replay.seconds.push_back(SecondsBetween(start[order[i]], end[order[i]]));
  }
  replay.before.resize(replay.first_before[n]);
  std::vector<int32_t> next(replay.first_before.begin(),
                            replay.first_before.end());
  for (size_t i = 0; i < n; ++i) {
    for (const int32_t after : tasks.successors(order[i])) {
      replay.before[next[number[after]]++] = static_cast<int32_t>(i);
    }
  }
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
    const int rank = graph.rank_of(gpu);
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op > schedules::Op::kBackwardWeight) continue;
      const int32_t task = graph.ActionTask(gpu, static_cast<int>(i));
      ReplayTasks::Pass& pass = replay.passes.emplace_back();
      pass = {number[task], gpu, graph.replica_of(gpu), gpu % graph.tensor,
              actions[i]};
      const double attention =
          AttentionSeconds(inputs.costs.of(gpu, actions[i].stage),
                           actions[i].op) *
          actions[i].num_microbatches;
      const double whole = tasks.amount(task);
      if (attention > 0 && whole > 0) {
        pass.attention_part = std::min(attention / whole, 1.0);
      }
    }
  }
  AddFlows(tasks, links, number, &replay);
  replay.makespan_seconds =
      end.empty() ? 0 : *std::max_element(end.begin(), end.end());
  replay.simulated_batches = schedule.num_batches;
  replay.chunks = std::max(schedule.num_stages / schedule.num_ranks, 1);
  replay.num_batches = window.num_batches;
  replay.rollback_seconds = window.rollback_seconds;
  replay.batch_seconds = window.batch_seconds();
  // A window that begins after the start lies between two ends of batches.
  if (window.begin_seconds > 0) {
    for (const std::vector<int32_t>& batch : BatchEndTasks(schedule, graph)) {
      double seconds = 0;
      std::vector<int32_t> numbers;
      for (const int32_t task : batch) {
        seconds = std::max(seconds, end[task]);
        numbers.push_back(number[task]);
      }
      if (seconds == window.begin_seconds) replay.begin_tasks = numbers;
      if (seconds == window.end_seconds) replay.end_tasks = numbers;
    }
  }
  replay.is_exact = SharedLinks(tasks, links, recording).empty() &&
                    !SlowsTimers(tasks, recording);
  return replay;
}

}  // namespace weir::sim
