// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/fill_plan.h"

#include <gmock/gmock.h>

#include <set>

#include "calibrate/execute/stage/op_shapes.h"
#include "tests/calibrate/execute/reference/small_models.h"

namespace weir::calibrate::fill_plan_test {

StageProgram Build(const Model& model, bool fused, float dropout) {
  const auto program = BuildStageProgram(model, SmallSpec(fused, dropout));
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

std::vector<OpIndex> OpsOfKind(const StageProgram& program, OpKind kind) {
  std::vector<OpIndex> found;
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    for (const OpIndex& op : OpsOf(program, static_cast<ProgramPass>(pass))) {
      if (program.ops(op.pass)[op.op].kind == kind) found.push_back(op);
    }
  }
  return found;
}

const StageOp& At(const StageProgram& program, const OpIndex& op) {
  return program.ops(op.pass)[op.op];
}

// Returns the last fill of an element.
Fill FillAt(const StageProgram& program, int buffer, int64_t element) {
  Fill last;
  for (const PieceFill& fill : FillsOf(program)) {
    const Piece& piece = fill.piece;
    if (piece.buffer == buffer && piece.first <= element &&
        element < piece.first + piece.num_elements) {
      last = fill.fill;
    }
  }
  return last;
}

TEST(FillPlanTest, TokensAndTargetsStayWithinTheVocabulary) {
  const StageProgram program = Build(SmallGpt(), true, 0);
  for (const int buffer : {program.tokens, program.targets}) {
    const Fill fill = FillAt(program, buffer, 0);
    EXPECT_EQ(fill.kind, Fill::Kind::kTokens);
    EXPECT_EQ(fill.limit, 11);
  }
}

TEST(FillPlanTest, GainsAreLargeOtherWeightsSmallSecondMomentsPositive) {
  const StageProgram program = Build(SmallLlama(), true, 0);
  const StageOp& norm =
      At(program, OpsOfKind(program, OpKind::kNormForward)[0]);
  const StageOp& gemm = At(program, OpsOfKind(program, OpKind::kGemm)[0]);
  const StageOp& adam = At(program, OpsOfKind(program, OpKind::kAdam)[0]);
  const auto at = [&](const TensorView& view, int64_t element) {
    return FillAt(program, view.buffer, view.offset + element);
  };
  EXPECT_FLOAT_EQ(at(norm.inputs[4], 0).deviation, 1);
  EXPECT_FLOAT_EQ(at(norm.inputs[4], norm.columns - 1).deviation, 1);
  EXPECT_FLOAT_EQ(at(gemm.inputs[1], 5).deviation, 0.02F);
  EXPECT_EQ(at(adam.inputs[2], 0).kind, Fill::Kind::kNormal);
  EXPECT_EQ(at(adam.inputs[3], 0).kind, Fill::Kind::kBytes);
  EXPECT_EQ(at(adam.inputs[3], adam.columns - 1).byte, 0x3C);
}

std::vector<std::string> ProducerNames(const StageProgram& program,
                                       OpKind kind) {
  std::vector<std::string> names;
  for (const OpIndex& op :
       ProducersOf(program, OpsOfKind(program, kind).back())) {
    EXPECT_EQ(op.pass, ProgramPass::kForward);
    names.push_back(Name(At(program, op).kind));
  }
  return names;
}

TEST(FillPlanTest, StatisticsAndMasksComeFromTheOperationsThatMakeThem) {
  using testing::ElementsAre;
  for (const bool fused : {true, false}) {
    const StageProgram program = Build(SmallGpt(), fused, 0.25F);
    EXPECT_THAT(ProducerNames(program, OpKind::kAttentionBackward),
                ElementsAre("attention_forward"));
    EXPECT_THAT(ProducerNames(program, OpKind::kNormBackward),
                ElementsAre("norm_forward"));
    EXPECT_THAT(
        ProducerNames(program, OpKind::kDropoutBackward),
        ElementsAre(testing::AnyOf("norm_forward", "residual_forward")));
    EXPECT_THAT(ProducerNames(program, OpKind::kAdam), ElementsAre());
    EXPECT_THAT(ProducerNames(program, OpKind::kBiasGradient), ElementsAre());
  }
}

TEST(FillPlanTest, AGemmTakesItsOwnWeightsOnly) {
  const StageProgram program = Build(SmallLlama(), true, 0);
  for (const OpIndex& index : OpsOfKind(program, OpKind::kGemm)) {
    const StageOp& op = At(program, index);
    for (const Piece& piece : PiecesOf(program, {index})) {
      if (program.buffers[piece.buffer].buffer_class != BufferClass::kWeights) {
        continue;
      }
      const TensorView& weight = op.inputs[1];
      EXPECT_EQ(piece.first % 256, 0);
      EXPECT_LE(piece.first, weight.offset);
      EXPECT_GT(piece.first + 256, weight.offset);
      EXPECT_EQ(piece.first + piece.num_elements,
                weight.offset + InputShape(op, 1).num_elements());
    }
  }
}

TEST(FillPlanTest, InPlaceTensorsAreTouchedOnce) {
  StageProgram program;
  program.buffers = {{"x", BufferClass::kScratch, ElementFormat::kFp32, 100}};
  StageOp clear;
  clear.kind = OpKind::kClear;
  clear.rows = 10;
  clear.columns = 10;
  clear.inputs = clear.outputs = {{.buffer = 0}};
  program.passes[0] = {clear};
  EXPECT_EQ(TouchedBytes(program, {ProgramPass::kForward, 0}), 400);
}

}  // namespace weir::calibrate::fill_plan_test
