// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "calibrate/measure/measurement_plan.h"

namespace weir::calibrate {
namespace {

void AddSize(absl::string_view name, int64_t value, std::string* key) {
  if (value > 0) absl::StrAppend(key, " ", name, " ", value);
}

void AddFlag(absl::string_view name, bool value, std::string* key) {
  if (value) absl::StrAppend(key, " ", name);
}

// Returns the formats of all tensors, "-" for an absent one, with the distance
// between rows of a strided view: "bf16 - bf16/6144 fp32".
std::string TensorsOf(const StageProgram& program,
                      const std::vector<TensorView>& tensors) {
  std::string text;
  for (const TensorView& tensor : tensors) {
    if (!tensor.present()) {
      absl::StrAppend(&text, " -");
      continue;
    }
    absl::StrAppend(&text, " ", Name(program.buffers[tensor.buffer].format));
    if (tensor.stride > 0) absl::StrAppend(&text, "/", tensor.stride);
  }
  return text;
}

const char* EpilogueName(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "";
    case Epilogue::kBias:
      return " bias";
    case Epilogue::kBiasGelu:
      return " bias_gelu";
    case Epilogue::kGeluGradient:
      return " gelu_gradient";
  }
  return "";
}

// Every operation carries all sizes of its stage. These functions select the
// ones that affect it.
bool IsAttention(OpKind kind) {
  return kind == OpKind::kAttentionForward ||
         kind == OpKind::kAttentionBackward;
}
bool HasHeads(OpKind kind) {
  return IsAttention(kind) || kind == OpKind::kRotaryForward ||
         kind == OpKind::kRotaryBackward;
}
bool HasSequences(OpKind kind) {
  return HasHeads(kind) || kind == OpKind::kEmbeddingForward ||
         kind == OpKind::kEmbeddingBackward;
}
bool HasDropout(OpKind kind) {
  return kind == OpKind::kNormForward || kind == OpKind::kResidualForward ||
         kind == OpKind::kDropoutBackward;
}

}  // namespace

std::string OpKey(const StageProgram& program, const StageOp& op) {
  std::string key = Name(op.kind);
  AddSize("m", op.rows, &key);
  AddSize("n", op.columns, &key);
  AddSize("k", op.inner, &key);
  AddFlag("at", op.transpose_a, &key);
  AddFlag("bt", op.transpose_b, &key);
  AddFlag("add", op.accumulate, &key);
  absl::StrAppend(&key, EpilogueName(op.epilogue));
  const bool norm =
      op.kind == OpKind::kNormForward || op.kind == OpKind::kNormBackward;
  AddFlag("rms", op.rms && norm, &key);
  AddFlag("dropout", op.dropout > 0 && HasDropout(op.kind), &key);
  if (HasSequences(op.kind)) {
    AddSize("sequences", op.sequences, &key);
    AddSize("s", op.sequence_length, &key);
  }
  if (HasHeads(op.kind)) {
    AddSize("heads", op.heads, &key);
    AddSize("kv", op.kv_heads, &key);
    AddSize("head", op.head_size, &key);
  }
  AddFlag("causal", op.causal && IsAttention(op.kind), &key);
  AddFlag("fused", op.fused && IsAttention(op.kind), &key);
  absl::StrAppend(&key, " :", TensorsOf(program, op.inputs), " ->",
                  TensorsOf(program, op.outputs));
  return key;
}

std::shared_ptr<const StageProgram> GemmProgram(double m, double n, double k,
                                                ElementFormat format) {
  auto program = std::make_shared<StageProgram>();
  const auto add = [&](const char* name, BufferClass buffer_class,
                       double elements) {
    StageBuffer buffer;
    buffer.name = name;
    buffer.buffer_class = buffer_class;
    buffer.format = format;
    buffer.num_elements = static_cast<int64_t>(elements);
    buffer.first_op = buffer.last_op = 0;
    program->buffers.push_back(buffer);
  };
  add("a", BufferClass::kInput, m * k);
  add("b", BufferClass::kInput, k * n);
  add("d", BufferClass::kOutput, m * n);
  StageOp op;
  op.name = "gemm";
  op.rows = static_cast<int64_t>(m);
  op.columns = static_cast<int64_t>(n);
  op.inner = static_cast<int64_t>(k);
  op.inputs = {{0}, {1}, {}};
  op.outputs = {{2}, {}};
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kGemm;
  kernel.part = models::KernelPart::kProjectionGemm;
  kernel.batch = 1;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = 2 * m * n * k;
  kernel.bytes = BytesOf(format) * (m * k + k * n + m * n);
  op.kernels = {kernel};
  program->passes[0] = {op};
  return program;
}

double PredictedPeakBytes(const StageProgram& program, int num_microbatches) {
  int64_t most = 0;
  for (int pass = 0; pass < kNumProgramPasses; ++pass) {
    // The optimizer update runs after all microbatches.
    const bool update = pass == static_cast<int>(ProgramPass::kOptimizer);
    most = std::max(most, PeakBytes(program, static_cast<ProgramPass>(pass),
                                    update ? 0 : num_microbatches - 1));
  }
  return static_cast<double>(most);
}

const StageOp& OpOf(const Workload& workload) {
  return workload.program->ops(workload.pass)[workload.op];
}

}  // namespace weir::calibrate
