// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction (DeepSeek-V3, section 2.2): every module joins the
// hidden state of the module before it with the embedding of the next token,
// and predicts one token further.
#include "models/collectives.h"
#include "models/kernels.h"
#include "models/shape.h"
#include "models/transformer_layers.h"

namespace weir::models {
namespace {

// Returns the lookup of the embeddings, the norms of both inputs and their
// projection to the hidden size.
LayerWork Projection(const Transformer& transformer, const WorkSpec& spec) {
  const Shape shape = ShapeOf(transformer, spec);
  const double local = LocalBytes(shape);
  const double whole = WholeBytes(shape);
  LayerWork work;
  work.forward.push_back(MemoryKernel(2 * whole, KernelPart::kEmbedding));
  if (!spec.lora.active()) {
    work.backward_weight.push_back(
        MemoryKernel(3 * whole, KernelPart::kEmbedding));
  }
  AddPasses(KernelPart::kNorm, 4 * local, 2, 10 * local, 6, &work);
  AddColumnInput(spec, 2 * whole, &work);
  AddLinear(spec,
            {.rows = shape.tokens,
             .in = 2 * shape.hidden,
             .out = shape.hidden / shape.tensor_parallel,
             .local_input_rows = shape.local_tokens,
             .local_output_rows = shape.local_tokens,
             .from_norm = true},
            &work);
  AddRowOutput(spec, whole, &work);
  work.stash_bytes = 4 * local;  // inputs and outputs of the norms
  work.weight_gradient_stash_bytes = 3 * local;
  work.backward_scratch_bytes = 4 * local;
  work.parameters = PerGpu(MtpProjectionParameters(transformer), transformer,
                           spec.tensor_parallel);
  return work;
}

}  // namespace

LayerWork MtpWork(const Transformer& transformer, const WorkSpec& spec) {
  const BlockList blocks = BlocksOf(transformer);
  LayerWork module = Projection(transformer, spec);
  module.name = "mtp";
  module.role = LayerRole::kMtp;
  for (const int kind : blocks.mtp) {
    AppendLayer(BlockWork(blocks.kinds[kind], spec), 1, &module);
  }
  module.shared_parameters = TablePerGpu(transformer, spec);
  module.parameters += module.shared_parameters;
  // The hidden states of the last block and of every module.
  module.output_bytes = (1 + transformer.num_mtp_modules()) *
                        LocalBytes(ShapeOf(transformer, spec));
  return module;
}

}  // namespace weir::models
