// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay/stage_chain.h"

#include <numeric>
#include <utility>

#include "calibrate/replay/optimizer_math.h"
#include "calibrate/replay/training.h"

namespace weir {
namespace {

constexpr int kWeightsBuffer = 0, kGradientsBuffer = 1;

}  // namespace

StageChain::StageChain(
    const ReplayPlan& plan,
    std::vector<std::shared_ptr<const StageProgram>> programs, int bits)
    : plan_(plan),
      programs_(std::move(programs)),
      bits_(bits),
      buffers_(programs_.size()) {
  for (const auto& program : programs_) {
    gradients_.emplace_back(program->buffers[kGradientsBuffer].num_elements, 0);
  }
}

double StageChain::Forward(int64_t microbatch, const StageVectors& weights) {
  const MicrobatchData data = DataOf(plan_, microbatch);
  const uint64_t seed = DropoutSeed(plan_, microbatch);
  std::vector<double> received;
  for (size_t stage = 0; stage < programs_.size(); ++stage) {
    const StageProgram& program = *programs_[stage];
    StageBuffers& buffers = buffers_[stage];
    buffers = MakeStageBuffers(program);
    buffers[kWeightsBuffer] = weights[stage];
    if (program.tokens >= 0) buffers[program.tokens] = data.tokens;
    if (program.targets >= 0) buffers[program.targets] = data.targets;
    if (program.input >= 0) buffers[program.input] = std::move(received);
    RunForward(program, seed, &buffers);
    if (program.output >= 0) received = Sent(buffers[program.output]);
  }
  const std::vector<double>& losses = buffers_.back()[programs_.back()->losses];
  return std::accumulate(losses.begin(), losses.end(), 0.0) /
         static_cast<double>(losses.size());
}

void StageChain::Backward(const StageVectors& weights) {
  std::vector<double> received;
  for (size_t stage = programs_.size(); stage-- > 0;) {
    const StageProgram& program = *programs_[stage];
    StageBuffers& buffers = buffers_[stage];
    buffers[kWeightsBuffer] = weights[stage];
    buffers[kGradientsBuffer].swap(gradients_[stage]);
    if (program.output_gradient >= 0) {
      buffers[program.output_gradient] = std::move(received);
    }
    RunReferencePass(program, StagePass::kBackwardInput, &buffers);
    RunReferencePass(program, StagePass::kBackwardWeight, &buffers);
    buffers[kGradientsBuffer].swap(gradients_[stage]);
    if (program.input_gradient >= 0) {
      received = Sent(buffers[program.input_gradient]);
    }
  }
}

void StageChain::RunForward(const StageProgram& program, uint64_t seed,
                            StageBuffers* buffers) const {
  for (StageOp op : program.ops(StagePass::kForward)) {
    op.seed ^= seed;
    RunReferenceOp(op, buffers);
  }
}

std::vector<double> StageChain::Sent(std::vector<double> message) const {
  if (bits_ > 0) RoundToBits(bits_, absl::MakeSpan(message));
  return message;
}

}  // namespace weir
