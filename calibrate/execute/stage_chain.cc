// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage_chain.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "calibrate/execute/training.h"

namespace weir::calibrate {

StageChain::StageChain(const ExecutionPlan& plan, RankDevice* device, int bits)
    : plan_(plan), device_(device), bits_(bits) {
  for (const auto& program : plan.programs) {
    layouts_.emplace_back(program);
    tables_.emplace_back(program->buffers.size(), nullptr);
  }
}

absl::StatusOr<double> StageChain::Forward(int64_t microbatch,
                                           absl::Span<void* const> weights) {
  RETURN_IF_ERROR(FreeAll());
  const MicrobatchData data = DataOf(plan_, microbatch);
  seed_ = DropoutSeed(plan_, microbatch);
  void* received = nullptr;
  for (int stage = 0; stage < std::ssize(layouts_); ++stage) {
    const StageProgram& program = layouts_[stage].program();
    Buffers& table = tables_[stage];
    table[layouts_[stage].weights] = weights[stage];
    for (const int i : {program.tokens, program.targets}) {
      if (i < 0) continue;
      ASSIGN_OR_RETURN(table[i], AllocateBuffer(stage, i));
      RETURN_IF_ERROR(
          device_->Upload(i == program.tokens ? data.tokens : data.targets,
                          program.buffers[i].format, table[i]));
    }
    if (program.input >= 0) table[program.input] = received;
    RETURN_IF_ERROR(RunPass(stage, ProgramPass::kForward));
    if (program.output >= 0) {
      ASSIGN_OR_RETURN(received, Sent(stage, program.output));
    }
  }
  const StageProgram& last = layouts_.back().program();
  const StageBuffer& buffer = last.buffers[last.losses];
  ASSIGN_OR_RETURN(const std::vector<double> losses,
                   device_->Download(tables_.back()[last.losses],
                                     buffer.num_elements, buffer.format));
  return std::accumulate(losses.begin(), losses.end(), 0.0) /
         static_cast<double>(losses.size());
}

absl::Status StageChain::Backward(absl::Span<void* const> weights,
                                  absl::Span<void* const> gradients) {
  void* received = nullptr;
  for (int stage = static_cast<int>(layouts_.size()) - 1; stage >= 0; --stage) {
    const StageProgram& program = layouts_[stage].program();
    Buffers& table = tables_[stage];
    table[layouts_[stage].weights] = weights[stage];
    table[layouts_[stage].gradients] = gradients[stage];
    if (program.output_gradient >= 0) {
      table[program.output_gradient] = received;
    }
    RETURN_IF_ERROR(RunPass(stage, ProgramPass::kBackwardInput));
    RETURN_IF_ERROR(RunPass(stage, ProgramPass::kBackwardWeight));
    if (program.input_gradient >= 0) {
      ASSIGN_OR_RETURN(received, Sent(stage, program.input_gradient));
    }
  }
  return FreeAll();
}

absl::StatusOr<void*> StageChain::AllocateBuffer(int stage, int buffer) {
  const StageBuffer& of = layouts_[stage].buffer(buffer);
  return device_->AllocateMemory(of.num_elements, of.format, of.name);
}

absl::Status StageChain::FreeAll() {
  for (size_t stage = 0; stage < tables_.size(); ++stage) {
    for (int i = 0; i < std::ssize(tables_[stage]); ++i) {
      void* const memory = std::exchange(tables_[stage][i], nullptr);
      if (memory == nullptr || !layouts_[stage].OfMicrobatch(i)) continue;
      RETURN_IF_ERROR(device_->FreeMemory(memory));
    }
  }
  return absl::OkStatus();
}

absl::Status StageChain::RunPass(int stage, ProgramPass pass) {
  const StageLayout& layout = layouts_[stage];
  Buffers& table = tables_[stage];
  const int num_ops = layout.NumOps(pass);
  for (int op = 0; op < std::max(num_ops, 1); ++op) {
    for (const int i : layout.Entering(pass, op)) {
      if (layout.IsInput(i)) continue;
      ASSIGN_OR_RETURN(table[i], AllocateBuffer(stage, i));
    }
    if (op < num_ops) {
      RETURN_IF_ERROR(device_->Run(stage, pass, op, seed_, table));
    }
    for (const int i : layout.Leaving(pass, op)) {
      if (layout.IsOutput(i) || layout.IsData(i)) continue;
      RETURN_IF_ERROR(device_->FreeMemory(std::exchange(table[i], nullptr)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> StageChain::Sent(int stage, int buffer) {
  void* const made = std::exchange(tables_[stage][buffer], nullptr);
  if (bits_ == 0) return made;
  const StageBuffer& of = layouts_[stage].buffer(buffer);
  ASSIGN_OR_RETURN(void* rounded, AllocateBuffer(stage, buffer));
  ASSIGN_OR_RETURN(const RankEventPtr ready, device_->Now());
  const CopyPiece piece = {made, rounded};
  ASSIGN_OR_RETURN(const CopyEvents copy,
                   device_->Send(device_, {&piece, 1}, of.num_elements,
                                 of.format, LinkSpec(), bits_, ready));
  RETURN_IF_ERROR(device_->WaitForEvent(copy.end));
  RETURN_IF_ERROR(device_->FreeMemory(made));
  return rounded;
}

}  // namespace weir::calibrate
