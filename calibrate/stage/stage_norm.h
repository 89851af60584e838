// SPDX-License-Identifier: Apache-2.0
// Norms of the residual stream, with the residual before them.
#ifndef WEIR_CALIBRATE_STAGE_STAGE_NORM_H_
#define WEIR_CALIBRATE_STAGE_STAGE_NORM_H_

#include <string>

#include "calibrate/stage/stage_builder.h"

namespace weir {

struct Norm {
  std::string name;
  TensorView gain = {}, shift = {}, sum = {}, statistics = {};
};

// What a residual adds: absent where a norm has none before it.
struct Added {
  TensorView delta, mask;
  uint64_t seed = 0;
};

Norm MakeNorm(StageBuilder* b, const std::string& name);

void NormForward(StageBuilder* b, const TensorView& x, const Added& added,
                 const TensorView& y, const Norm& norm);

// `residual`: the gradient that comes on the residual path, may be absent.
void NormBackward(StageBuilder* b, const Norm& norm, const TensorView& dy,
                  const TensorView& residual, const TensorView& dsum);

}  // namespace weir

#endif  // WEIR_CALIBRATE_STAGE_STAGE_NORM_H_
