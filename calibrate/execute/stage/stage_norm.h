// SPDX-License-Identifier: Apache-2.0
// Norms of the residual stream, with the residual addition before them.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_NORM_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_NORM_H_

#include <string>

#include "calibrate/execute/stage/stage_builder.h"

namespace weir::calibrate {

struct Norm {
  std::string name;
  TensorView gain = {}, shift = {}, sum = {}, statistics = {};
};

// Addend of a residual; absent if a norm has no residual before it.
struct Added {
  TensorView delta, mask;
  uint64_t seed = 0;
};

Norm MakeNorm(StageBuilder* b, const std::string& name);

void NormForward(StageBuilder* b, const TensorView& x, const Added& added,
                 const TensorView& y, const Norm& norm);

// `residual` is the gradient from the residual path and may be absent.
void NormBackward(StageBuilder* b, const Norm& norm, const TensorView& dy,
                  const TensorView& residual, const TensorView& dsum);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_NORM_H_
