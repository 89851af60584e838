// SPDX-License-Identifier: Apache-2.0
// Prints a model:
//
//   gpt2: 124,439,808 parameters
//   microbatch of 1 x 1024 tokens, 16-bit
//
//   layers          parameters  forward FLOP     stash    output
//    1 x embedding      39.4 M             0  8.00 KiB  1.50 MiB
//   12 x block          7.09 M        17.7 B  48.0 MiB  1.50 MiB
//    1 x head           38.6 M        79.0 B   199 MiB       0 B
//   total                124 M         292 B   775 MiB
//
//   forward and backward: 875 B FLOP of the whole model, without recomputation
//
// A tied head's copy of the token table counts in its row, not in the total.
#ifndef WEIR_MODELS_DESCRIBE_H_
#define WEIR_MODELS_DESCRIBE_H_

#include <string>

#include "models/layer_work.h"

namespace weir::models {

// Returns "none", "selective", "operators" or "full", the values of
// --recompute.
const char* RecomputeName(RecomputeMode recompute);

// Returns a table of the layers, with equal neighbors in one row, and the
// totals. Requires: see LayersOf.
std::string DescribeModel(const Model& model, const WorkSpec& spec);

// Returns the same as JSON, in base units.
std::string ModelJson(const Model& model, const WorkSpec& spec);

}  // namespace weir::models

#endif  // WEIR_MODELS_DESCRIBE_H_
