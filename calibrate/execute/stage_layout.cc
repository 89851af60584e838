// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage_layout.h"

#include <algorithm>
#include <utility>

namespace weir::calibrate {

StageLayout::StageLayout(std::shared_ptr<const StageProgram> program)
    : program_(std::move(program)) {
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    const int num_ops = std::max(NumOps(static_cast<ProgramPass>(pass)), 1);
    entering_[pass].resize(num_ops);
    leaving_[pass].resize(num_ops);
  }
  for (int i = 0; i < static_cast<int>(program_->buffers.size()); ++i) {
    const StageBuffer& buffer = program_->buffers[i];
    if (buffer.buffer_class == BufferClass::kWeights) weights = i;
    if (buffer.buffer_class == BufferClass::kGradients) gradients = i;
    if (buffer.buffer_class == BufferClass::kOptimizerState) state = i;
    if (!OfMicrobatch(i)) continue;
    auto& first = entering_[static_cast<int>(buffer.first_pass)];
    auto& last = leaving_[static_cast<int>(buffer.last_pass)];
    first[std::max(buffer.first_op, 0)].push_back(i);
    last[std::clamp(buffer.last_op, 0, static_cast<int>(last.size()) - 1)]
        .push_back(i);
  }
}

}  // namespace weir::calibrate
