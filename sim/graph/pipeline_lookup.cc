// SPDX-License-Identifier: Apache-2.0
// Lookup of the tasks of a pipeline graph.
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

int32_t PipelineGraph::InboundTransfer(int gpu,
                                       const schedules::Action& action) const {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op)) return kNone;
  const int from = forward ? action.stage - 1 : action.stage + 1;
  if (from < 0 || from >= transfers.num_stages) return kNone;
  return (
      forward
          ? transfers.activations
          : transfers.gradients)[TransferCell(gpu, from, action.microbatch)];
}

int32_t PipelineGraph::OutboundTransfer(int gpu,
                                        const schedules::Action& action) const {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op)) return kNone;
  return (forward ? transfers.activations : transfers.gradients)[TransferCell(
      gpu, action.stage, action.microbatch)];
}

int32_t PipelineGraph::ReduceEnd(int gpu, int step) const {
  if (!reductions.has_value()) return kNone;
  const int32_t reduction = reductions->of_step[rank_of(gpu)][step];
  return reduction == kNone ? kNone
                            : reductions->first_end[gpu % tensor] + reduction;
}

int32_t PipelineGraph::GatherStart(int gpu, int run) const {
  return gathers->first_start[rank_of(gpu) * tensor + gpu % tensor] + run;
}

int32_t PipelineGraph::GatherEnd(int gpu, int run) const {
  return gathers->first_end[rank_of(gpu) * tensor + gpu % tensor] + run;
}

std::span<const CollectiveSpan> PipelineGraph::ReductionPieces(int gpu,
                                                               int step) const {
  if (!reductions.has_value()) return {};
  const int32_t reduction = reductions->of_step[rank_of(gpu)][step];
  if (reduction == kNone) return {};
  return reductions->pieces[gpu % tensor][reduction];
}

CollectiveSpan PipelineGraph::LayersGather(int gpu, int run) const {
  return gathers->layers[rank_of(gpu) * tensor + gpu % tensor][run];
}

CollectiveSpan PipelineGraph::TiedReduction(int gpu, int step) const {
  const auto at = steps.tied_reductions.find({gpu, step});
  return at == steps.tied_reductions.end() ? CollectiveSpan() : at->second;
}

CollectiveSpan PipelineGraph::StepGather(int gpu, int step) const {
  const auto at = steps.gathers.find({gpu, step});
  return at == steps.gathers.end() ? CollectiveSpan() : at->second;
}

}  // namespace weir::sim
