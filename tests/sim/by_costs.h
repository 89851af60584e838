// SPDX-License-Identifier: Apache-2.0
// Runs schedules written by hand with given costs, directly as task
// graphs. No cost is computed, and rings are ideal unless the costs have a
// collective model.
#ifndef WEIR_TESTS_SIM_BY_COSTS_H_
#define WEIR_TESTS_SIM_BY_COSTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/semantics.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/gpu_times.h"
#include "sim/report/memory.h"
#include "sim/report/timeline.h"
#include "tests/sim/hand_schedules.h"
#include "tests/sim/measured.h"

namespace weir::sim {

struct ByCosts {
  schedules::Schedule schedule;
  Costs costs;
  int tensor = 1, data = 1;
  bool overlapped_reduction = false;
  bool blocking = false;
  // If empty: one switch with 100 bytes/s and no latency.
  std::optional<Cluster> cluster = {};
};

// Start and end of a collective in seconds. The kind is that of
// Timeline.Collectives.
struct CollectiveEvent {
  int stage = 0;
  double bytes = 0, start = 0, end = 0;
};

class CostsRun {
 public:
  explicit CostsRun(const ByCosts& by_costs)
      : in_(by_costs),
        semantics_(schedules::InterpretSchedule(in_.schedule).value()),
        placement_{in_.tensor, in_.data, in_.schedule.num_ranks, {}},
        recording_(0) {
    placement_.gpus.resize(placement_.num_gpus());
    std::iota(placement_.gpus.begin(), placement_.gpus.end(), 0);
    network_.emplace(in_.cluster.has_value()
                         ? *in_.cluster
                         : OneSwitch(placement_.num_gpus(), 100, 0));
    communication_.set_transfers(in_.blocking ? BLOCKING : OVERLAPPED);
    communication_.set_gradient_reduction(
        in_.overlapped_reduction ? REDUCTION_OVERLAPPED : REDUCTION_BLOCKING);
    graph_ = BuildPipelineGraph(inputs());
    auto recording = RunTaskGraph(graph_.tasks, network_->links());
    EXPECT_TRUE(recording.ok()) << recording.status();
    if (recording.ok()) recording_ = *std::move(recording);
    EXPECT_TRUE(recording_.complete());
  }

  PipelineInputs inputs() const {
    return {in_.schedule, semantics_, in_.costs,
            *network_,    placement_, communication_};
  }
  const PipelineGraph& graph() const { return graph_; }
  double Start(int gpu, int position) const {
    return recording_.start_seconds()[graph_.ActionTask(gpu, position)];
  }
  double End(int gpu, int position) const {
    return recording_.end_seconds()[graph_.ActionEnd(gpu, position)];
  }
  double StepStart(int gpu, int step) const {
    return recording_.start_seconds()[graph_.StepTask(gpu, step)];
  }
  double Makespan() const {
    const auto ends = recording_.end_seconds();
    return *std::max_element(ends.begin(), ends.end());
  }
  GpuTimes Times(int gpu) const {
    return TimesOf(inputs(), graph_, recording_, gpu, 0, Makespan());
  }
  MemoryTimeline Memory(int gpu) const {
    return TraceMemory(inputs(), graph_, recording_, gpu, true);
  }
  double PeakOf(int gpu, MemoryClass::Kind kind) const {
    return Memory(gpu).peak_by_kind[static_cast<int>(kind)];
  }
  std::vector<CollectiveEvent> Events(uint32_t gpu,
                                      Timeline::Collectives::Kind kind) const {
    Timeline timeline;
    FillTimeline(inputs(), graph_, recording_, &timeline);
    const auto& columns = timeline.collectives();
    std::vector<CollectiveEvent> events;
    for (int i = 0; i < columns.gpu_size(); ++i) {
      if (columns.gpu(i) != gpu || columns.kind(i) != kind) continue;
      events.push_back({columns.stage(i), columns.bytes(i),
                        columns.start_seconds(i), columns.end_seconds(i)});
    }
    return events;
  }

 private:
  ByCosts in_;
  schedules::Semantics semantics_;
  scenarios::Placement placement_;
  Communication communication_;
  std::optional<scenarios::Network> network_;
  PipelineGraph graph_;
  Recording recording_;
};

// One stage and one microbatch: F, then B.
inline schedules::Schedule OnePass() {
  return ByHand({{0}}, 1, {Actions({"0F0", "0B0"})});
}

inline Costs OneStage(double forward_seconds, double backward_seconds) {
  Costs costs;
  StageCosts& stage = costs.stages.emplace_back();
  stage.seconds.forward = forward_seconds;
  stage.seconds.backward = backward_seconds;
  stage.seconds.backward_parts = {backward_seconds / 3,
                                  backward_seconds * 2 / 3};
  return costs;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_BY_COSTS_H_
