// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA; Hu et al. 2021, section 4.1): a frozen linear layer
// with input x gets the sum of its own output and B A x, where A has `rank`
// rows and B has `rank` columns.
#ifndef WEIR_MODELS_ADAPTERS_H_
#define WEIR_MODELS_ADAPTERS_H_

#include "models/kernels.h"
#include "models/layer_work.h"

namespace weir::models {

// Adds the adapter of a linear layer: its GEMMs, the sums with the layer's
// output and with the gradient of its input, collectives, parameters and saved
// bytes. The caller saves the input. Experts of a GPU share an adapter, as in
// Megatron Bridge. With tensor parallelism t, A and B of layers split by
// columns have rank / t rows and out / t columns, and the product A x is
// gathered; A of layers split by rows has in / t columns, the product is
// summed, and every GPU has all of B.
void AddAdapter(const WorkSpec& spec, const Linear& linear, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_ADAPTERS_H_
