// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "sim/costs/program_memory.h"
#include "sim/report/sweep_memory.h"

namespace weir::sim {
namespace {

// The order of simultaneous events does not matter: SweepMemory() samples after
// all of them.
bool Earlier(const MemoryEvent& a, const MemoryEvent& b) {
  return a.seconds < b.seconds;
}

class Tracer {
 public:
  Tracer(const PipelineInputs& inputs, const PipelineGraph& graph,
         const Recording& recording, int gpu)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        gpu_(gpu),
        rank_(graph.rank_of(gpu)) {}

  MemoryTimeline Trace(bool keep_samples) {
    AddStatic();
    AddActions();
    return SweepMemory(static_, SortedEvents(),
                       {.separate_bytes = separate_bytes_,
                        .by_stream = in_.costs.allocates_by_stream,
                        .keep_samples = keep_samples});
  }

 private:
  double& Static(MemoryClass::Kind kind) {
    return static_[static_cast<int>(kind)];
  }

  double CommunicationBytes(const DeviceCosts& device) const {
    return CommunicatorBytes(in_.costs, device,
                             graph_.communicators[in_.placement().gpus[gpu_]],
                             in_.gpus.full_placement().num_gpus());
  }

  void AddStatic() {
    const DeviceCosts& device = in_.costs.device_of(gpu_);
    Static(MemoryClass::RESERVED) = device.reserved_bytes;
    Static(MemoryClass::COMMUNICATION_BUFFERS) = CommunicationBytes(device);
    const schedules::WeightPolicy& weights = in_.schedule.weights;
    for (int s : graph_.rank_stages[rank_]) {
      const StageCosts& stage = in_.costs.stages[s];
      Static(MemoryClass::WEIGHTS) +=
          in_.costs.sharded_bytes(stage, stage.parameters.weight_bytes) +
          stage.parameters.weight_copy_bytes;
      if (in_.schedule.forward_only) continue;
      Static(MemoryClass::GRADIENTS) +=
          (in_.costs.frees_gradients
               ? 0
               : GradientBytes(s) * (NeedsSecondGradient(s) ? 2 : 1)) +
          in_.costs.sharded_bytes(stage, stage.parameters.kept_gradient_bytes);
      Static(MemoryClass::OPTIMIZER_STATE) +=
          stage.parameters.optimizer_state_bytes *
          in_.costs.stepped_part(stage);
      Static(MemoryClass::PREDICTED_WEIGHTS) +=
          stage.parameters.weight_bytes * weights.predicted_copies;
      Static(MemoryClass::ESTIMATE_BUFFERS) +=
          stage.parameters.fp32_bytes * weights.estimate_buffers;
    }
  }

  // While a reduction reads the gradients of one batch, those of the next batch
  // accumulate.
  bool NeedsSecondGradient(int stage) const {
    return !in_.schedule.flush &&
           in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED &&
           (in_.gpus.full_placement().data > 1 ||
            in_.schedule.RanksOf(stage).size() > 1);
  }

  double GradientBytes(int stage) const {
    const StageCosts& costs = in_.costs.stages[stage];
    return in_.costs.sharded_bytes(costs, costs.parameters.gradient_bytes);
  }

  // `count` below 0: frees.
  void Add(double seconds, MemoryClass::Kind kind, int count,
           double bytes_of_each, bool of_step = false) {
    if (count == 0 || bytes_of_each == 0) return;
    actions_.push_back({seconds, kind, count * bytes_of_each, count, of_step});
  }

  void AddStepBuffers() {
    if (!graph_.steps.first.has_value()) return;
    const auto& steps = graph_.steps.plan[rank_];
    for (size_t i = 0; i < steps.size(); ++i) {
      const StageCosts& stage = in_.costs.stages[steps[i].stage];
      const double bytes = StepBytes(in_.costs, stage);
      separate_bytes_ =
          std::max(separate_bytes_, stage.step.buffers.separate_bytes);
      if (bytes == 0) continue;
      const int32_t task = graph_.StepTask(gpu_, static_cast<int>(i));
      Add(start_[task], MemoryClass::PASS_SCRATCH, 1, bytes, true);
      Add(end_[task], MemoryClass::PASS_SCRATCH, -1, bytes, true);
      last_end_ = std::max(last_end_, end_[task]);
    }
  }

