// SPDX-License-Identifier: Apache-2.0
#include "sim/memory.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"

namespace weir {
namespace {

struct Event {
  double seconds;
  MemoryKind kind;
  double bytes;  // below 0: freed
};

// At one moment transfers let go of their buffers, then the GPU's own work
// frees and allocates in its order, then new transfers take theirs: what hands
// over to something else is not counted twice.
int OrderAtOneMoment(const Event& event) {
  if (event.kind != MemoryKind::kCommunicationBuffers) return 1;
  return event.bytes < 0 ? 0 : 2;
}

bool Earlier(const Event& a, const Event& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  return OrderAtOneMoment(a) < OrderAtOneMoment(b);
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
    // Stable: what one GPU does at one moment stays in its own order.
    std::stable_sort(buffers_.begin(), buffers_.end(), Earlier);
    std::vector<Event> events(actions_.size() + buffers_.size());
    std::merge(actions_.begin(), actions_.end(), buffers_.begin(),
               buffers_.end(), events.begin(), Earlier);
    return Sweep(events, keep_samples);
  }

 private:
  double& Static(MemoryKind kind) { return static_[static_cast<int>(kind)]; }

  void AddStatic() {
    const bool second_gradient =
        !in_.schedule.flush && in_.placement.data > 1 &&
        in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED;
    Static(MemoryKind::kReserved) = in_.costs.reserved_bytes;
    Static(MemoryKind::kCommunicationBuffers) =
        in_.placement.num_gpus() > 1 ? in_.costs.communication_buffer_bytes : 0;
    for (int s : graph_.rank_stages[rank_]) {
      const StageCosts& stage = in_.costs.stages[s];
      Static(MemoryKind::kWeights) += stage.weight_bytes;
      Static(MemoryKind::kGradients) +=
          stage.gradient_bytes * (second_gradient ? 2 : 1);
      Static(MemoryKind::kOptimizerState) += stage.optimizer_state_bytes;
    }
  }

  void Add(double seconds, MemoryKind kind, double bytes) {
    if (bytes != 0) actions_.push_back({seconds, kind, bytes});
  }

  void AddActions() {
    const auto& actions = in_.schedule.rank_actions[rank_];
    const auto& live = in_.semantics.live_versions[rank_];
    absl::flat_hash_map<int, int> stashed;  // by stage
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const StageCosts& stage = in_.costs.stages[action.stage];
      const double start = start_[graph_.ActionTask(gpu_, i)];
      const double end = end_[graph_.ActionEnd(gpu_, i)];
      const int extra = live[i] - 1;
      Add(start, MemoryKind::kWeightStash,
          (extra - stashed[action.stage]) * stage.stash_bytes);
      stashed[action.stage] = extra;
      AddPass(action.op, stage, start, end);
      AddBuffers(action, stage, start, end);
      last_end_ = end;
    }
    // The run is over: of every stage the newest version remains.
    for (int s : graph_.rank_stages[rank_]) {
      Add(last_end_, MemoryKind::kWeightStash,
          -stashed[s] * in_.costs.stages[s].stash_bytes);
    }
  }

  void AddPass(Op op, const StageCosts& stage, double start, double end) {
    switch (op) {
      case Op::kForward:
        Add(start, MemoryKind::kActivations, stage.activation_bytes);
        break;
      case Op::kBackward:
      case Op::kBackwardInput:
        Add(start, MemoryKind::kRecomputeScratch,
            stage.recompute_scratch_bytes);
        Add(end, MemoryKind::kRecomputeScratch, -stage.recompute_scratch_bytes);
        Add(end, MemoryKind::kActivations, -stage.activation_bytes);
        if (op == Op::kBackwardInput) {
          Add(end, MemoryKind::kWeightGradientStash,
              stage.weight_gradient_stash_bytes);
        }
        break;
      case Op::kBackwardWeight:
        Add(end, MemoryKind::kWeightGradientStash,
            -stage.weight_gradient_stash_bytes);
        break;
      case Op::kOffload:
      case Op::kReload:
        break;
    }
  }

  // What is on its way: the sender's copy until it is sent, the receiver's from
  // its first byte until it is used (a forward's input is part of the
  // activations from then on).
  void AddBuffers(const Action& action, const StageCosts& stage, double start,
                  double end) {
    const bool forward = action.op == Op::kForward;
    const int32_t in = graph_.InboundTransfer(gpu_, action);
    if (in != PipelineGraph::kNone) {
      const double bytes = forward
                               ? in_.costs.stages[action.stage - 1].output_bytes
                               : stage.output_bytes;
      AddBuffer(start_[in], forward ? start : end, bytes);
    }
    const int32_t out = graph_.OutboundTransfer(gpu_, action);
    if (out != PipelineGraph::kNone) {
      const double bytes =
          forward ? stage.output_bytes
                  : in_.costs.stages[action.stage - 1].output_bytes;
      AddBuffer(end, end_[out], bytes);
    }
  }

  void AddBuffer(double from, double to, double bytes) {
    if (bytes == 0) return;
    buffers_.push_back({from, MemoryKind::kCommunicationBuffers, bytes});
    buffers_.push_back({to, MemoryKind::kCommunicationBuffers, -bytes});
  }

  MemoryTimeline Sweep(const std::vector<Event>& events, bool keep_samples) {
    MemoryTimeline timeline;
    MemoryByKind now = static_;
    const auto total = [&] {
      return std::accumulate(now.begin(), now.end(), 0.0);
    };
    timeline.floor_bytes = timeline.peak_bytes = total();
    timeline.peak_by_kind = now;
    if (keep_samples) timeline.samples.push_back({0, timeline.floor_bytes});
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      now[static_cast<int>(event.kind)] += event.bytes;
      // What happens at one moment counts when all of it has happened.
      if (i + 1 < events.size() && events[i + 1].seconds == event.seconds) {
        continue;
      }
      const double bytes = total();
      if (bytes > timeline.peak_bytes) {
        timeline.peak_bytes = bytes;
        timeline.peak_at_seconds = event.seconds;
        timeline.peak_by_kind = now;
      }
      if (!keep_samples) continue;
      if (event.seconds == 0) {
        timeline.samples.front().bytes = bytes;
      } else {
        timeline.samples.push_back({event.seconds, bytes});
      }
    }
    timeline.final_bytes = total();
    return timeline;
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_;
  const int gpu_, rank_;
  MemoryByKind static_{};
  double last_end_ = 0;
  std::vector<Event> actions_, buffers_;
};

}  // namespace

const char* Name(MemoryKind kind) {
  static constexpr const char* kNames[kNumMemoryKinds] = {
      "weights",
      "weight_stash",
      "gradients",
      "optimizer_state",
      "activations",
      "recompute_scratch",
      "weight_gradient_stash",
      "communication_buffers",
      "reserved"};
  return kNames[static_cast<int>(kind)];
}

MemoryTimeline TraceMemory(const PipelineInputs& inputs,
                           const PipelineGraph& graph,
                           const Recording& recording, int gpu,
                           bool keep_samples) {
  return Tracer(inputs, graph, recording, gpu).Trace(keep_samples);
}

double PeakActivationMicrobatches(const std::vector<Action>& actions,
                                  int num_stages) {
  int now = 0, peak = 0;
  for (const Action& action : actions) {
    if (action.op == Op::kForward) {
      peak = std::max(peak, ++now);
    } else if (MakesInputGradient(action.op)) {
      --now;
    }
  }
  return static_cast<double>(peak) / num_stages;
}

}  // namespace weir
