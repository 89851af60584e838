// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/kernels/kernel_check.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "calibrate/execute/reference/reference_ops.h"
#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {
namespace {

using Values = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the error bound. Rounding to half a unit in the last place changes a
// value by up to 2^-9 (bf16) or 2^-12 (fp16), on average by a third of that.
// Attention also rounds probabilities.
double BoundOf(ElementFormat format, OpKind kind) {
  const bool attention =
      kind == OpKind::kAttentionForward || kind == OpKind::kAttentionBackward;
  switch (format) {
    case ElementFormat::kBf16:
      return attention ? 4e-3 : 2.5e-3;
    case ElementFormat::kFp16:
      return attention ? 5e-4 : 3.5e-4;
    case ElementFormat::kFp32:
      return 1e-6;
    default:
      return 0;
  }
}

struct Tensor {
  ElementFormat format = ElementFormat::kFp32;
  Values values;  // rounded to `format`
  void* device = nullptr;
};

Tensor MakeTensor(ElementFormat format, const Values& values) {
  return {format, Decode(format, Encode(format, values)), nullptr};
}

bool IsInPlace(OpKind kind, int output) {
  switch (kind) {
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
    case OpKind::kAdam:
    case OpKind::kClear:
      return true;
    case OpKind::kCrossEntropy:
      return output == 0;
    default:
      return false;
  }
}

bool IsAccumulated(OpKind kind, int output) {
  switch (kind) {
    case OpKind::kBiasGradient:
    case OpKind::kEmbeddingBackward:
      return true;
    case OpKind::kNormBackward:
      return output > 0;
    default:
      return false;
  }
}

// Returns true for a scratch output, which only the kernel uses.
bool IsScratch(OpKind kind, int output) {
  return kind == OpKind::kAttentionBackward && output == 1;
}

Values Normal(int64_t num, double mean, double deviation, std::mt19937_64* r) {
  std::normal_distribution<double> normal(mean, deviation);
  Values values(num);
  for (double& x : values) x = normal(*r);
  return values;
}

Values Whole(int64_t num, int64_t limit, std::mt19937_64* random) {
  std::uniform_int_distribution<int64_t> uniform(0, limit - 1);
  Values values(num);
  for (double& x : values) x = static_cast<double>(uniform(*random));
  return values;
}

Values RandomInput(const KernelCase& test, int index, std::mt19937_64* random) {
  const StageOp& op = test.op;
  const int64_t num = InputShape(op, index).num_elements();
  switch (InputFormat(test, index)) {
    case ElementFormat::kInt32:
      return Whole(num,
                   op.kind == OpKind::kCrossEntropy ? op.columns : op.inner,
                   random);
    case ElementFormat::kUint8:
      return Whole(num, 2, random);
    default:
      break;
  }
  Values values = Normal(num, 0.1, 1, random);
  if (op.kind == OpKind::kAdam && index == 3) {
    for (double& x : values) x *= x;  // a second moment
  }
  return values;
}

Values Reference(const StageOp& op, const std::vector<Tensor>& inputs,
                 int wanted, int num_outputs) {
  std::vector<const double*> in;
  for (const Tensor& tensor : inputs) {
    in.push_back(tensor.values.empty() ? nullptr : tensor.values.data());
  }
  std::vector<Values> outputs(num_outputs);
  std::vector<double*> out(num_outputs);
  for (int i = 0; i < num_outputs; ++i) {
    outputs[i].assign(OutputShape(op, i).num_elements(), 0);
    out[i] = outputs[i].data();
  }
  RunReference(op, in, absl::MakeSpan(out));
  return outputs[wanted];
}

// Replaces inputs of a backward that its forward computes, so that they are
// consistent with the others.
void FillFromForward(const KernelCase& test, std::vector<Tensor>* inputs) {
  StageOp forward;
  forward = test.op;
  forward.inputs.clear();
  forward.outputs.clear();
  if (test.op.kind == OpKind::kNormBackward) {
    forward.kind = OpKind::kNormForward;
    std::vector<Tensor> of_forward(6);
    of_forward[0] = (*inputs)[1];
    of_forward[4] = (*inputs)[3];
    (*inputs)[2] =
        MakeTensor(ElementFormat::kFp32, Reference(forward, of_forward, 2, 4));
  } else if (test.op.kind == OpKind::kAttentionBackward) {
    forward.kind = OpKind::kAttentionForward;
    for (int i : {0, 1}) {
      (*inputs)[i == 0 ? 1 : 3] =
          MakeTensor(InputFormat(test, i == 0 ? 1 : 3),
                     Reference(forward, {(*inputs)[2]}, i, 2));
    }
  }
}

std::vector<Tensor> MakeInputs(const KernelCase& test,
                               std::mt19937_64* random) {
  std::vector<Tensor> inputs(NumInputs(test.op.kind));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!test.op.inputs[i].present()) continue;
    inputs[i] = MakeTensor(InputFormat(test, i), RandomInput(test, i, random));
  }
  FillFromForward(test, &inputs);
  return inputs;
}

