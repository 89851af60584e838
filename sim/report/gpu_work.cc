// SPDX-License-Identifier: Apache-2.0
#include "sim/report/gpu_work.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "calibrate/pricing/expert_exchange.h"
#include "calibrate/pricing/link_seconds.h"
#include "sim/graph/action_seconds.h"
#include "sim/report/critical_path.h"

namespace weir::sim {
namespace {

class Gatherer {
 public:
  Gatherer(const PipelineInputs& inputs, const PipelineGraph& graph,
           const Recording& recording, int gpu, const Window& window)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        sharing_(recording.sharing_seconds()),
        gpu_(gpu),
        window_(window) {}

  GpuWork Run() {
    work_.device =
        in_.costs.gpu_device.empty() ? 0 : in_.costs.gpu_device[gpu_];
    work_.peak_flops = in_.costs.device_of(gpu_).peak_flops.value_or(0);
    work_.kernel_prices = &in_.costs.device_of(gpu_).prices;
    work_.calls = graph_.calls;
    work_.slowed_by = SlowedBy();
    work_.blocking = in_.communication.transfers() == BLOCKING;
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const std::vector<double> extra = ExtraSeconds(in_, gpu_);
    for (size_t i = 0; i < actions.size(); ++i) {
      if (schedules::IsCompute(actions[i].op))
        AddAction(static_cast<int>(i), extra[i]);
    }
    const auto& steps = graph_.steps.plan[graph_.rank_of(gpu_)];
    for (size_t i = 0; i < steps.size(); ++i) AddStep(static_cast<int>(i));
    for (auto& [key, pass] : passes_) {
      if (!(pass.count > 0)) continue;
      pass.tensor_seconds /= pass.count;
      pass.expert_seconds /= pass.count;
      pass.context_seconds /= pass.count;
      pass.slowdown_seconds /= pass.count;
      pass.sharing_part /= pass.count;
      work_.passes.push_back(pass);
    }
    return std::move(work_);
  }

 private:
  double Clipped(double begin, double end) const {
    return std::max(std::min(end, window_.end_seconds) -
                        std::max(begin, window_.begin_seconds),
                    0.0) /
           window_.num_batches;
  }
  double InWindow(int32_t task) const {
    const double length = end_[task] - start_[task];
    return length > 0 ? Clipped(start_[task], end_[task]) / length : 0;
  }

  double SharingPart(int32_t task) const {
    const double alone = graph_.tasks.amount(task);
    return sharing_.empty() || !(alone > 0) ? 0 : sharing_[task] / alone;
  }

  // If a GPU has both kinds of flows, returns the library's kernels.
  Mover SlowedBy() const {
    const int number = in_.placement().gpus[gpu_];
    bool copies = false;
    for (const Slowdowns::Touch& touch : graph_.tasks.slowdowns.touches) {
      if (std::find(touch.gpus.begin(), touch.gpus.end(), number) ==
          touch.gpus.end()) {
        continue;
      }
      if (touch.mover == Mover::kKernels) return Mover::kKernels;
      copies = true;
    }
    return copies ? Mover::kCopies : Mover::kKernels;
  }

  int IndexOf(const models::Kernel& kernel) {
    const auto first = work_.kernels.begin();
    const auto index = std::find(first, work_.kernels.end(), kernel) - first;
    if (index == std::ssize(work_.kernels)) work_.kernels.push_back(kernel);
    return static_cast<int>(index);
  }

  // The first action of an overlapped pair accounts for the collectives.
  void AddAction(int position, double extra_seconds) {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const schedules::Action& action = actions[position];
    const bool second = position > 0 && actions[position - 1].overlaps_next;
    GpuWork::Pass& pass =
        passes_[{action.stage, action.op, action.num_microbatches}];
    if (pass.kernels.empty()) Describe(action, extra_seconds, &pass);
    const int32_t task = graph_.ActionTask(gpu_, position);
    // With sharded weights, what follows the exchanges is a gather.
    const int32_t end = in_.costs.shards > 1
                            ? graph_.ExchangeEnd(gpu_, position)
                            : graph_.ActionEnd(gpu_, position);
    pass.count += InWindow(task);
    if (second) return;
    pass.seconds += Clipped(start_[task], end_[end]);
    if (!graph_.tasks.slowdowns.timers.empty()) {
      const double alone = graph_.tasks.amount(task);
      pass.sharing_part += InWindow(task) * SharingPart(task);
      pass.slowdown_seconds +=
          InWindow(task) *
          (end_[task] - start_[task] - (1 + SharingPart(task)) * alone);
    }
    const auto found =
        graph_.passes.expert_start.find(graph_.ActionEnd(gpu_, position));
    const double experts = found == graph_.passes.expert_start.end()
                               ? end_[end]
                               : end_[found->second];
    const double exchanged = end_[graph_.ContextEnd(gpu_, position)];
    pass.context_seconds += Clipped(end_[task], exchanged);
    pass.tensor_seconds += Clipped(exchanged, experts);
    pass.expert_seconds += Clipped(experts, end_[end]);
  }

