// SPDX-License-Identifier: Apache-2.0
// Buffer indices of a stage program, and the buffers that are allocated and
// freed around each operation.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_LAYOUT_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_LAYOUT_H_

#include <array>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

class StageLayout {
 public:
  explicit StageLayout(std::shared_ptr<const StageProgram> program);

  const StageProgram& program() const { return *program_; }
  const StageBuffer& buffer(int index) const {
    return program_->buffers[index];
  }
  int weights = -1, gradients = -1, state = -1;

  // Buffers of a microbatch allocated at this operation, or freed after it.
  // Received buffers exist from the first operation on, sent ones until after
  // the last; a pass without operations counts as one operation.
  absl::Span<const int> Entering(ProgramPass pass, int op) const {
    return At(entering_, pass, op);
  }
  absl::Span<const int> Leaving(ProgramPass pass, int op) const {
    return At(leaving_, pass, op);
  }
  int NumOps(ProgramPass pass) const {
    return static_cast<int>(program_->ops(pass).size());
  }
  // Returns true if a buffer is not allocated and freed with the operations
  // because it is received, or needed after the pass.
  bool IsInput(int index) const {
    return buffer(index).buffer_class == BufferClass::kInput;
  }
  bool IsOutput(int index) const {
    return buffer(index).buffer_class == BufferClass::kOutput;
  }
  // Returns true if a buffer exists for the whole step.
  bool IsData(int index) const {
    return index == program_->tokens || index == program_->targets ||
           index == program_->losses;
  }
  bool OfMicrobatch(int index) const {
    return buffer(index).buffer_class >= BufferClass::kInput;
  }

 private:
  using Lists = std::array<std::vector<std::vector<int>>, kNumProgramPasses>;
  static absl::Span<const int> At(const Lists& lists, ProgramPass pass,
                                  int op) {
    return lists[static_cast<int>(pass)][op];
  }

  std::shared_ptr<const StageProgram> program_;
  Lists entering_, leaving_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_LAYOUT_H_
