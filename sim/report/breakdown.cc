// SPDX-License-Identifier: Apache-2.0
#include "sim/report/breakdown.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "sim/graph/action_seconds.h"

namespace weir::sim {
namespace {

class Parts {
 public:
  Parts(const PipelineInputs& inputs, const PipelineGraph& graph,
        const Recording& recording, int gpu, const Window& window)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        sharing_(recording.sharing_seconds()),
        gpu_(gpu),
        window_(window),
        modelled_(inputs.costs.model_flops.has_value()) {}

  std::vector<PartSeconds> Run(const GpuTimes& times) {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const std::vector<double> seconds = ActionSeconds(in_, gpu_);
    const std::vector<double> extra = ExtraSeconds(in_, gpu_);
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!schedules::IsCompute(actions[i].op)) continue;
      const bool pair = actions[i].overlaps_next;
      AddPass(i, seconds[i], pair ? extra[i] + extra[i + 1] : extra[i]);
      if (actions[i].overlaps_next) ++i;
    }
    const auto& steps = graph_.steps.plan[graph_.rank_of(gpu_)];
    for (size_t i = 0; i < steps.size(); ++i) AddStep(static_cast<int>(i));
    Add("transfers", times.exposed_transfer_seconds);
    Add("reductions", times.exposed_reduction_seconds);
    Add("gathers", times.exposed_gather_seconds);
    Add("bubble", times.bubble_seconds);
    return Finish();
  }

 private:
  double Clipped(double begin, double end) const {
    return std::max(std::min(end, window_.end_seconds) -
                        std::max(begin, window_.begin_seconds),
                    0.0);
  }
  // Returns the fraction of a task that lies in the window.
  double InWindow(int32_t task) const {
    const double length = end_[task] - start_[task];
    return length > 0 ? Clipped(start_[task], end_[task]) / length : 0;
  }

  void Add(absl::string_view name, double seconds) {
    parts_[name].set_seconds(parts_[name].seconds() + seconds);
  }
  void Add(absl::string_view name, double seconds, bool forward) {
    PartSeconds& part = parts_[name];
    part.set_seconds(part.seconds() + seconds);
    if (forward) {
      part.set_forward_seconds(part.forward_seconds() + seconds);
    } else {
      part.set_backward_seconds(part.backward_seconds() + seconds);
    }
  }

  // Adds the times of the action's kernels, times `scale`, to their parts.
  // Returns their unscaled sum.
  double AddKernels(const schedules::Action& action, double scale) {
    const StageCosts& stage = in_.costs.of(gpu_, action.stage);
    const double gap = in_.costs.device_of(gpu_).kernel_gap_seconds;
    double sum = 0;
    const auto add = [&](const std::vector<PricedKernel>& kernels) {
      for (const PricedKernel& priced : kernels) {
        const double seconds =
            priced.count * priced.seconds * action.num_microbatches;
        const double gaps = priced.count * GapAfter(priced.seconds, gap) *
                            action.num_microbatches;
        sum += seconds + gaps;
        Add("kernel_gaps", gaps * scale, action.op == schedules::Op::kForward);
        Add(models::Name(priced.kernel.part), seconds * scale,
            action.op == schedules::Op::kForward);
      }
    };
    if (!stage.kernels.has_value()) return sum;
    if (action.op == schedules::Op::kForward) add(stage.kernels->forward);
    if (schedules::MakesInputGradient(action.op)) {
      add(stage.kernels->backward_input);
    }
    if (action.op == schedules::Op::kBackward ||
        action.op == schedules::Op::kBackwardWeight) {
      add(stage.kernels->backward_weight);
    }
    return sum;
  }

