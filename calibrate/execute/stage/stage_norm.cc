// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_norm.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::calibrate {

Norm MakeNorm(StageBuilder* b, const std::string& name) {
  const StageSizes& sizes = b->sizes();
  Norm norm{.name = name, .gain = b->Parameter(sizes.hidden)};
  if (!b->transformer().rms_norm()) norm.shift = b->Parameter(sizes.hidden);
  norm.statistics = b->Other(absl::StrCat(name, " statistics"),
                             2 * sizes.tokens, ElementFormat::kFp32);
  return norm;
}

void NormForward(StageBuilder* b, const TensorView& x, const Added& added,
                 const TensorView& y, const Norm& norm) {
  const StageSizes& sizes = b->sizes();
  StageOp op =
      b->Op(OpKind::kNormForward, norm.name, sizes.tokens, sizes.hidden);
  op.seed = added.seed;
  if (added.delta.present()) op.dropout = b->spec().dropout;
  op.inputs = {x, added.delta, {}, {}, norm.gain, norm.shift};
  op.outputs = {added.delta.present() ? norm.sum : TensorView(), y,
                norm.statistics, added.mask};
  b->Add(ProgramPass::kForward, std::move(op), models::KernelPart::kNorm);
}

void NormBackward(StageBuilder* b, const Norm& norm, const TensorView& dy,
                  const TensorView& residual, const TensorView& dsum) {
  const StageSizes& sizes = b->sizes();
  StageOp op = b->Op(OpKind::kNormBackward, absl::StrCat(norm.name, " dx"),
                     sizes.tokens, sizes.hidden);
  op.inputs = {dy, norm.sum, norm.statistics, norm.gain, residual};
  op.outputs = {dsum, StageBuilder::GradientOf(norm.gain),
                StageBuilder::GradientOf(norm.shift)};
  b->Add(ProgramPass::kBackwardInput, std::move(op), models::KernelPart::kNorm);
}

}  // namespace weir::calibrate
