// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/stage_walk.h"

#include <algorithm>

namespace weir::calibrate {
namespace {

class Walk {
 public:
  explicit Walk(const StageProgram& program) : program_(program) {}

  void Permanent(StageStep::Kind kind) {
    for (int i = 0; i < num_buffers(); ++i) {
      if (program_.buffers[i].first_op < 0) steps_.push_back({kind, -1, i});
    }
  }

  void Pass(ProgramPass pass, int microbatch) {
    for (int op = 0; op < static_cast<int>(program_.ops(pass).size()); ++op) {
      for (int i = 0; i < num_buffers(); ++i) {
        const StageBuffer& b = program_.buffers[i];
        if (b.first_op == op && b.first_pass == pass) {
          steps_.push_back({StageStep::Kind::kAllocate, microbatch, i});
        }
      }
      steps_.push_back({StageStep::Kind::kRun, microbatch, -1, pass, op});
      for (int i = 0; i < num_buffers(); ++i) {
        const StageBuffer& b = program_.buffers[i];
        if (b.first_op >= 0 && b.last_op == op && b.last_pass == pass) {
          steps_.push_back({StageStep::Kind::kFree, microbatch, i});
        }
      }
    }
  }

  std::vector<StageStep> Done() { return std::move(steps_); }

 private:
  int num_buffers() const { return static_cast<int>(program_.buffers.size()); }

  const StageProgram& program_;
  std::vector<StageStep> steps_;
};

}  // namespace

std::vector<StageStep> WalkStage(const StageProgram& program,
                                 int num_microbatches) {
  Walk walk(program);
  walk.Permanent(StageStep::Kind::kAllocate);
  for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
    walk.Pass(ProgramPass::kForward, microbatch);
  }
  for (int microbatch = num_microbatches - 1; microbatch >= 0; --microbatch) {
    walk.Pass(ProgramPass::kBackwardInput, microbatch);
    walk.Pass(ProgramPass::kBackwardWeight, microbatch);
  }
  walk.Pass(ProgramPass::kOptimizer, -1);
  walk.Permanent(StageStep::Kind::kFree);
  return walk.Done();
}

int64_t PeakOfWalk(const StageProgram& program,
                   const std::vector<StageStep>& steps, int64_t granularity) {
  int64_t in_use = 0, peak = 0;
  for (const StageStep& step : steps) {
    if (step.kind == StageStep::Kind::kRun) continue;
    const int64_t bytes = program.buffers[step.buffer].bytes();
    const int64_t rounded =
        (bytes + granularity - 1) / granularity * granularity;
    in_use += step.kind == StageStep::Kind::kAllocate ? rounded : -rounded;
    peak = std::max(peak, in_use);
  }
  return peak;
}

}  // namespace weir::calibrate
