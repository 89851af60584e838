// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_MODELS_PARAMETER_SUM_H_
#define WEIR_MODELS_PARAMETER_SUM_H_

#include "models/layer_work.h"

namespace weir::models {

// Sums the parameters that a stage of consecutive layers stores on one GPU. A
// copy of the embedding counts only if the stage does not have the embedding.
class ParameterSum {
 public:
  void Add(const LayerWork& layer) {
    all_ += layer.parameters;
    shared_ += layer.shared_parameters;
    has_embedding_ |= layer.role == LayerRole::kEmbedding;
  }
  double parameters() const { return has_embedding_ ? all_ - shared_ : all_; }

 private:
  double all_ = 0, shared_ = 0;
  bool has_embedding_ = false;
};

}  // namespace weir::models

#endif  // WEIR_MODELS_PARAMETER_SUM_H_
