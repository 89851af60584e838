// SPDX-License-Identifier: Apache-2.0
// Embedding and head.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_EMBEDDING_HEAD_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_EMBEDDING_HEAD_H_

#include <optional>
#include <string>

#include "calibrate/execute/stage/stage_builder.h"
#include "calibrate/execute/stage/stage_norm.h"

namespace weir::calibrate {

class Embedding {
 public:
  Embedding(StageBuilder* b, int tokens);

  const TensorView& table() const { return table_; }

  TensorView Forward();

  void BackwardWeight(const TensorView& dy);

 private:
  StageOp Op(OpKind kind, const std::string& name) const;

  StageBuilder* b_;
  TensorView tokens_, table_, positions_;
};

class Head {
 public:
  // `table` is the embedding's if it is tied and on this stage.
  Head(StageBuilder* b, std::optional<TensorView> table);

  void Forward(const TensorView& x);

  TensorView BackwardInput();

  void BackwardWeight() { b_->LinearBackwardWeight(linear_, logits_, y_); }

 private:
  StageBuilder* b_;
  Norm norm_;
  Linear linear_;
  TensorView y_, logits_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_EMBEDDING_HEAD_H_
