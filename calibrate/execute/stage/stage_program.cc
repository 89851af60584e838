// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_program.h"

#include "base/status_macros.h"
#include "calibrate/execute/stage/stage_builder.h"
#include "calibrate/execute/stage/stage_limits.h"

namespace weir::calibrate {

const char* Name(BufferClass buffer_class) {
  static constexpr const char* kNames[kNumBufferClasses] = {
      "weights", "gradients",   "optimizer_state",       "input",
      "output",  "activations", "weight_gradient_stash", "scratch"};
  return kNames[static_cast<int>(buffer_class)];
}

const char* Name(ProgramPass pass) {
  static constexpr const char* kNames[kNumProgramPasses] = {
      "forward", "backward_input", "backward_weight", "optimizer"};
  return kNames[static_cast<int>(pass)];
}

absl::StatusOr<StageProgram> BuildStageProgram(const Model& model,
                                               const StageSpec& spec) {
  RETURN_IF_ERROR(CheckStage(model, spec));
  StageBuilder builder(model.transformer(), spec);
  AddLayers(&builder);
  return builder.Finish();
}

}  // namespace weir::calibrate
