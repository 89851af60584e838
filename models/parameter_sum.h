// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_MODELS_PARAMETER_SUM_H_
#define WEIR_MODELS_PARAMETER_SUM_H_

#include <algorithm>

#include "models/layer_work.h"

namespace weir::models {

// Sums the parameters that a stage of consecutive layers stores on one GPU. A
// copy of the embedding counts once, and only if the stage does not have the
// embedding.
class ParameterSum {
 public:
  void Add(const LayerWork& layer) {
    own_ += layer.parameters - layer.shared_parameters;
    shared_ = std::max(shared_, layer.shared_parameters);
    has_embedding_ |= layer.role == LayerRole::kEmbedding;
  }
  double parameters() const { return has_embedding_ ? own_ : own_ + shared_; }

 private:
  double own_ = 0, shared_ = 0;
  bool has_embedding_ = false;
};

}  // namespace weir::models

#endif  // WEIR_MODELS_PARAMETER_SUM_H_
