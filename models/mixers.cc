// SPDX-License-Identifier: Apache-2.0
#include "models/mixers.h"

namespace weir::models {

ParameterCount MixerParameters(const Transformer& transformer) {
  switch (transformer.mixer_case()) {
    case Transformer::kLatentAttention:
      return LatentAttentionParameters(transformer);
    case Transformer::kCompressedAttention:
      return CompressedAttentionParameters(transformer);
    case Transformer::kMamba2:
      return Mamba2Parameters(transformer);
    case Transformer::kDeltaNet:
      return DeltaNetParameters(transformer);
    case Transformer::kLightningAttention:
      return LightningAttentionParameters(transformer);
    case Transformer::MIXER_NOT_SET:
      break;
  }
  return AttentionParameters(transformer);
}

AttentionCore AddMixer(const Transformer& transformer, const WorkSpec& spec,
                       const Shape& shape, LayerWork* work) {
  switch (transformer.mixer_case()) {
    case Transformer::kLatentAttention:
      return AddLatentAttention(transformer, spec, shape, work);
    case Transformer::kCompressedAttention:
      return AddCompressedAttention(transformer, spec, shape, work);
    case Transformer::kMamba2:
      return AddMamba2(transformer, spec, shape, work);
    case Transformer::kDeltaNet:
      return AddDeltaNet(transformer, spec, shape, work);
    case Transformer::kLightningAttention:
      return AddLightningAttention(transformer, spec, shape, work);
    case Transformer::MIXER_NOT_SET:
      break;
  }
  return AddAttention(transformer, spec, shape, work);
}

void AddCore(const AttentionCore& core, LayerWork* work) {
  work->forward.insert(work->forward.end(), core.forward.begin(),
                       core.forward.end());
  work->backward_input.insert(work->backward_input.end(), core.backward.begin(),
                              core.backward.end());
}

void AddRepeatedLinear(const WorkSpec& spec, const Shape& shape, double in,
                       double out, bool local, LayerWork* work,
                       Linear::Input input) {
  const double rows = local ? shape.local_tokens : shape.tokens;
  AddLinear(spec,
            {.rows = rows,
             .in = in,
             .out = out,
             .needed = shape.tokens / shape.tensor_parallel / rows,
             .input = input},
            work);
}

void AddGate(const Shape& shape, double elements, double gates,
             LayerWork* work) {
  const double e = shape.element_bytes;
  AddPasses(KernelPart::kElementwise, e * (2 * elements + gates), 1,
            e * (3 * elements + 2 * gates), 1, work);
}

}  // namespace weir::models
