// SPDX-License-Identifier: Apache-2.0
#include "models/adapters.h"

#include "models/collectives.h"

namespace weir::models {
namespace {

// Adds a linear layer in 16 bits without the casts and saved bytes of others.
void AddMatrix(const WorkSpec& spec, KernelPart part, double rows, double in,
               double out, LayerWork* work, double needed = 1) {
  WorkSpec plain = WithoutQuantization(spec);
  plain.lora = {};
  plain.lists_matrices = false;
  AddLinear(
      plain,
      {.part = part, .rows = rows, .in = in, .out = out, .needed = needed},
      work);
}

bool IsSplitByColumns(LoraModule module) {
  return module == LINEAR_QKV || module == LINEAR_FC1;
}

}  // namespace

void AddAdapter(const WorkSpec& spec, const Linear& linear, LayerWork* work) {
  const double e = spec.bytes_per_element;
  // Experts may have a tensor-parallel group of their own.
  const double t =
      linear.experts ? spec.gpus_per_expert() : spec.tensor_parallel;
  const bool folded =
      linear.experts && spec.gpus_per_expert() != spec.tensor_parallel;
  const auto group = folded ? LayerCollective::Group::kExpertTensor
                            : LayerCollective::Group::kTensor;
  const double rank = spec.lora.rank;
  const double rows = linear.batch * linear.rows;
  const double low_bytes = e * rows * rank;  // A x
  double parameters = 0;
  if (IsSplitByColumns(linear.module)) {
    AddMatrix(spec, linear.part, rows, linear.in, rank / t, work);
    if (t > 1) {
      AddCollective({.kind = CollectiveKind::kAllGather,
                     .group = group,
                     .bytes = low_bytes},
                    &work->forward_collectives);
      AddFrontCollective({.kind = CollectiveKind::kReduceScatter,
                          .group = group,
                          .bytes = low_bytes},
                         &work->backward_collectives);
    }
    AddMatrix(spec, linear.part, rows, rank, linear.out, work);
    parameters = linear.in * rank / t + rank * linear.out;
  } else {
    // With sequence parallelism a GPU multiplies by B only for its tokens.
    const bool split = spec.sequence_parallel || folded;
    const double local = split ? rows / t : rows;
    AddMatrix(spec, linear.part, rows, linear.in, rank, work);
    if (!folded) {
      AddRowOutput(spec, low_bytes, work);
    } else if (t > 1) {
      AddCollective({.kind = CollectiveKind::kReduceScatter,
                     .group = group,
                     .bytes = low_bytes},
                    &work->forward_collectives);
      AddFrontCollective({.kind = CollectiveKind::kAllGather,
                          .group = group,
                          .bytes = low_bytes},
                         &work->backward_collectives);
    }
    AddMatrix(spec, linear.part, local, rank, linear.out, work,
              split ? 1 : 1 / t);
    parameters = linear.in * rank + rank * linear.out;
  }
  const double output = e * rows * linear.out, input = e * rows * linear.in;
  AddPasses(KernelPart::kElementwise, 3 * output, 1, 3 * input, 1, work);
  work->stash_bytes += low_bytes;
  work->weight_gradient_stash_bytes += 2 * low_bytes;
  work->adapter_parameters += parameters;
  work->parameters += parameters;
  if (!linear.experts) return;
  work->expert_adapter_parameters += parameters;
  work->expert_parameters += parameters;
}

}  // namespace weir::models
