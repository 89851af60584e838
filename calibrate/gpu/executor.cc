// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/executor.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/stage/op_shapes.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {
namespace {

void* At(void* base, int64_t offset, ElementFormat format) {
  return static_cast<char*>(base) + offset * BytesOf(format);
}

}  // namespace

StageExecutor::StageExecutor(std::shared_ptr<const StageProgram> program,
                             const ExecutorOptions& options,
                             GemmLibrary* library)
    : program_(std::move(program)), options_(options), library_(library) {
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    planned_[pass].resize(program_->passes[pass].size());
  }
}

absl::StatusOr<StageExecutor::Pointers> StageExecutor::PointersOf(
    const StageOp& op, const BufferTable& buffers) const {
  Pointers pointers;
  const auto resolve = [&](const std::vector<TensorView>& views,
                           std::array<void*, 8>* resolved) {
    for (size_t i = 0; i < views.size(); ++i) {
      if (!views[i].present()) continue;
      void* base = buffers[views[i].buffer];
      if (base == nullptr) {
        return absl::InternalError(absl::StrCat(
            op.name, ": the buffer ", program_->buffers[views[i].buffer].name,
            " is missing when it is needed"));
      }
      (*resolved)[i] = At(base, views[i].offset, FormatOf(views[i]));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(resolve(op.inputs, &pointers.inputs));
  RETURN_IF_ERROR(resolve(op.outputs, &pointers.outputs));
  return pointers;
}

Launch StageExecutor::LaunchOn(const Lane& lane) const {
  return {lane.stream, options_.format, options_.num_multiprocessors,
          lane.workspace.data, lane.workspace.num_bytes};
}

absl::Status StageExecutor::PlanOp(ProgramPass pass, int op,
                                   absl::Span<const BufferTable> tune_on,
                                   const Lane& lane) {
  const StageOp& stage_op = OpOf(pass, op);
  PlannedOp* planned = &planned_[static_cast<int>(pass)][op];
  if (stage_op.kind == OpKind::kGemm) {
    RETURN_IF_ERROR(PlanGemm(stage_op, tune_on, lane, planned));
  } else if (!HasKernel(stage_op)) {
    RETURN_IF_ERROR(PlanAttention(stage_op, tune_on, lane, planned));
  } else if (const int64_t needed = WorkspaceBytes(LaunchOn(lane), stage_op);
             needed > lane.workspace.num_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(stage_op.name, " needs a workspace of ", needed,
                     " bytes; there are ", lane.workspace.num_bytes));
  }
  planned->planned = true;
  return absl::OkStatus();
}

absl::Status StageExecutor::PlanPass(ProgramPass pass,
                                     absl::Span<const BufferTable> tune_on,
                                     const Lane& lane) {
  for (int op = 0; op < static_cast<int>(program_->ops(pass).size()); ++op) {
    RETURN_IF_ERROR(PlanOp(pass, op, tune_on, lane));
  }
  return absl::OkStatus();
}

absl::Status StageExecutor::RunOp(ProgramPass pass, int op,
                                  const BufferTable& buffers, const Lane& lane,
                                  const OpVariation& variation) const {
  const StageOp& stage_op = OpOf(pass, op);
  const PlannedOp& planned = planned_[static_cast<int>(pass)][op];
  if (!planned.planned) {
    return absl::InternalError(
        absl::StrCat(stage_op.name, " is run before it was planned"));
  }
  ASSIGN_OR_RETURN(const Pointers pointers, PointersOf(stage_op, buffers));
  if (planned.gemm != nullptr) {
    return RunGemm(stage_op, planned, pointers, lane);
  }
  if (!planned.before.empty()) {
    return RunAttention(stage_op, planned, pointers, lane);
  }
  const auto launch = [&](const StageOp& varied) {
    return CudaStatus(LaunchOp(LaunchOn(lane), varied, pointers.inputs.data(),
                               pointers.outputs.data()),
                      absl::StrCat(varied.name, " (", Name(varied.kind), ")"));
  };
  const bool seeded = stage_op.dropout > 0 && variation.seed != 0;
  const bool stepped =
      stage_op.kind == OpKind::kAdam && variation.adam != nullptr;
  if (!seeded && !stepped) return launch(stage_op);
  StageOp varied = stage_op;
  varied.seed ^= variation.seed;
  if (stepped) varied.adam = *variation.adam;
  return launch(varied);
}

absl::Status StageExecutor::RunPass(ProgramPass pass,
                                    const BufferTable& buffers,
                                    const Lane& lane) const {
  for (int op = 0; op < static_cast<int>(program_->ops(pass).size()); ++op) {
    RETURN_IF_ERROR(RunOp(pass, op, buffers, lane));
  }
  return absl::OkStatus();
}

std::string StageExecutor::algorithm(ProgramPass pass, int op) const {
  const PlannedOp& planned = planned_[static_cast<int>(pass)][op];
  if (planned.gemm != nullptr) {
    return absl::StrCat(planned.gemm->algorithm(),
                        planned.composed ? ", GELU by its own kernel" : "");
  }
  std::string words;
  const Gemm* last = nullptr;
  for (const auto* gemms : {&planned.before, &planned.after}) {
    for (const Gemm* gemm : *gemms) {
      if (gemm == last) continue;
      absl::StrAppend(&words, words.empty() ? "" : "; ", gemm->algorithm());
      last = gemm;
      if (words.size() > 400) return absl::StrCat(words, "; ...");
    }
  }
  return words;
}

}  // namespace weir::calibrate
