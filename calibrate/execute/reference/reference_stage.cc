// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/reference/reference_stage.h"

#include <limits>

#include "calibrate/execute/reference/reference_ops.h"

namespace weir::calibrate {

StageBuffers MakeStageBuffers(const StageProgram& program) {
  StageBuffers buffers;
  buffers.reserve(program.buffers.size());
  for (const StageBuffer& buffer : program.buffers) {
    const bool zero = buffer.buffer_class == BufferClass::kGradients ||
                      buffer.buffer_class == BufferClass::kOptimizerState;
    buffers.emplace_back(buffer.num_elements,
                         zero ? 0 : std::numeric_limits<double>::quiet_NaN());
  }
  return buffers;
}

void RunReferenceOp(const StageOp& op, StageBuffers* buffers) {
  std::vector<const double*> inputs;
  std::vector<double*> outputs;
  const auto at = [&](const TensorView& view) -> double* {
    return view.present() ? (*buffers)[view.buffer].data() + view.offset
                          : nullptr;
  };
  for (const TensorView& view : op.inputs) inputs.push_back(at(view));
  for (const TensorView& view : op.outputs) outputs.push_back(at(view));
  RunReference(op, inputs, outputs);
}

void RunReferencePass(const StageProgram& program, ProgramPass pass,
                      StageBuffers* buffers) {
  for (const StageOp& op : program.ops(pass)) RunReferenceOp(op, buffers);
}

}  // namespace weir::calibrate
