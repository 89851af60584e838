// SPDX-License-Identifier: Apache-2.0
#include "sim/report/timeline.h"

#include <algorithm>
#include <array>

#include "results/result_enums.h"

namespace weir::sim {
namespace {

double BytesOf(const std::vector<models::LayerCollective>& collectives,
               models::LayerCollective::Group group) {
  double bytes = 0;
  for (const models::LayerCollective& one : collectives) {
    if (one.group == group) bytes += one.bytes * one.count;
  }
  return bytes;
}

class Filler {
 public:
  Filler(const PipelineInputs& inputs, const PipelineGraph& graph,
         const Recording& recording, Timeline* timeline)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        from_seconds_(timeline->from_seconds()),
        timeline_(timeline) {}

  void AddGpu(int gpu) {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu)];
    for (size_t i = 0; i < actions.size(); ++i) {
      const schedules::Action& action = actions[i];
      const int32_t task = graph_.ActionTask(gpu, static_cast<int>(i));
      AddAction(gpu, results::TimelineOpOf(action.op), action.stage,
                action.microbatch, start_[task], end_[task],
                action.num_microbatches, VersionOf(action));
      if (schedules::IsCompute(action.op))
        AddCollectivesIn(gpu, static_cast<int>(i));
      AddTransfer(gpu, action);
    }
    AddSteps(gpu);
    AddGathers(gpu);
  }

 private:
  static constexpr int kNoVersion = -1;

  // Returns the version of the weights that the action reads.
  int VersionOf(const schedules::Action& action) const {
    const auto& use = in_.semantics.uses[action.stage][action.microbatch];
    switch (action.op) {
      case schedules::Op::kForward:
        return use.forward_version;
      case schedules::Op::kBackward:
      case schedules::Op::kBackwardInput:
        return use.backward_version;
      default:
        return kNoVersion;
    }
  }

  void AddAction(int gpu, Timeline::Actions::Op op, int stage, int microbatch,
                 double start, double end, int num_microbatches = 1,
                 int version = kNoVersion) {
    if (end < from_seconds_) return;
    Timeline::Actions* actions = timeline_->mutable_actions();
    AddSpan(num_microbatches, actions);
    actions->add_gpu(gpu);
    actions->add_op(op);
    actions->add_stage(stage);
    actions->add_microbatch(microbatch);
    actions->add_start_seconds(start);
    actions->add_end_seconds(end);
    actions->add_weight_version(version);
  }

  // The column exists only if an action spans several microbatches.
  static void AddSpan(int num_microbatches, Timeline::Actions* actions) {
    auto* column = actions->mutable_num_microbatches();
    if (column->empty() && num_microbatches == 1) return;
    while (column->size() < actions->gpu_size()) column->Add(1);
    column->Add(num_microbatches);
  }

  // Adds the collectives that end after the kernels.
  void AddCollectivesIn(int gpu, int position) {
    using Group = models::LayerCollective::Group;
    const schedules::Action& action =
        in_.schedule.rank_actions[graph_.rank_of(gpu)][position];
    const StageCosts& stage = in_.costs.stages[action.stage];
    const auto& collectives = action.op == schedules::Op::kForward
                                  ? stage.communication.forward_collectives
                                  : stage.communication.backward_collectives;
    const double computed = end_[graph_.ActionTask(gpu, position)];
    const double tensor_end = end_[graph_.TensorEnd(gpu, position)];
    const double end = end_[graph_.ActionEnd(gpu, position)];
    const double exchanged = end_[graph_.ContextEnd(gpu, position)];
    if (exchanged > computed) {
      AddCollective(
          gpu, Timeline::Collectives::CONTEXT_EXCHANGE, action.stage,
          action.microbatch,
          action.num_microbatches * BytesOf(collectives, Group::kContext),
          computed, exchanged);
    }
    if (tensor_end > exchanged) {
      AddCollective(
          gpu, Timeline::Collectives::TENSOR, action.stage, action.microbatch,
          action.num_microbatches * BytesOf(collectives, Group::kTensor),
          exchanged, tensor_end);
    }
    const double exchange_end =
        in_.costs.shards > 1 ? end_[graph_.ExchangeEnd(gpu, position)] : end;
    if (exchange_end > tensor_end) {
      AddCollective(gpu, Timeline::Collectives::EXPERT_EXCHANGE, action.stage,
                    action.microbatch,
                    action.num_microbatches *
                        (BytesOf(collectives, Group::kExpert) +
                         BytesOf(collectives, Group::kExpertTensor)),
                    tensor_end, exchange_end);
    }
  }

  void AddCollective(int gpu, Timeline::Collectives::Kind kind, int stage,
                     int microbatch, double bytes, double start, double end) {
    if (end < from_seconds_) return;
    Timeline::Collectives* collectives = timeline_->mutable_collectives();
    collectives->add_gpu(gpu);
    collectives->add_kind(kind);
    collectives->add_stage(stage);
    collectives->add_microbatch(microbatch);
    collectives->add_bytes(bytes);
    collectives->add_start_seconds(start);
    collectives->add_end_seconds(end);
  }

  void AddSpanOf(int gpu, Timeline::Collectives::Kind kind, int stage,
                 int number, double bytes, const CollectiveSpan& span) {
    if (span.end == PipelineGraph::kNone) return;
    AddCollective(gpu, kind, stage, number, bytes, end_[span.start],
                  end_[span.end]);
  }

