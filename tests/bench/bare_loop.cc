// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/bare_loop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // after s4u.hpp, whose macros it needs
// clang-format on

#include "sim/platform.h"

namespace weir {
namespace {

namespace sg4 = simgrid::s4u;

void Replay(const TaskGraph& graph, std::span<const Link> links) {
  sg4::Engine engine("bare");
  ConfigureSimGrid();
  const Platform platform = BuildPlatform(links, graph.pairs);
  std::vector<int32_t> waiting = graph.num_predecessors();
  std::vector<sg4::CommPtr> flows(graph.num_tasks());
  sg4::CommPtr last;
  std::function<void(int32_t)> start, finish;
  start = [&](int32_t task) {
    if (graph.is_timer(task)) {
      simgrid::kernel::timer::Timer::set(
          sg4::Engine::get_clock() + graph.amount(task),
          [&finish, task] { finish(task); });
      return;
    }
    const GpuPair& pair = graph.pairs[graph.pair(task)];
    flows[task] = sg4::Comm::sendto_init();
    flows[task]->set_data(reinterpret_cast<void*>(intptr_t{task} + 1));
    flows[task]->set_payload_size(static_cast<uint64_t>(graph.amount(task)));
    flows[task]->set_source(platform.hosts[pair.from]);
    flows[task]->set_destination(platform.hosts[pair.to]);
    if (flows[task]->get_state() == sg4::Activity::State::STARTED) return;
#if SIMGRID_VERSION < 33500
    flows[task]->vetoable_start();
#else
    flows[task]->start();
#endif
  };
  finish = [&](int32_t task) {
    for (int32_t next : graph.successors(task)) {
      if (--waiting[next] == 0) start(next);
    }
  };
  const auto ended = [&](const auto& activity) {
    const auto task = static_cast<int32_t>(
        reinterpret_cast<intptr_t>(activity.template get_data<void>()) - 1);
    last = std::move(flows[task]);
    finish(task);
  };
#if SIMGRID_VERSION < 33500
  sg4::Activity::on_completion_cb(ended);
#else
  sg4::Comm::on_completion_cb(ended);
#endif
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (graph.num_predecessors()[task] == 0) start(task);
  }
  engine.run();
  _exit(0);
}

}  // namespace

bool RunBareLoop(const TaskGraph& graph, std::span<const Link> links) {
  const pid_t child = fork();
  if (child == 0) Replay(graph, links);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

double LongestPath(const TaskGraph& graph, std::span<const Link> links) {
  std::vector<double> pair_rate;
  for (const GpuPair& pair : graph.pairs) {
    double rate = 1e300;
    for (int32_t link : pair.route.links) {
      rate = std::min(rate, links[link].bytes_per_second);
    }
    pair_rate.push_back(rate);
  }
  std::vector<int32_t> waiting = graph.num_predecessors(), ready;
  std::vector<double> start(graph.num_tasks(), 0.0);
  for (int32_t task = 0; task < graph.num_tasks(); ++task) {
    if (waiting[task] == 0) ready.push_back(task);
  }
  double makespan = 0;
  while (!ready.empty()) {
    const int32_t task = ready.back();
    ready.pop_back();
    double end = start[task] + graph.amount(task);
    if (!graph.is_timer(task)) {
      const int32_t pair = graph.pair(task);
      end = start[task] + graph.pairs[pair].route.latency_seconds +
            graph.amount(task) / pair_rate[pair];
    }
    makespan = std::max(makespan, end);
    for (int32_t next : graph.successors(task)) {
      start[next] = std::max(start[next], end);
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  return makespan;
}

}  // namespace weir
