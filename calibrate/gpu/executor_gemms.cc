// SPDX-License-Identifier: Apache-2.0
// GEMMs and unfused attention of StageExecutor.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/stage/op_shapes.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/executor.h"
#include "calibrate/gpu/host/gemm_alignment.h"

namespace weir::calibrate {
namespace {

bool HasBias(const StageOp& op) {
  return op.epilogue != Epilogue::kGeluGradient && op.inputs.size() > 2 &&
         op.inputs[2].present();
}

// Returns true if the operation has a GELU aux: written to outputs[1], or read
// from inputs[2].
bool IsGelu(const StageOp& op) {
  return op.epilogue == Epilogue::kBiasGelu ||
         op.epilogue == Epilogue::kGeluGradient;
}

int64_t StrideOfAux(const StageOp& op) {
  if (op.epilogue == Epilogue::kBiasGelu) {
    return StrideOf(op.outputs[1], OutputShape(op, 1));
  }
  return StrideOf(op.inputs[2], InputShape(op, 2));
}

absl::Status Explain(const absl::Status& status, const StageOp& op) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(op.name, ": ", status.message()));
}

}  // namespace

GemmSpec StageExecutor::SpecOf(const StageOp& op) const {
  GemmSpec spec;
  spec.shape = GemmShapeOf(op);
  spec.operands = FormatOf(op.inputs[0]);
  spec.result = FormatOf(op.outputs[0]);
  spec.epilogue = op.epilogue;
  spec.has_bias = HasBias(op);
  if (IsGelu(op)) spec.stride_aux = StrideOfAux(op);
  spec.alignment = AlignmentOf(*program_, op);
  spec.num_multiprocessors =
      options_.is_partition ? options_.num_multiprocessors : 0;
  return spec;
}

absl::Status StageExecutor::PlanGemm(const StageOp& op,
                                     absl::Span<const BufferTable> tune_on,
                                     const Lane& lane, PlannedOp* planned) {
  GemmSpec spec = SpecOf(op);
  std::vector<GemmOperands> operands;
  for (const BufferTable& buffers : tune_on) {
    ASSIGN_OR_RETURN(const Pointers pointers, PointersOf(op, buffers));
    operands.push_back({pointers.inputs[0], pointers.inputs[1],
                        spec.has_bias ? pointers.inputs[2] : nullptr,
                        op.epilogue == Epilogue::kBiasGelu ? pointers.outputs[1]
                                                           : pointers.inputs[2],
                        pointers.outputs[0]});
  }
  absl::StatusOr<const Gemm*> gemm =
      library_->Plan(spec, operands, lane.workspace, lane.stream);
  if (absl::IsUnimplemented(gemm.status()) && IsGelu(op)) {
    planned->composed = true;
    if (op.epilogue == Epilogue::kBiasGelu) {  // the GEMM writes the aux
      spec.epilogue = spec.has_bias ? Epilogue::kBias : Epilogue::kNone;
      spec.shape.stride_d = spec.stride_aux;
      for (GemmOperands& each : operands) each.d = each.aux;
    } else {
      spec.epilogue = Epilogue::kNone;
    }
    spec.stride_aux = 0;
    gemm = library_->Plan(spec, operands, lane.workspace, lane.stream);
  }
  RETURN_IF_ERROR(Explain(gemm.status(), op));
  planned->gemm = *gemm;
  return absl::OkStatus();
}

absl::Status StageExecutor::RunGemm(const StageOp& op, const PlannedOp& planned,
                                    const Pointers& pointers,
                                    const Lane& lane) const {
  const bool makes_aux = op.epilogue == Epilogue::kBiasGelu;
  GemmOperands operands;
  operands.a = pointers.inputs[0];
  operands.b = pointers.inputs[1];
  operands.bias = HasBias(op) ? pointers.inputs[2] : nullptr;
  operands.aux = makes_aux ? pointers.outputs[1] : pointers.inputs[2];
  operands.d =
      planned.composed && makes_aux ? operands.aux : pointers.outputs[0];
  RETURN_IF_ERROR(
      Explain(planned.gemm->Run(operands, lane.workspace, lane.stream), op));
  return planned.composed ? RunGelu(op, pointers, lane) : absl::OkStatus();
}

