// SPDX-License-Identifier: Apache-2.0
// Selection of the passes and steps that are slowed down.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "calibrate/profile/partition_slowdown.h"
#include "sim/graph/graph_builder.h"

namespace weir::sim {
namespace {

// Curve of a fused backward: its parts weighted by their uncontended seconds,
// equally if these are not known.
std::vector<double> BackwardCurve(const PartitionSlowdown& share,
                                  const StageCosts& stage) {
  std::vector<double> curve = calibrate::SharingCurve(share, "backward_input");
  const std::vector<double> weight =
      calibrate::SharingCurve(share, "backward_weight");
  double input_part = 0.5;
  if (const auto& parts = stage.seconds.backward_parts; parts.has_value()) {
    const double sum = parts->input + parts->weight;
    if (sum > 0) input_part = parts->input / sum;
  }
  for (size_t i = 0; i < curve.size(); ++i) {
    curve[i] = input_part * curve[i] + (1 - input_part) * weight[i];
  }
  return curve;
}

}  // namespace

void GraphBuilder::AddSlowdowns() {
  Slowdowns& slowdowns = graph_.tasks.slowdowns;
  for (int gpu = 0; gpu < place_.num_gpus(); ++gpu) {
    const DeviceCosts& device = in_.costs.device_of(gpu);
    const bool by_flows =
        device.collective_slowdown != 1 || device.copy_slowdown != 1;
    if (!by_flows && device.partition_slowdown == nullptr) continue;
    if (slowdowns.timers.empty()) {
      slowdowns.timers.resize(graph_.tasks.num_tasks());
      slowdowns.touches = lowering_.Touches();
      slowdowns.factors.assign(in_.network.num_gpus(), {1, 1});
    }
    slowdowns.factors[place_.gpus[gpu]] = {device.collective_slowdown,
                                           device.copy_slowdown};
    SlowPasses(gpu);
    if (device.partition_slowdown != nullptr) SlowSteps(gpu);
  }
  if (!slowdowns.curves.empty()) AddSharedGpus();
}

// An overlapped pair has the speed of its backward.
void GraphBuilder::SlowPasses(int gpu) {
  const std::vector<schedules::Action>& actions = Actions(gpu);
  for (int32_t i = 0; i < std::ssize(actions); ++i) {
    if (!schedules::IsCompute(actions[i].op)) continue;
    const schedules::Action* action = &actions[i];
    if (action->overlaps_next && action->op == schedules::Op::kForward) {
      action = &actions[i + 1];
    } else if (i > 0 && actions[i - 1].overlaps_next &&
               action->op == schedules::Op::kForward) {
      action = &actions[i - 1];
    }
    graph_.tasks.slowdowns.timers[graph_.ActionTask(gpu, i)] = {
        place_.gpus[gpu], CurveOf(gpu, *action), true};
  }
}

// Flows do not slow steps down (docs/measured-profiles.md).
void GraphBuilder::SlowSteps(int gpu) {
  if (!graph_.steps.first.has_value()) return;
  const int32_t curve = AddCurve(calibrate::SharingCurve(
      *in_.costs.device_of(gpu).partition_slowdown, "optimizer"));
  const auto num_steps =
      static_cast<int>(graph_.steps.plan[graph_.rank_of(gpu)].size());
  for (int step = 0; step < num_steps; ++step) {
    graph_.tasks.slowdowns.timers[graph_.StepTask(gpu, step)] = {
        place_.gpus[gpu], curve, false};
  }
}

int32_t GraphBuilder::CurveOf(int gpu, const schedules::Action& action) {
  const PartitionSlowdown* share = in_.costs.device_of(gpu).partition_slowdown;
  if (share == nullptr) return -1;
  switch (action.op) {
    case schedules::Op::kForward:
      return AddCurve(calibrate::SharingCurve(*share, "forward"));
    case schedules::Op::kBackwardInput:
      return AddCurve(calibrate::SharingCurve(*share, "backward_input"));
    case schedules::Op::kBackwardWeight:
      return AddCurve(calibrate::SharingCurve(*share, "backward_weight"));
    case schedules::Op::kBackward:
      return AddCurve(BackwardCurve(*share, in_.costs.of(gpu, action.stage)));
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return -1;
}

int32_t GraphBuilder::AddCurve(std::vector<double> curve) {
  std::vector<std::vector<double>>& curves = graph_.tasks.slowdowns.curves;
  const auto [at, added] =
      curve_index_.try_emplace(curve, static_cast<int32_t>(curves.size()));
  if (added) curves.push_back(std::move(curve));
  return at->second;
}

// The GPUs of a node, in their order, are partitions of one physical GPU, then
// of the next one; the last one may have fewer.
void GraphBuilder::AddSharedGpus() {
  Slowdowns& slowdowns = graph_.tasks.slowdowns;
  const int num_gpus = in_.network.num_gpus();
  std::vector<int> place_in_node(num_gpus);
  for (int gpu = 1; gpu < num_gpus; ++gpu) {
    if (in_.network.NodeOf(gpu) == in_.network.NodeOf(gpu - 1)) {
      place_in_node[gpu] = place_in_node[gpu - 1] + 1;
    }
  }
  slowdowns.physical_gpu.assign(num_gpus, -1);
  std::map<std::pair<int, int>, int32_t> cards;  // node, index in the node
  for (int i = 0; i < place_.num_gpus(); ++i) {
    const PartitionSlowdown* share = in_.costs.device_of(i).partition_slowdown;
    if (share == nullptr) continue;
    const int gpu = place_.gpus[i];
    const int card =
        place_in_node[gpu] / static_cast<int>(share->num_partitions());
    slowdowns.physical_gpu[gpu] =
        cards
            .try_emplace({in_.network.NodeOf(gpu), card},
                         static_cast<int32_t>(cards.size()))
            .first->second;
  }
}

}  // namespace weir::sim