  void AddTransfer(int gpu, const schedules::Action& action) {
    const int32_t task = graph_.OutboundTransfer(gpu, action);
    if (task == PipelineGraph::kNone || end_[task] < from_seconds_) return;
    const bool forward = action.op == schedules::Op::kForward;
    const int to = forward ? action.stage + 1 : action.stage - 1;
    const int from_rank = graph_.rank_of(gpu);
    const int to_rank = in_.schedule.rank_of(to, action.microbatch);
    Timeline::Transfers* transfers = timeline_->mutable_transfers();
    transfers->add_from_gpu(gpu);
    transfers->add_to_gpu(gpu + (to_rank - from_rank) * graph_.tensor);
    transfers->add_kind(forward ? Timeline::Transfers::ACTIVATION
                                : Timeline::Transfers::GRADIENT);
    transfers->add_stage(action.stage);
    transfers->add_microbatch(action.microbatch);
    transfers->add_bytes(in_.costs.sent_bytes(forward ? action.stage : to) *
                         action.num_microbatches);
    transfers->add_start_seconds(start_[task]);
    transfers->add_end_seconds(end_[task]);
  }

  void AddSteps(int gpu) {
    const auto& steps = graph_.steps.plan[graph_.rank_of(gpu)];
    if (!graph_.steps.first.has_value()) return;
    for (size_t i = 0; i < steps.size(); ++i) {
      const int index = static_cast<int>(i);
      const StageCosts& stage = in_.costs.stages[steps[i].stage];
      const auto pieces = graph_.ReductionPieces(gpu, index);
      for (const CollectiveSpan& piece : pieces) {
        AddSpanOf(gpu, Timeline::Collectives::GRADIENT_REDUCTION,
                  steps[i].stage, steps[i].update,
                  stage.parameters.gradient_bytes / pieces.size(), piece);
      }
      AddSpanOf(gpu, Timeline::Collectives::TIED_REDUCTION, steps[i].stage,
                steps[i].update, in_.costs.tied_gradient_bytes,
                graph_.TiedReduction(gpu, index));
      AddSpanOf(gpu, Timeline::Collectives::WEIGHT_GATHER, steps[i].stage,
                steps[i].update, stage.parameters.gathered_bytes(),
                graph_.StepGather(gpu, index));
      const int32_t task = graph_.StepTask(gpu, index);
      AddAction(gpu, Timeline::Actions::OPTIMIZER_STEP, steps[i].stage,
                steps[i].update, start_[task], end_[task]);
    }
  }

  void AddGathers(int gpu) {
    if (!graph_.gathers.has_value()) return;
    const auto& runs = graph_.gathers->runs[graph_.rank_of(gpu)];
    for (size_t i = 0; i < runs.size(); ++i) {
      const int index = static_cast<int>(i);
      const StageCosts& stage = in_.costs.stages[runs[i].stage];
      const bool forward =
          in_.schedule.rank_actions[graph_.rank_of(gpu)][runs[i].first].op ==
          schedules::Op::kForward;
      const ShardGathers calls = CollectivesOfGather(in_, stage, forward);
      const auto& [first, exposed] = calls.before;
      AddSpanOf(
          gpu, Timeline::Collectives::WEIGHT_GATHER, runs[i].stage, index,
          first.bytes * first.count + exposed.bytes * exposed.count +
              calls.experts_before[0].bytes * calls.experts_before[0].count +
              calls.experts_before[1].bytes * calls.experts_before[1].count,
          {graph_.GatherStart(gpu, index), graph_.GatherEnd(gpu, index)});
      AddSpanOf(gpu, Timeline::Collectives::WEIGHT_GATHER, runs[i].stage, index,
                calls.overlapped.bytes * calls.overlapped.count,
                graph_.LayersGather(gpu, index));
    }
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_;
  const double from_seconds_;
  Timeline* timeline_;
};

}  // namespace

void FillTimeline(const PipelineInputs& inputs, const PipelineGraph& graph,
                  const Recording& recording, Timeline* timeline) {
  Filler filler(inputs, graph, recording, timeline);
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) filler.AddGpu(gpu);
}

void FillMemory(int gpu, const MemoryTimeline& memory, Timeline* timeline) {
  const double from_seconds = timeline->from_seconds();
  const auto& samples = memory.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i + 1 < samples.size() && samples[i + 1].seconds <= from_seconds) {
      continue;
    }
    timeline->mutable_memory()->add_gpu(gpu);
    timeline->mutable_memory()->add_seconds(
        std::max(samples[i].seconds, from_seconds));
    timeline->mutable_memory()->add_bytes(samples[i].bytes);
  }
}

void FillClassMemory(int gpu, const MemoryTimeline& memory,
                     Timeline* timeline) {
  const double from_seconds = timeline->from_seconds();
  const auto add = [&](const ClassSample& sample) {
    Timeline::ClassMemory* columns = timeline->mutable_class_memory();
    columns->add_gpu(gpu);
    columns->add_kind(sample.kind);
    columns->add_seconds(std::max(sample.seconds, from_seconds));
    columns->add_bytes(sample.bytes);
  };
  // [kind]: in use at from_seconds
  std::array<ClassSample, MemoryClass::Kind_ARRAYSIZE> first{};
  size_t i = 0;
  for (; i < memory.class_samples.size(); ++i) {
    const ClassSample& sample = memory.class_samples[i];
    if (sample.seconds > from_seconds) break;
    first[static_cast<size_t>(sample.kind)] = sample;
  }
  for (const ClassSample& sample : first) {
    if (sample.bytes != 0) add(sample);
  }
  for (; i < memory.class_samples.size(); ++i) add(memory.class_samples[i]);
}

}  // namespace weir::sim
