// SPDX-License-Identifier: Apache-2.0
// Checks of the parts of a transformer that only some models have.
#ifndef WEIR_MODELS_BLOCK_LIMITS_H_
#define WEIR_MODELS_BLOCK_LIMITS_H_

#include "models/model_limits.h"

namespace weir::models {

// Reports problems of the mixer, of the variants of attention and experts, of
// the kinds of blocks and their pattern, and of MTP modules.
void CheckBlocks(const Transformer& transformer, const FieldName& name,
                 Problems* problems);

void CheckEncoder(const Encoder& encoder, const FieldName& name,
                  Problems* problems);

}  // namespace weir::models

#endif  // WEIR_MODELS_BLOCK_LIMITS_H_
