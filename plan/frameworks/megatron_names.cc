// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_names.h"

namespace weir::plan {

const char* MegatronName(StateFormat format) {
  switch (format) {
    case STATE_BF16:
      return "bf16";
    case STATE_FP16:
      return "fp16";
    case STATE_FP8:
      return "fp8";
    default:
      return "fp32";
  }
}

const char* MegatronRecipe(const Recipe& recipe) {
  switch (recipe.forward()) {
    case OPERAND_FP8_BLOCK:
      return "blockwise";
    case OPERAND_MXFP8:
      return "mxfp8";
    default:
      return recipe.input_reads() > 1 ? "tensorwise" : "delayed";
  }
}

const char* MegatronOptimizer(Optimizer optimizer) {
  switch (optimizer) {
    case SGD_MOMENTUM:
      return "sgd";
    case MUON:
      return "muon";
    case DIST_MUON:
      return "dist_muon";
    default:
      return "adam";
  }
}

}  // namespace weir::plan
