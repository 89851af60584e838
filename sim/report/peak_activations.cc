// SPDX-License-Identifier: Apache-2.0
#include "sim/report/peak_activations.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace weir::sim {
namespace {

// Change of the number of held microbatches from a time on.
struct Change {
  double seconds;
  int microbatches;
};

// Returns the changes of the activation count in the order in which the rank
// executes them or, if ranks offload, in order of time. An overlapped forward
// comes before its backward, since both run at the same time.
std::vector<Change> ActivationChanges(const PipelineInputs& inputs,
                                      const PipelineGraph& graph,
                                      const Recording& recording, int gpu) {
  const auto& actions = inputs.schedule.rank_actions[graph.rank_of(gpu)];
  const auto start = recording.start_seconds(), end = recording.end_seconds();
  std::vector<Change> changes;
  for (size_t i = 0; i < actions.size(); ++i) {
    const schedules::Action& action = actions[i];
    const double from = start[graph.ActionTask(gpu, static_cast<int>(i))];
    const double to = end[graph.ActionEnd(gpu, static_cast<int>(i))];
    if (action.op == schedules::Op::kForward ||
        action.op == schedules::Op::kReload) {
      const Change taken = {from, action.num_microbatches};
      const bool second = i > 0 && actions[i - 1].overlaps_next;
      changes.insert(second ? changes.end() - 1 : changes.end(), taken);
      if (inputs.schedule.forward_only) {
        changes.push_back({to, -action.num_microbatches});
      }
    } else if (action.op == schedules::Op::kOffload ||
               schedules::MakesInputGradient(action.op)) {
      changes.push_back({to, -action.num_microbatches});
    }
  }
  if (!graph.host_waits.has_value()) return changes;
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) {
                     if (a.seconds != b.seconds) return a.seconds < b.seconds;
                     return a.microbatches < b.microbatches;  // frees first
                   });
  return changes;
}

// Returns the most stages of the rank that one microbatch passes through.
int StagesOnRoute(const schedules::Schedule& schedule, int rank,
                  const std::vector<int>& stages) {
  int64_t most = 1;
  for (const std::vector<int>& route : schedule.routes) {
    most = std::max<int64_t>(
        most, std::count_if(stages.begin(), stages.end(),
                            [&](int stage) { return route[stage] == rank; }));
  }
  return static_cast<int>(most);
}

}  // namespace

double PeakActivationMicrobatches(const PipelineInputs& inputs,
                                  const PipelineGraph& graph,
                                  const Recording& recording, int gpu) {
  int now = 0, peak = 0;
  for (const Change& change :
       ActivationChanges(inputs, graph, recording, gpu)) {
    peak = std::max(peak, now += change.microbatches);
  }
  const int rank = graph.rank_of(gpu);
  return static_cast<double>(peak) /
         StagesOnRoute(inputs.schedule, rank, graph.rank_stages[rank]);
}

}  // namespace weir::sim
