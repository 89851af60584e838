// SPDX-License-Identifier: Apache-2.0
// Where the tasks of a pipeline graph are.
#include "sim/pipeline_graph.h"

namespace weir {

int32_t PipelineGraph::InboundTransfer(int gpu, const Action& action) const {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return kNone;
  const int from = forward ? action.stage - 1 : action.stage + 1;
  if (from < 0 || from >= num_stages) return kNone;
  return (forward ? activations
                  : gradients)[TransferCell(gpu, from, action.microbatch)];
}

int32_t PipelineGraph::OutboundTransfer(int gpu, const Action& action) const {
  const bool forward = action.op == Op::kForward;
  if (!forward && !MakesInputGradient(action.op)) return kNone;
  return (forward
              ? activations
              : gradients)[TransferCell(gpu, action.stage, action.microbatch)];
}

int32_t PipelineGraph::ReduceStart(int gpu, int step) const {
  if (first_reduce_start.empty()) return kNone;
  return first_reduce_start[rank_of(gpu) * tensor + gpu % tensor] + step;
}

int32_t PipelineGraph::ReduceEnd(int gpu, int step) const {
  if (first_reduce_end.empty()) return kNone;
  return first_reduce_end[rank_of(gpu) * tensor + gpu % tensor] + step;
}

}  // namespace weir