  void Describe(const schedules::Action& action, double extra_seconds,
                GpuWork::Pass* pass) {
    const StageCosts& stage = in_.costs.of(gpu_, action.stage);
    const auto add = [&](const std::vector<PricedKernel>& kernels) {
      for (const PricedKernel& priced : kernels) {
        const double count = priced.count * action.num_microbatches;
        pass->kernels.push_back({IndexOf(priced.kernel), count});
      }
    };
    const StageKernels kernels = stage.kernels.value_or(StageKernels());
    if (action.op == schedules::Op::kForward) {
      add(kernels.forward);
      pass->host = stage.launches.forward;
    }
    if (schedules::MakesInputGradient(action.op)) {
      add(kernels.backward_input);
      pass->host = stage.launches.backward_input;
    }
    if (action.op == schedules::Op::kBackward ||
        action.op == schedules::Op::kBackwardWeight) {
      add(kernels.backward_weight);
      pass->host.backward_launches +=
          stage.launches.backward_weight.backward_launches;
    }
    // Without kernels, the pass itself was given or measured as a whole.
    const double alone = stage.seconds.Of(action.op) * action.num_microbatches;
    pass->given_seconds = extra_seconds + (pass->kernels.empty() ? alone : 0);
  }

  void AddStep(int step) {
    const int32_t task = graph_.StepTask(gpu_, step);
    if (task == PipelineGraph::kNone) return;
    const StageCosts& stage =
        in_.costs.of(gpu_, graph_.steps.plan[graph_.rank_of(gpu_)][step].stage);
    const PricedKernel kernel = stage.step.kernel.value_or(PricedKernel());
    // Not every step contains the update's fixed cost.
    const double copy_seconds = stage.step.copy_seconds;
    const double host_seconds = stage.step.host_seconds;
    const double matrix_seconds = stage.step.orthogonalization_seconds;
    const double rest = graph_.tasks.amount(task) - kernel.seconds -
                        copy_seconds - host_seconds - matrix_seconds;
    const double update_seconds = stage.step.update_seconds;
    const bool updates = rest > update_seconds / 2;
    work_.steps.push_back(
        {InWindow(task), Clipped(start_[task], end_[task]),
         IndexOf(kernel.kernel), updates,
         matrix_seconds + std::max(rest - (updates ? update_seconds : 0), 0.0),
         copy_seconds, host_seconds, SharingPart(task)});
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_, sharing_;
  const int gpu_;
  const Window& window_;
  GpuWork work_;
  std::map<std::tuple<int, schedules::Op, int>, GpuWork::Pass> passes_;
};

// Returns how many times longer the calls of each purpose take than at `base`.
std::array<double, kNumCallPurposes> Ratios(const GpuWork& work,
                                            const WorkPrices& base,
                                            const WorkPrices& prices) {
  std::array<double, kNumCallPurposes> before = {}, after = {}, ratios;
  for (size_t i = 0; i < work.calls.size(); ++i) {
    const auto purpose = static_cast<size_t>(work.calls[i].purpose);
    const bool exchange =
        work.blocking && work.calls[i].purpose == CallPurpose::kTransfer;
    const auto seconds = [&](const WorkPrices& p) {
      return work.calls[i].count *
             (p.call_seconds[i] +
              (exchange ? p.runtime.exchange_seconds().value() : 0));
    };
    before[purpose] += seconds(base);
    after[purpose] += seconds(prices);
  }
  for (int i = 0; i < kNumCallPurposes; ++i) {
    ratios[i] = before[i] > 0 ? after[i] / before[i] : 1;
  }
  return ratios;
}

// Returns how many times longer an optimizer step on the host takes.
double HostRatio(const Runtime& base, const Runtime& moved) {
  return moved.has_host_optimizer_bytes_per_second()
             ? base.host_optimizer_bytes_per_second().value() /
                   moved.host_optimizer_bytes_per_second().value()
             : 1;
}

double PassSeconds(const GpuWork::Pass& pass, const WorkPrices& prices,
                   double tensor_ratio, double expert_ratio,
                   double context_ratio, double given_factor,
                   double slowdown_ratio) {
  double own = pass.given_seconds * given_factor;
  for (const auto& [kernel, count] : pass.kernels) {
    const double seconds = prices.kernels[kernel].seconds;
    own += count * (seconds + GapAfter(seconds, prices.kernel_gap_seconds));
  }
  const double collectives = pass.tensor_seconds * tensor_ratio +
                             pass.expert_seconds * expert_ratio +
                             pass.context_seconds * context_ratio;
  own = std::max(own, pass.host.Seconds(prices.runtime) - collectives);
  const double alone = own * (1 + pass.sharing_part) + collectives;
  return pass.slowdown_seconds == 0
             ? alone
             : alone + pass.slowdown_seconds * slowdown_ratio;
}

}  // namespace

const Figure& SlowdownFigure(const GpuWork& work, const DeviceProfile& device) {
  return work.slowed_by == Mover::kCopies ? device.copy_slowdown()
                                          : device.collective_slowdown();
}

WorkPrices PriceWork(const GpuWork& work, const DeviceProfile& device,
                     const DeviceProfile& first, const Runtime& runtime) {
  WorkPrices prices;
  static const calibrate::KernelPrices& unmeasured =
      *new calibrate::KernelPrices;
  const calibrate::KernelPrices& measured =
      work.kernel_prices == nullptr ? unmeasured : *work.kernel_prices;
  for (const models::Kernel& kernel : work.kernels) {
    prices.kernels.push_back(measured.Price(device, work.peak_flops, kernel));
  }
  prices.kernel_gap_seconds = device.kernel_gap_seconds().value();
  for (const CollectiveCall& call : work.calls) {
    const LinkClass* link = calibrate::FindLink(first, call.distance);
    prices.call_seconds.push_back(
        link != nullptr
            ? calibrate::LinkTimeOf(*link, call.bytes).Seconds()
            : calibrate::CallCost(first.collectives(), call.kind, call.bytes,
                                  call.routing, call.group)
                  .Seconds());
  }
  const Figure& slowdown = SlowdownFigure(work, device);
  if (slowdown.value() != 0) prices.slowdown = slowdown.value();
  prices.runtime = runtime;
  return prices;
}

double WorkSeconds(const GpuWork& work, const WorkPrices& base,
                   const WorkPrices& prices, double given_factor) {
  const std::array<double, kNumCallPurposes> ratios =
      Ratios(work, base, prices);
  const auto ratio = [&](CallPurpose purpose) {
    return ratios[static_cast<size_t>(purpose)];
  };
  // The time that a flow adds to an overlapped pass grows with (factor - 1).
  const double slowdown_ratio =
      base.slowdown == 1 ? 1 : (prices.slowdown - 1) / (base.slowdown - 1);
  double seconds = 0;
  for (const GpuWork::Pass& pass : work.passes) {
    seconds +=
        pass.count * PassSeconds(pass, prices, ratio(CallPurpose::kTensor),
                                 ratio(CallPurpose::kExpert),
                                 ratio(CallPurpose::kContext), given_factor,
                                 slowdown_ratio);
  }
  seconds *= work.pass_scale;
  for (const GpuWork::Step& step : work.steps) {
    seconds += work.step_scale * step.count * (1 + step.sharing_part) *
               (prices.kernels[step.kernel].seconds + step.given_seconds +
                step.copy_seconds +
                step.host_seconds * HostRatio(base.runtime, prices.runtime) +
                (step.updates ? prices.runtime.update_seconds().value() : 0));
  }
  return seconds + work.transfer_seconds * ratio(CallPurpose::kTransfer) +
         work.reduction_seconds * ratio(CallPurpose::kReduction) +
         work.gather_seconds * ratio(CallPurpose::kGather);
}

GpuWork WorkOf(const PipelineInputs& inputs, const PipelineGraph& graph,
               const Recording& recording, int gpu, const Window& window) {
  GpuWork work = Gatherer(inputs, graph, recording, gpu, window).Run();
  const PathSeconds path = CriticalPath(graph, recording, window);
  work.transfer_seconds = path.transfers;
  work.reduction_seconds = path.reductions;
  work.gather_seconds = path.gathers;
  double passes = 0;
  for (const GpuWork::Pass& pass : work.passes) passes += pass.seconds;
  if (passes > 0) work.pass_scale = path.passes / passes;
  double steps = 0;
  for (const GpuWork::Step& step : work.steps) steps += step.seconds;
  if (steps > 0) work.step_scale = path.steps / steps;
  return work;
}

}  // namespace weir::sim