std::vector<Tensor> MakeOutputs(const KernelCase& test,
                                const std::vector<Tensor>& inputs,
                                std::mt19937_64* random) {
  std::vector<Tensor> outputs(NumOutputs(test.op.kind));
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    if (!test.op.outputs[i].present()) continue;
    const int64_t num = OutputShape(test.op, i).num_elements();
    if (IsInPlace(test.op.kind, i)) {
      outputs[i] = inputs[i];
    } else if (IsAccumulated(test.op.kind, i)) {
      outputs[i] = MakeTensor(OutputFormat(test, i), Normal(num, 0, 1, random));
    } else {
      outputs[i] = {OutputFormat(test, i), Values(num, kNan), nullptr};
    }
  }
  return outputs;
}

absl::Status Upload(std::vector<Tensor>* tensors, TestDevice* device) {
  for (Tensor& tensor : *tensors) {
    if (tensor.values.empty()) continue;
    tensor.device = device->Upload(Encode(tensor.format, tensor.values));
    if (tensor.device == nullptr) {
      return absl::ResourceExhaustedError("no memory on the device");
    }
  }
  return absl::OkStatus();
}

absl::Status RunKernel(const KernelCase& test, TestDevice* device,
                       std::vector<Tensor>* inputs,
                       std::vector<Tensor>* outputs) {
  absl::Status status = Upload(inputs, device);
  if (status.ok()) status = Upload(outputs, device);
  if (!status.ok()) return status;
  Launch launch;
  launch.format = test.format;
  launch.num_multiprocessors = device->num_multiprocessors();
  launch.workspace_bytes = WorkspaceBytes(launch, test.op);
  launch.workspace =
      device->Upload(std::vector<uint8_t>(launch.workspace_bytes, 0xFF));
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Tensor& tensor : *outputs) out.push_back(tensor.device);
  for (size_t i = 0; i < inputs->size(); ++i) {
    const bool in_place = i < out.size() && IsInPlace(test.op.kind, i);
    in.push_back(in_place ? out[i] : (*inputs)[i].device);
  }
  const cudaError_t error = LaunchOp(launch, test.op, in.data(), out.data());
  return LaunchStatus(error);
}

}  // namespace

absl::Status LaunchStatus(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  if (error == cudaErrorNotSupported) {
    return absl::UnimplementedError("not supported on this device");
  }
  return absl::InternalError(
      absl::StrCat("the launch: cudaError ", static_cast<int>(error)));
}

double NormwiseError(const std::vector<double>& got,
                     const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(got[i])) return HUGE_VAL;
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference / norm);
}

absl::StatusOr<std::vector<OutputError>> CheckKernel(const KernelCase& test,
                                                     TestDevice* device) {
  std::mt19937_64 random(std::hash<std::string>()(test.name));
  std::vector<Tensor> inputs = MakeInputs(test, &random);
  std::vector<Tensor> outputs = MakeOutputs(test, inputs, &random);
  const absl::Status status = RunKernel(test, device, &inputs, &outputs);
  if (!status.ok()) return status;

  std::vector<const double*> in;
  std::vector<double*> out;
  for (const Tensor& tensor : inputs) {
    in.push_back(tensor.values.empty() ? nullptr : tensor.values.data());
  }
  for (Tensor& tensor : outputs) {
    out.push_back(tensor.values.empty() ? nullptr : tensor.values.data());
  }
  RunReference(test.op, in, absl::MakeSpan(out));

  std::vector<OutputError> errors;
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    const Tensor& tensor = outputs[i];
    if (tensor.device == nullptr) continue;
    auto bytes = device->Download(tensor.device);
    if (!bytes.ok()) return bytes.status();
    if (IsScratch(test.op.kind, i)) continue;
    errors.push_back(
        {absl::StrCat(test.name, " output ", i),
         NormwiseError(Decode(tensor.format, *bytes), tensor.values),
         BoundOf(tensor.format, test.op.kind)});
  }
  for (const Tensor& tensor : inputs) {  // also checks guards of inputs
    if (tensor.device == nullptr) continue;
    auto bytes = device->Download(tensor.device);
    if (!bytes.ok()) return bytes.status();
  }
  return errors;
}

}  // namespace weir::calibrate
