// SPDX-License-Identifier: Apache-2.0
// Lifetimes of buffers, and the memory that follows from them.
#include <algorithm>
#include <tuple>
#include <utility>

#include "calibrate/execute/stage/stage_builder.h"

namespace weir::calibrate {
namespace {

using PassOp = std::pair<ProgramPass, int>;

bool OfMicrobatch(const StageBuffer& buffer) {
  return buffer.buffer_class >= BufferClass::kInput;
}

PassOp First(const StageBuffer& buffer) {
  return {buffer.first_pass, buffer.first_op};
}

PassOp Last(const StageBuffer& buffer) {
  return {buffer.last_pass, buffer.last_op};
}

void Use(int index, PassOp now, StageProgram* program) {
  StageBuffer& buffer = program->buffers[index];
  if (!OfMicrobatch(buffer)) return;
  if (buffer.first_op < 0) {
    std::tie(buffer.first_pass, buffer.first_op) = now;
  }
  std::tie(buffer.last_pass, buffer.last_op) = now;
}

BufferClass ClassOf(const StageBuffer& buffer) {
  if (buffer.first_pass == buffer.last_pass) return BufferClass::kScratch;
  return buffer.last_pass == ProgramPass::kBackwardWeight
             ? BufferClass::kWeightGradientStash
             : BufferClass::kActivations;
}

// Returns the bytes of one microbatch at the pass's most demanding operation.
int64_t PassPeak(const StageProgram& program, ProgramPass pass) {
  const int num_ops = static_cast<int>(program.ops(pass).size());
  int64_t peak = 0;
  for (int op = 0; op < std::max(num_ops, 1); ++op) {
    int64_t bytes = 0;
    for (const StageBuffer& buffer : program.buffers) {
      const PassOp now = {pass, op};
      if (OfMicrobatch(buffer) && First(buffer) <= now && now <= Last(buffer)) {
        bytes += buffer.bytes();
      }
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

// Returns the bytes that are allocated by the end of `pass` and freed after it.
int64_t BytesKeptAfter(const StageProgram& program, ProgramPass pass) {
  int64_t bytes = 0;
  for (const StageBuffer& buffer : program.buffers) {
    if (OfMicrobatch(buffer) && buffer.first_pass <= pass &&
        buffer.last_pass > pass) {
      bytes += buffer.bytes();
    }
  }
  return bytes;
}

}  // namespace

void SetLifetimes(StageProgram* program) {
  for (int p = 0; p < kNumProgramPasses; ++p) {
    const auto& ops = program->passes[p];
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      const PassOp now = {static_cast<ProgramPass>(p), i};
      for (const auto* views : {&ops[i].inputs, &ops[i].outputs}) {
        for (const TensorView& view : *views) {
          if (view.present()) Use(view.buffer, now, program);
        }
      }
    }
  }
  for (StageBuffer& buffer : program->buffers) {
    const auto last_op = [&] {
      return static_cast<int>(program->ops(buffer.last_pass).size()) - 1;
    };
    if (buffer.buffer_class == BufferClass::kInput) {
      // Received buffers are allocated when their pass begins.
      const bool back =
          &buffer - program->buffers.data() == program->output_gradient;
      buffer.first_pass =
          back ? ProgramPass::kBackwardInput : ProgramPass::kForward;
      buffer.first_op = 0;
    } else if (buffer.buffer_class == BufferClass::kOutput) {
      buffer.last_op = last_op();  // sent after the pass
    } else if (OfMicrobatch(buffer)) {
      buffer.buffer_class = ClassOf(buffer);
    }
  }
}

int64_t StaticBytes(const StageProgram& program) {
  int64_t bytes = 0;
  for (const StageBuffer& buffer : program.buffers) {
    if (!OfMicrobatch(buffer)) bytes += buffer.bytes();
  }
  return bytes;
}

int64_t StashBytes(const StageProgram& program) {
  return BytesKeptAfter(program, ProgramPass::kForward);
}

int64_t WeightGradientStashBytes(const StageProgram& program) {
  return BytesKeptAfter(program, ProgramPass::kBackwardInput);
}

int64_t ScratchBytes(const StageProgram& program, ProgramPass pass) {
  const int64_t peak = PassPeak(program, pass);
  switch (pass) {
    case ProgramPass::kForward:
      return peak - StashBytes(program);
    case ProgramPass::kBackwardInput: {
      const int received = program.output_gradient;
      return peak - StashBytes(program) -
             (received >= 0 ? program.buffers[received].bytes() : 0);
    }
    case ProgramPass::kBackwardWeight:
      return peak - WeightGradientStashBytes(program);
    case ProgramPass::kOptimizer:
      break;
  }
  return 0;
}

int64_t PeakBytes(const StageProgram& program, ProgramPass pass, int alive) {
  return StaticBytes(program) + alive * StashBytes(program) +
         PassPeak(program, pass);
}

}  // namespace weir::calibrate
