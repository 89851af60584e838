// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of whole stages with central differences of the loss.
#include <tuple>

#include "calibrate/execute/reference/reference_stage.h"
#include "tests/calibrate/execute/reference/op_case.h"
#include "tests/calibrate/execute/reference/small_models.h"

namespace weir::calibrate::stage_gradients_test {

constexpr int kWeights = 0, kGradients = 1;

StageProgram Build(const Model& model, const StageSpec& spec) {
  const auto program = BuildStageProgram(model, spec);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

void RunPasses(const StageProgram& program,
               const std::vector<ProgramPass>& passes, StageBuffers* buffers) {
  for (const ProgramPass pass : passes)
    RunReferencePass(program, pass, buffers);
}

void FillTokens(int index, int seed, StageBuffers* buffers) {
  if (index < 0) return;
  for (size_t i = 0; i < (*buffers)[index].size(); ++i) {
    (*buffers)[index][i] = static_cast<double>((7 * i + 3 * i * i + seed) % 11);
  }
}

StageBuffers Filled(const StageProgram& program, int seed = 0) {
  StageBuffers buffers = MakeStageBuffers(program);
  buffers[kWeights] = Normal(buffers[kWeights].size(), 5);
  for (double& weight : buffers[kWeights]) weight *= 0.4;
  FillTokens(program.tokens, seed, &buffers);
  FillTokens(program.targets, seed + 4, &buffers);
  if (program.input >= 0) {
    buffers[program.input] = Normal(buffers[program.input].size(), 6 + seed);
  }
  return buffers;
}

double Loss(const StageProgram& program, const StageBuffers& filled) {
  StageBuffers buffers = filled;
  RunReferencePass(program, ProgramPass::kForward, &buffers);
  double loss = 0;
  for (const double token : buffers[program.losses]) loss += token;
  return loss * program.ops(ProgramPass::kForward).back().loss_scale;
}

class StageGradientsTest
    : public testing::TestWithParam<std::tuple<bool, bool, float>> {
 protected:
  Model model() const {
    return std::get<0>(GetParam()) ? SmallLlama() : SmallGpt();
  }
  StageSpec spec() const {
    return SmallSpec(std::get<1>(GetParam()), std::get<2>(GetParam()));
  }
};

constexpr ProgramPass kForward = ProgramPass::kForward;
constexpr ProgramPass kInput = ProgramPass::kBackwardInput;
constexpr ProgramPass kWeight = ProgramPass::kBackwardWeight;

// Checks all weights; there are a few hundred.
TEST_P(StageGradientsTest, WeightGradientsAreThoseOfDifferences) {
  const StageProgram program = Build(model(), spec());
  StageBuffers buffers = Filled(program);
  const StageBuffers filled = buffers;
  RunPasses(program, {kForward, kInput, kWeight}, &buffers);
  StageBuffers at = filled;
  ExpectSame(buffers[kGradients],
             Differences(&at[kWeights], [&] { return Loss(program, at); }));
}

// Omits the embedding and checks the gradient of the stage's input.
TEST_P(StageGradientsTest, InputGradientIsThatOfDifferences) {
  StageSpec rest = spec();
  rest.first_layer = 1;
  const StageProgram program = Build(model(), rest);
  StageBuffers buffers = Filled(program);
  StageBuffers at = buffers;
  RunPasses(program, {kForward, kInput}, &buffers);
  ExpectSame(
      buffers[program.input_gradient],
      Differences(&at[program.input], [&] { return Loss(program, at); }));
}

// The second microbatch runs in its own buffers.
TEST_P(StageGradientsTest, MicrobatchesAddUpInAnyOrderOfTheirPasses) {
  const StageProgram program = Build(model(), spec());
  StageBuffers one = Filled(program, 0), two = Filled(program, 1);
  RunPasses(program, {kForward, kInput, kWeight}, &one);
  RunPasses(program, {kForward, kInput, kWeight}, &two);
  Numbers expected = one[kGradients];
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] += two[kGradients][i];
  }
  one = Filled(program, 0);
  two = Filled(program, 1);
  const auto run = [&](ProgramPass pass, StageBuffers* buffers) {
    RunPasses(program, {pass}, buffers);
    StageBuffers* other = buffers == &one ? &two : &one;
    (*other)[kGradients] = (*buffers)[kGradients];
  };
  run(kForward, &one);
  run(kForward, &two);
  run(kInput, &one);
  run(kInput, &two);
  run(kWeight, &one);
  run(kWeight, &two);
  ExpectSame(one[kGradients], expected, 1e-14);
}

// Cuts between the two blocks, so that both stages have the tied table.
TEST_P(StageGradientsTest, TwoStagesAreOne) {
  const Model m = model();
  const StageProgram whole = Build(m, spec());
  StageSpec part = spec();
  part.last_layer = 2;
  const StageProgram first = Build(m, part);
  part = spec();
  part.first_layer = 2;
  const StageProgram second = Build(m, part);

  StageBuffers w = Filled(whole), a = Filled(first), b = Filled(second);
  const Numbers& weights = w[kWeights];
  const size_t num_first = a[kWeights].size();
  std::copy_n(weights.begin(), num_first, a[kWeights].begin());
  std::copy(weights.begin() + num_first, weights.end(), b[kWeights].begin());
  const size_t table = b[kWeights].size() - (weights.size() - num_first);
  std::copy_n(weights.begin(), table, b[kWeights].end() - table);

  RunPasses(whole, {kForward, kInput, kWeight}, &w);
  RunPasses(first, {kForward}, &a);
  b[second.input] = a[first.output];
  RunPasses(second, {kForward, kInput}, &b);
  a[first.output_gradient] = b[second.input_gradient];
  RunPasses(first, {kInput, kWeight}, &a);
  RunPasses(second, {kWeight}, &b);
  EXPECT_EQ(b[second.losses], w[whole.losses]);

  Numbers both = a[kGradients];
  both.insert(both.end(), b[kGradients].begin(), b[kGradients].end() - table);
  for (size_t i = 0; i < table; ++i) {
    both[i] += b[kGradients][b[kGradients].size() - table + i];
  }
  ExpectSame(both, w[kGradients], 1e-14);
}

TEST_P(StageGradientsTest, LossFallsOverAdamsSteps) {
  StageProgram program = Build(model(), spec());
  StageOp& adam = program.passes[static_cast<int>(ProgramPass::kOptimizer)][0];
  adam.adam.learning_rate = 0.01F;
  StageBuffers buffers = Filled(program);
  std::copy(buffers[kWeights].begin(), buffers[kWeights].end(),
            buffers[2].begin());
  double before = Loss(program, buffers);
  for (int step = 1; step <= 5; ++step) {
    adam.adam.step = step;
    RunPasses(program, {kForward, kInput, kWeight, ProgramPass::kOptimizer},
              &buffers);
    const double now = Loss(program, buffers);
    EXPECT_LT(now, before);
    before = now;
    EXPECT_EQ(buffers[kGradients], Numbers(buffers[kGradients].size(), 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, StageGradientsTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(0.0F, 0.25F)));

}  // namespace weir::calibrate::stage_gradients_test