  void AddFor(double start, double end, MemoryClass::Kind kind, double bytes) {
    Add(start, kind, 1, bytes);
    Add(end, kind, -1, bytes);
  }

  void AddScratch(double start, double end, double bytes) {
    AddFor(start, end, MemoryClass::PASS_SCRATCH, bytes);
  }

  void AddActions() {
    const auto& actions = in_.schedule.rank_actions[rank_];
    const auto& live = in_.semantics.live_versions[rank_];
    absl::flat_hash_map<int, int> stashed;  // by stage
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedules::Action& action = actions[i];
      const StageCosts& stage = in_.costs.stages[action.stage];
      const double start = start_[graph_.ActionTask(gpu_, i)];
      const double end = end_[graph_.ActionEnd(gpu_, i)];
      AddPass(action, stage, start, end);
      if (!schedules::IsCompute(action.op)) continue;
      const int extra = live[i] - 1;
      Add(start, MemoryClass::WEIGHT_STASH, extra - stashed[action.stage],
          stage.parameters.stash_bytes);
      stashed[action.stage] = extra;
      AddBuffers(action, start, end);
      last_end_ = end;
    }
    AddStepBuffers();
    // When the run ends, only the newest version of each stage remains. Older
    // ones are held until the last optimizer step has ended.
    for (int s : graph_.rank_stages[rank_]) {
      Add(last_end_, MemoryClass::WEIGHT_STASH, -stashed[s],
          in_.costs.stages[s].parameters.stash_bytes);
    }
    if (in_.costs.frees_gradients) AddFreedGradients();
    if (in_.costs.shards > 1) AddUnsharded();
  }

  // Returns all events by time. Simultaneous events of a list keep their order.
  std::vector<MemoryEvent> SortedEvents() {
    std::vector<MemoryEvent> sorted, merged;
    for (std::vector<MemoryEvent>* events :
         {&buffers_.received[0], &buffers_.received[1], &buffers_.sent[0],
          &buffers_.sent[1], &buffers_.at_passes, &actions_}) {
      // Channels and overlapped pairs end out of order.
      if (!std::is_sorted(events->begin(), events->end(), Earlier)) {
        std::stable_sort(events->begin(), events->end(), Earlier);
      }
      merged.resize(sorted.size() + events->size());
      std::merge(sorted.begin(), sorted.end(), events->begin(), events->end(),
                 merged.begin(), Earlier);
      sorted.swap(merged);
    }
    return sorted;
  }

  // `n` microbatches; below 0: freed.
  void AddActivations(double seconds, const StageCosts& stage, int n) {
    Add(seconds, MemoryClass::ACTIVATIONS, n,
        stage.activations.saved_bytes - stage.activations.end_bytes);
    Add(seconds, MemoryClass::END_ACTIVATIONS, n, stage.activations.end_bytes);
  }