  // `own_seconds`: before the host lengthens the pass. `extra_seconds`: the
  // part of it that no kernel of the pass explains.
  void AddPass(size_t position, double own_seconds, double extra_seconds) {
    const auto at = static_cast<int>(position);
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const int32_t task = graph_.ActionTask(gpu_, at);
    const double scale = InWindow(task);
    const bool pair = actions[position].overlaps_next;
    const bool forward =
        actions[position].op == schedules::Op::kForward && !pair;
    double kernels = AddKernels(actions[position], scale);
    if (pair) kernels += AddKernels(actions[position + 1], scale);
    Add(modelled_ ? "weight_estimates" : "given",
        (kernels > 0 ? extra_seconds : own_seconds) * scale, forward);
    const double length = end_[task] - start_[task];
    const double sharing = sharing_.empty() ? 0 : sharing_[task];
    if (sharing != 0) Add("card_sharing", sharing * scale, forward);
    const double slower = length - graph_.tasks.amount(task) - sharing;
    const bool can_slow_down = !graph_.tasks.slowdowns.timers.empty();
    // A slowdown only adds time; smaller amounts are rounding errors.
    if (can_slow_down && slower > 1e-12 * length) {
      Add("overlap_slowdown", slower * scale, forward);
    }
    Add("host", (graph_.tasks.amount(task) - own_seconds) * scale, forward);
    AddCollectives(task, at, forward);
  }

  void AddCollectives(int32_t task, int position, bool forward) {
    // With sharded weights, gathers follow the exchanges.
    const int32_t end = in_.costs.shards > 1
                            ? graph_.ExchangeEnd(gpu_, position)
                            : graph_.ActionEnd(gpu_, position);
    double experts = end_[end];
    if (const auto found =
            graph_.passes.expert_start.find(graph_.ActionEnd(gpu_, position));
        found != graph_.passes.expert_start.end()) {
      experts = end_[found->second];
    }
    const double exchanged = end_[graph_.ContextEnd(gpu_, position)];
    Add("context_exchange", Clipped(end_[task], exchanged), forward);
    Add("tensor_collectives", Clipped(exchanged, experts), forward);
    Add("expert_collectives", Clipped(experts, end_[end]), forward);
  }

  void AddStep(int step) {
    const int32_t task = graph_.StepTask(gpu_, step);
    if (task == PipelineGraph::kNone) return;
    const StageCosts& stage =
        in_.costs.of(gpu_, graph_.steps.plan[graph_.rank_of(gpu_)][step].stage);
    const double scale = InWindow(task);
    // Not every step contains the update's fixed cost.
    const double seconds = graph_.tasks.amount(task);
    const double kernel =
        stage.step.kernel.has_value() ? stage.step.kernel->seconds : 0;
    const double update = std::clamp(
        seconds - kernel - stage.step.copy_seconds - stage.step.host_seconds,
        0.0, stage.step.update_seconds);
    Add("update", update * scale);
    if (!sharing_.empty()) Add("card_sharing", sharing_[task] * scale);
    Add("optimizer", (seconds - update) * scale);
  }

  std::vector<PartSeconds> Finish() {
    const double seconds = window_.end_seconds - window_.begin_seconds;
    std::vector<PartSeconds> parts;
    for (auto& [name, part] : parts_) {
      // Remainders of empty parts are rounding errors. Gaps may be negative: a
      // kernel starts while the previous one drains.
      if (std::abs(part.seconds()) <= 1e-12 * seconds) continue;
      part.set_name(std::string(name));
      part.set_seconds(part.seconds() / window_.num_batches);
      part.set_forward_seconds(part.forward_seconds() / window_.num_batches);
      part.set_backward_seconds(part.backward_seconds() / window_.num_batches);
      parts.push_back(part);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PartSeconds& a, const PartSeconds& b) {
                       return a.seconds() > b.seconds();
                     });
    return parts;
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_, sharing_;
  const int gpu_;
  const Window& window_;
  const bool modelled_;
  absl::btree_map<absl::string_view, PartSeconds> parts_;
};

}  // namespace

std::vector<PartSeconds> BreakDown(const PipelineInputs& inputs,
                                   const PipelineGraph& graph,
                                   const Recording& recording, int gpu,
                                   const Window& window,
                                   const GpuTimes& times) {
  return Parts(inputs, graph, recording, gpu, window).Run(times);
}

}  // namespace weir::sim
