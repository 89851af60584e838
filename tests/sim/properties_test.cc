// SPDX-License-Identifier: Apache-2.0
// Properties of any schedule on a network where transfers, offloads and
// reductions share links: all computation is accounted for, no time is below a
// bound, and all memory is freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/semantics.h"
#include "sim/engine/engine.h"
#include "sim/graph/action_seconds.h"
#include "sim/report/gpu_times.h"
#include "sim/report/memory.h"
#include "tests/sim/random_case.h"

namespace weir::sim::properties_test {

void ExpectWorkIsConserved(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu,
                           double makespan) {
  const GpuTimes times = TimesOf(inputs, graph, recording, gpu, 0, makespan);
  const auto& actions = inputs.schedule.rank_actions[graph.rank_of(gpu)];
  const std::vector<double> seconds = ActionSeconds(inputs, gpu);
  double work = times.optimizer_seconds + times.tensor_collective_seconds +
                times.expert_exchange_seconds;
  double least = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!schedules::IsCompute(actions[i].op) || actions[i].overlaps_next)
      continue;
    // A host that is slower than its GPU makes the pass longer.
    work += graph.tasks.amount(graph.ActionTask(gpu, static_cast<int>(i)));
    least += seconds[i];
  }
  EXPECT_GE(work, least * (1 - 1e-9));
  EXPECT_NEAR(times.busy_seconds, work, 1e-9 * std::max(work, 1.0));
  double steps = 0;
  if (graph.steps.first.has_value()) {
    for (const Step& step : graph.steps.plan[graph.rank_of(gpu)]) {
      steps += inputs.costs.stages[step.stage].step.seconds;
    }
  }
  EXPECT_NEAR(times.optimizer_seconds, steps, 1e-9 * std::max(steps, 1.0));
  EXPECT_LE(times.busy_seconds, makespan * (1 + 1e-9));
  const double idle = makespan - times.busy_seconds;
  EXPECT_LE(times.exposed_transfer_seconds + times.exposed_reduction_seconds +
                times.exposed_gather_seconds,
            idle + 1e-9 * makespan);
}

// Checks that a GPU runs one pass or step at a time, except for overlapped
// pairs, and one transfer at a time per channel.
void ExpectNothingOverlaps(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu) {
  const auto& actions = inputs.schedule.rank_actions[graph.rank_of(gpu)];
  std::map<schedules::Op, double> last;  // kForward: all computation
  for (size_t i = 0; i < actions.size(); ++i) {
    const int position = static_cast<int>(i);
    const double start =
        recording.start_seconds()[graph.ActionTask(gpu, position)];
    const schedules::Op channel = schedules::IsCompute(actions[i].op)
                                      ? schedules::Op::kForward
                                      : actions[i].op;
    const bool second = i > 0 && actions[i - 1].overlaps_next;
    if (second) {
      EXPECT_EQ(start,
                recording.start_seconds()[graph.ActionTask(gpu, position - 1)]);
      EXPECT_EQ(recording.end_seconds()[graph.ActionEnd(gpu, position)],
                recording.end_seconds()[graph.ActionEnd(gpu, position - 1)]);
    } else {
      EXPECT_GE(start, last[channel]);
    }
    last[channel] = recording.end_seconds()[graph.ActionEnd(gpu, position)];
  }
}

void ExpectMemoryReturnsToItsFloor(const PipelineInputs& inputs,
                                   const PipelineGraph& graph,
                                   const Recording& recording, int gpu) {
  const MemoryTimeline memory =
      TraceMemory(inputs, graph, recording, gpu, /*keep_samples=*/true);
  EXPECT_NEAR(memory.final_bytes, memory.floor_bytes,
              1e-9 * std::max(memory.peak_bytes, 1.0));
  double largest = 0;
  for (const MemorySample& sample : memory.samples) {
    EXPECT_GE(sample.bytes, memory.floor_bytes * (1 - 1e-9) - 1e-9);
    largest = std::max(largest, sample.bytes);
  }
  EXPECT_EQ(memory.peak_bytes, largest);
}

// Returns the time in seconds of the first microbatch through all stages and
// back, uncontended.
double LongestChain(const PipelineInputs& inputs) {
  double seconds = 0;
  for (const auto& actions : inputs.schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      if (action.microbatch > 0 ||
          action.op == schedules::Op::kBackwardWeight ||
          !schedules::IsCompute(action.op)) {
        continue;
      }
      const StageCosts& stage = inputs.costs.stages[action.stage];
      seconds += stage.seconds.Of(action.op) * action.num_microbatches;
    }
  }
  return seconds;
}

TEST(PropertiesTest, HoldForAnyScheduleOnAnyNetwork) {
  std::mt19937 random(5);
  int completed = 0;
  for (int i = 0; i < 400; ++i) {
    const RandomCase one(&random);
    SCOPED_TRACE(
        absl::StrCat("case ", i, "\n", schedules::PrintCsv(one.schedule())));
    const PipelineInputs inputs = one.inputs();
    const PipelineGraph graph = BuildPipelineGraph(inputs);
    const auto recording = RunTaskGraph(graph.tasks, one.network().links());
    ASSERT_TRUE(recording.ok()) << recording.status();
    // Copies that update their weights without a flush may deadlock.
    if (!recording->complete()) {
      EXPECT_FALSE(one.schedule().flush);
      continue;
    }
    ++completed;
    const auto ends = recording->end_seconds();
    const double makespan = *std::max_element(ends.begin(), ends.end());
    EXPECT_GE(makespan, LongestChain(inputs) * (1 - 1e-9));
    for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
      ExpectWorkIsConserved(inputs, graph, *recording, gpu, makespan);
      ExpectNothingOverlaps(inputs, graph, *recording, gpu);
      ExpectMemoryReturnsToItsFloor(inputs, graph, *recording, gpu);
    }
    const double tasks = graph.tasks.num_tasks();
    EXPECT_NEAR(EstimateTasks(inputs), tasks, 0.05 * tasks + 20);
    if (HasFailure()) return;
  }
  EXPECT_GT(completed, 300);
}

}  // namespace weir::sim::properties_test
