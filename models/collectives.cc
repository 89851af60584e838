// SPDX-License-Identifier: Apache-2.0
#include "models/collectives.h"

#include <utility>

namespace weir::models {
namespace {

bool SameButCount(const LayerCollective& a, LayerCollective b) {
  b.count = a.count;
  return a == b;
}

}  // namespace

void AddCollective(const LayerCollective& collective,
                   std::vector<LayerCollective>* collectives) {
  if (!collectives->empty() && SameButCount(collectives->back(), collective)) {
    collectives->back().count += collective.count;
  } else {
    collectives->push_back(collective);
  }
}

void AddFrontCollective(const LayerCollective& collective,
                        std::vector<LayerCollective>* collectives) {
  if (!collectives->empty() && SameButCount(collectives->front(), collective)) {
    collectives->front().count += collective.count;
  } else {
    collectives->insert(collectives->begin(), collective);
  }
}

namespace {

// Returns the bytes of an all-gather of 16-bit operands for a GEMM in `format`.
double GatheredBytes(const WorkSpec& spec, OperandFormat format, double bytes) {
  const double element = OperandBytes(format);
  return spec.quantization.gathers_operands && element > 0
             ? bytes * element / spec.bytes_per_element
             : bytes;
}

}  // namespace

void AddColumnInput(const WorkSpec& spec, double bytes, LayerWork* work) {
  if (spec.tensor_parallel == 1) return;
  LayerCollective sum{.kind = CollectiveKind::kAllReduce, .bytes = bytes};
  sum.overlaps_weight_gradient = spec.tensor_async || spec.tensor_pieces;
  if (spec.sequence_parallel) sum.kind = CollectiveKind::kReduceScatter;
  AddFrontCollective(sum, &work->backward_collectives);
  if (!spec.sequence_parallel) return;
  const Quantization& formats = spec.quantization;
  LayerCollective gather{.kind = CollectiveKind::kAllGather,
                         .bytes = GatheredBytes(spec, formats.forward, bytes)};
  gather.overlaps_input_gradient = spec.tensor_pieces;
  AddCollective(gather, &work->forward_collectives);
  // For the weight gradient: only the GPU's own tokens were saved.
  gather.bytes = GatheredBytes(spec, formats.weight_gradient, bytes);
  gather.overlaps_input_gradient = spec.tensor_async || spec.tensor_pieces;
  AddFrontCollective(gather, &work->backward_collectives);
}

void AddRowOutput(const WorkSpec& spec, double bytes, LayerWork* work) {
  if (spec.tensor_parallel == 1) return;
  LayerCollective collective{.kind = CollectiveKind::kAllReduce,
                             .bytes = bytes};
  if (spec.sequence_parallel) {
    collective.kind = CollectiveKind::kAllGather;
    collective.bytes =
        GatheredBytes(spec, spec.quantization.input_gradient, bytes);
    collective.overlaps_input_gradient = spec.tensor_pieces;
    AddFrontCollective(collective, &work->backward_collectives);
    collective.kind = CollectiveKind::kReduceScatter;
    collective.bytes = bytes;
  }
  if (spec.sequence_parallel && spec.tensor_pieces) {
    collective.bytes /= kReduceScatterPieces;
    collective.count = kReduceScatterPieces - 1;
    AddCollective(collective, &work->forward_collectives);
    collective.count = 1;
    collective.overlaps_input_gradient = false;
  }
  AddCollective(collective, &work->forward_collectives);
}

void RepeatCollectives(const std::vector<LayerCollective>& forward,
                       LayerWork* work) {
  std::vector<LayerCollective> all = forward;
  for (LayerCollective& collective : all) collective.of_recompute = true;
  all.insert(all.end(), work->backward_collectives.begin(),
             work->backward_collectives.end());
  work->backward_collectives = std::move(all);
}

void RepeatForwardCollectives(LayerWork* work) {
  RepeatCollectives(work->forward_collectives, work);
}

void RepeatGathers(LayerWork* work) {
  std::vector<LayerCollective> gathers = work->forward_collectives;
  std::erase_if(gathers, [](const LayerCollective& collective) {
    return collective.kind != CollectiveKind::kAllGather ||
           collective.group != LayerCollective::Group::kTensor;
  });
  RepeatCollectives(gathers, work);
}

}  // namespace weir::models