  void AddPass(const schedules::Action& action, const StageCosts& stage,
               double start, double end) {
    const int n = action.num_microbatches;
    switch (action.op) {
      case schedules::Op::kForward:
        if (in_.schedule.forward_only) {
          Add(start, MemoryClass::ACTIVATIONS, n,
              stage.activations.layer_bytes);
          Add(end, MemoryClass::ACTIVATIONS, -n, stage.activations.layer_bytes);
        } else {
          AddActivations(start, stage, n);
        }
        AddScratch(start, end, stage.activations.forward_scratch_bytes * n);
        break;
      case schedules::Op::kBackward:
      case schedules::Op::kBackwardInput:
        Add(start, MemoryClass::RECOMPUTE_SCRATCH, n,
            stage.activations.recompute_scratch_bytes);
        Add(end, MemoryClass::RECOMPUTE_SCRATCH, -n,
            stage.activations.recompute_scratch_bytes);
        AddScratch(start, end, stage.activations.backward_scratch_bytes * n);
        AddActivations(end, stage, -n);
        if (action.op == schedules::Op::kBackwardInput) {
          Add(end, MemoryClass::WEIGHT_GRADIENT_STASH, n,
              stage.activations.weight_gradient_stash_bytes);
        }
        break;
      case schedules::Op::kBackwardWeight:
        Add(end, MemoryClass::WEIGHT_GRADIENT_STASH, -n,
            stage.activations.weight_gradient_stash_bytes);
        break;
      case schedules::Op::kOffload:
        AddActivations(end, stage, -n);
        break;
      case schedules::Op::kReload:
        AddActivations(start, stage, n);
        break;
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
  }

  // Adds the gradients of each update from the end of its first backward, which
  // frees activations as it allocates them, to the end of its step.
  void AddFreedGradients() {
    if (in_.schedule.forward_only) return;
    absl::flat_hash_map<int, int> next;  // by stage: after the previous update
    const auto& steps = graph_.steps.plan[rank_];
    for (int i = 0; i < std::ssize(steps); ++i) {
      AddGradients(steps[i].stage, next[steps[i].stage], StepEnd(i));
      next[steps[i].stage] = steps[i].reduce_after + 1;
    }
    // The last microbatches may complete no update.
    for (int stage : graph_.rank_stages[rank_]) {
      AddGradients(stage, next[stage], last_end_);
    }
  }

  // From the first backward of the stage at or after a position.
  void AddGradients(int stage, int position, double end) {
    const auto& actions = in_.schedule.rank_actions[rank_];
    const auto first =
        std::find_if(actions.begin() + position, actions.end(),
                     [&](const schedules::Action& action) {
                       return action.stage == stage &&
                              schedules::CompletesGradient(action.op);
                     });
    if (first == actions.end()) return;
    AddFor(
        end_[graph_.ActionEnd(gpu_, static_cast<int>(first - actions.begin()))],
        end, MemoryClass::GRADIENTS, GradientBytes(stage));
  }

  double StepEnd(int i) const {
    if (graph_.steps.first.has_value()) return end_[graph_.StepTask(gpu_, i)];
    const int32_t reduced = graph_.ReduceEnd(gpu_, i);
    if (reduced != PipelineGraph::kNone) return end_[reduced];
    return end_[graph_.ActionEnd(gpu_,
                                 graph_.steps.plan[rank_][i].reduce_after)];
  }

  // Adds what passes hold of sharded stages. In a pipeline a run holds its
  // whole stage, weights from their gather on, gradients from the first
  // backward of an update until they are reduced. Without a pipeline, layers
  // are gathered and freed one by one: the current one and the next (PyTorch's
  // FSDP2, reshard_after_forward).
  void AddUnsharded() {
    const bool by_layer = graph_.pipeline == 1;
    const auto& actions = in_.schedule.rank_actions[rank_];
    const auto& runs = graph_.gathers->runs[rank_];
    const auto stage_of = [&](size_t run) -> const StageCosts& {
      return in_.costs.stages[runs[run].stage];
    };
    const auto end_of = [&](size_t run) {
      return end_[graph_.ActionEnd(gpu_, runs[run].last)];
    };
    for (size_t i = 0; i < runs.size(); ++i) {
      const double gathered =
          end_[graph_.GatherStart(gpu_, static_cast<int>(i))];
      const StageCosts& stage = stage_of(i);
      if (!by_layer) {
        AddFor(gathered, end_of(i), MemoryClass::GATHERED_WEIGHTS,
               stage.parameters.gathered_bytes());
        continue;
      }
      const double before = i > 0 ? end_of(i - 1) : gathered;
      AddFor(std::max(gathered, before), end_of(i),
             MemoryClass::GATHERED_WEIGHTS,
             stage.parameters.most_gathered_bytes());
      if (i == 0 || gathered >= before) continue;
      // Its first layer is gathered during the last layer of the previous run.
      const auto forward = [&](size_t run) {
        return actions[runs[run].first].op == schedules::Op::kForward;
      };
      const double two =
          stage_of(i - 1).parameters.first_gathered_bytes(!forward(i - 1)) +
          stage.parameters.first_gathered_bytes(forward(i));
      AddFor(gathered, before, MemoryClass::GATHERED_WEIGHTS,
             std::max(two - stage_of(i - 1).parameters.most_gathered_bytes(),
                      0.0));
    }
    AddUnshardedGradients();
  }

  void AddUnshardedGradients() {
    const auto& actions = in_.schedule.rank_actions[rank_];
    const auto& steps = graph_.steps.plan[rank_];
    for (size_t i = 0; i < steps.size(); ++i) {
      const int32_t reduced = graph_.ReduceEnd(gpu_, static_cast<int>(i));
      if (reduced == PipelineGraph::kNone) continue;
      const auto makes = [&](const schedules::Action& action) {
        return action.stage == steps[i].stage &&
               schedules::CompletesGradient(action.op);
      };
      const auto first = std::find_if(actions.begin(), actions.end(), makes);
      const StageCosts& stage = in_.costs.stages[steps[i].stage];
      if (graph_.pipeline == 1 && in_.costs.shards_each_gradient) {
        AddLayerGradients(stage, makes, end_[reduced]);
        continue;
      }
      // A layer's gradients are reduced while the next layer computes its own.
      const bool by_layer = graph_.pipeline == 1 &&
                            std::count_if(first, actions.end(), makes) == 1;
      const double part = by_layer ? stage.parameters.most_gathered_bytes() /
                                         stage.parameters.gathered_bytes()
                                   : 1;
      AddFor(start_[graph_.ActionTask(
                 gpu_, static_cast<int>(first - actions.begin()))],
             end_[reduced], MemoryClass::GRADIENTS,
             stage.parameters.gradient_bytes * part);
    }
  }

  // Adds the gradients of the layers at which backward passes are, which are
  // reduced and sharded at once; those of the last pass by `reduced_seconds`.
  template <typename Makes>
  void AddLayerGradients(const StageCosts& stage, const Makes& makes,
                         double reduced_seconds) {
    const auto& actions = in_.schedule.rank_actions[rank_];
    const double part = stage.parameters.most_gathered_bytes() /
                        stage.parameters.gathered_bytes();
    const auto last = std::find_if(actions.rbegin(), actions.rend(), makes);
    for (size_t i = 0; i < actions.size(); ++i) {
      if (!makes(actions[i])) continue;
      AddFor(start_[graph_.ActionTask(gpu_, static_cast<int>(i))],
             &actions[i] == &*last
                 ? reduced_seconds
                 : end_[graph_.ActionEnd(gpu_, static_cast<int>(i))],
             MemoryClass::GRADIENTS, stage.parameters.gradient_bytes * part);
    }
  }

  // Adds data in flight: the sender's copy until it is sent, the receiver's
  // from its first byte until it is used (then a forward's input is part of the
  // activations).
  void AddBuffers(const schedules::Action& action, double start, double end) {
    const bool forward = action.op == schedules::Op::kForward;
    const int n = action.num_microbatches;
    const int32_t in = graph_.InboundTransfer(gpu_, action);
    if (in != PipelineGraph::kNone) {
      const int from = forward ? action.stage - 1 : action.stage;
      const double bytes = in_.costs.sent_bytes(from) * n;
      AddBuffer(start_[in], bytes, &buffers_.received[forward]);
      AddBuffer(forward ? start : end, -bytes, &buffers_.at_passes);
    }
    const int32_t out = graph_.OutboundTransfer(gpu_, action);
    if (out != PipelineGraph::kNone) {
      const int of = forward ? action.stage : action.stage - 1;
      const double bytes = in_.costs.sent_bytes(of) * n;
      AddBuffer(end, bytes, &buffers_.at_passes);
      AddBuffer(end_[out], -bytes, &buffers_.sent[forward]);
    }
  }

  // `bytes` below 0: frees.
  static void AddBuffer(double seconds, double bytes,
                        std::vector<MemoryEvent>* events) {
    if (bytes == 0) return;
    events->push_back({seconds, MemoryClass::COMMUNICATION_BUFFERS, bytes,
                       bytes < 0 ? -1 : 1});
  }

  // Separate lists, each of which is nearly always in the order of time.
  struct BufferEvents {
    std::vector<MemoryEvent> received[2];  // [forward]: begin of a transfer
    std::vector<MemoryEvent> sent[2];      // [forward]: end of a transfer
    std::vector<MemoryEvent> at_passes;    // begin or end of a pass
  };

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_;
  const int gpu_, rank_;
  MemoryByKind static_{};
  double last_end_ = 0;        // end of the rank's last pass or step
  double separate_bytes_ = 0;  // of the buffers of its steps
  std::vector<MemoryEvent> actions_;
  BufferEvents buffers_;
};

}  // namespace

MemoryTimeline TraceMemory(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu,
                           bool keep_samples) {
  return Tracer(inputs, graph, recording, gpu).Trace(keep_samples);
}

}  // namespace weir::sim