absl::Status StageExecutor::RunGelu(const StageOp& op, const Pointers& pointers,
                                    const Lane& lane) const {
  StageOp gelu;
  gelu.rows = op.rows;
  gelu.columns = op.columns;
  std::array<const void*, 3> inputs{};
  std::array<void*, 1> outputs{pointers.outputs[0]};
  if (op.epilogue == Epilogue::kBiasGelu) {
    gelu.kind = OpKind::kGeluForward;
    gelu.inputs = {op.outputs[1], {}};
    inputs = {pointers.outputs[1], nullptr, nullptr};
  } else {  // in place: the GEMM left dy in d
    gelu.kind = OpKind::kGeluBackward;
    gelu.inputs = {op.outputs[0], op.inputs[2], {}};
    inputs = {pointers.outputs[0], pointers.inputs[2], nullptr};
  }
  gelu.outputs = {op.outputs[0]};
  return CudaStatus(
      LaunchOp(LaunchOn(lane), gelu, inputs.data(), outputs.data()),
      absl::StrCat(op.name, " (", Name(gelu.kind), ")"));
}

GemmOperands StageExecutor::OperandsOf(const AttentionGemm& gemm,
                                       const Pointers& pointers) const {
  const auto at = [&](const AttentionOperand& operand) -> void* {
    const auto& list = operand.is_output ? pointers.outputs : pointers.inputs;
    return static_cast<char*>(list[operand.index]) +
           operand.offset * BytesOf(options_.format);
  };
  GemmOperands operands;
  operands.a = at(gemm.a);
  operands.b = at(gemm.b);
  operands.d = at(gemm.d);
  return operands;
}

absl::Status StageExecutor::PlanAttention(const StageOp& op,
                                          absl::Span<const BufferTable> tune_on,
                                          const Lane& lane,
                                          PlannedOp* planned) {
  std::vector<Pointers> tables;
  for (const BufferTable& buffers : tune_on) {
    ASSIGN_OR_RETURN(const Pointers pointers, PointersOf(op, buffers));
    tables.push_back(pointers);
  }
  *planned = {};
  planned->attention = GemmsOfAttention(op);
  const auto plan = [&](const std::vector<AttentionGemm>& gemms,
                        std::vector<const Gemm*>* runners) -> absl::Status {
    for (const AttentionGemm& gemm : gemms) {
      GemmSpec spec;
      spec.shape = gemm.shape;
      spec.operands = spec.result = options_.format;
      // Heads begin at multiples of their size.
      spec.alignment = AlignmentOf(*program_, op, op.head_size);
      spec.num_multiprocessors =
          options_.is_partition ? options_.num_multiprocessors : 0;
      std::vector<GemmOperands> operands;
      for (const Pointers& pointers : tables) {
        operands.push_back(OperandsOf(gemm, pointers));
      }
      const absl::StatusOr<const Gemm*> planned_gemm =
          library_->Plan(spec, operands, lane.workspace, lane.stream);
      RETURN_IF_ERROR(Explain(planned_gemm.status(), op));
      runners->push_back(*planned_gemm);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(plan(planned->attention.before, &planned->before));
  return plan(planned->attention.after, &planned->after);
}

absl::Status StageExecutor::RunAttention(const StageOp& op,
                                         const PlannedOp& planned,
                                         const Pointers& pointers,
                                         const Lane& lane) const {
  const auto run = [&](const std::vector<AttentionGemm>& gemms,
                       const std::vector<const Gemm*>& runners) {
    for (size_t i = 0; i < gemms.size(); ++i) {
      RETURN_IF_ERROR(Explain(runners[i]->Run(OperandsOf(gemms[i], pointers),
                                              lane.workspace, lane.stream),
                              op));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(run(planned.attention.before, planned.before));
  const int64_t s = op.sequence_length;
  const int64_t num_rows = op.sequences * op.heads * s;
  const auto scale = static_cast<float>(1 / std::sqrt(op.head_size));
  const cudaError_t code =
      op.kind == OpKind::kAttentionForward
          ? LaunchSoftmax(LaunchOn(lane), pointers.outputs[1], num_rows, s,
                          scale, op.causal)
          : LaunchSoftmaxGradient(LaunchOn(lane), pointers.inputs[3],
                                  pointers.outputs[1], num_rows, s, scale);
  RETURN_IF_ERROR(CudaStatus(code, absl::StrCat(op.name, " (softmax)")));
  return run(planned.attention.after, planned.after);
}

}  // namespace weir::calibrate
