// SPDX-License-Identifier: Apache-2.0
// The kernels' launchers, implemented by the reference.
#include <cmath>
#include <cstring>
#include <random>

#include "calibrate/execute/reference/reference_ops.h"
#include "calibrate/gpu/host/host_tensor.h"
#include "calibrate/gpu/kernels/kernels.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate {
namespace {

using fake::Reads;
using fake::Writes;

ElementFormat FormatOf(const Launch& launch, const StageOp& op, bool is_input,
                       int index) {
  const TensorShape shape =
      is_input ? InputShape(op, index) : OutputShape(op, index);
  if (shape.half) return launch.format;
  switch (op.kind) {
    case OpKind::kNormForward:
      return index == 3 ? ElementFormat::kUint8 : ElementFormat::kFp32;
    case OpKind::kResidualForward:
    case OpKind::kDropoutBackward:
      return ElementFormat::kUint8;
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
    case OpKind::kCrossEntropy:
      return is_input ? ElementFormat::kInt32 : ElementFormat::kFp32;
    default:
      return ElementFormat::kFp32;
  }
}

std::vector<double> Load(ElementFormat format, const void* data, int64_t n) {
  std::vector<double> values(data != nullptr ? n : 0);
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    values[i] = ReadElement(
        format, static_cast<const uint8_t*>(data) + i * BytesOf(format));
  }
  return values;
}

void Store(ElementFormat format, const std::vector<double>& values,
           void* data) {
  for (size_t i = 0; i < values.size(); ++i) {
    WriteElement(format, Gpu().kernels_are_off_by * values[i],
                 static_cast<uint8_t*>(data) + i * BytesOf(format));
  }
}

void RunKernel(const Launch& launch, const StageOp& op,
               const std::vector<const void*>& inputs,
               const std::vector<void*>& outputs) {
  std::vector<std::vector<double>> in, out;
  std::vector<const double*> in_pointers;
  std::vector<double*> out_pointers;
  const auto pointer = [](std::vector<double>& values) {
    return values.empty() ? nullptr : values.data();
  };
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    in.push_back(Load(FormatOf(launch, op, true, i), inputs[i],
                      SpanOf(op.inputs[i], InputShape(op, i))));
  }
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    out.push_back(Load(FormatOf(launch, op, false, i), outputs[i],
                       SpanOf(op.outputs[i], OutputShape(op, i))));
  }
  for (auto& values : in) in_pointers.push_back(pointer(values));
  for (auto& values : out) out_pointers.push_back(pointer(values));
  RunReference(op, in_pointers, out_pointers);
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    Store(FormatOf(launch, op, false, i), out[i], outputs[i]);
  }
}

void Enqueue(const Launch& launch, std::function<void()> work,
             fake::Accesses accesses) {
  const std::lock_guard<std::recursive_mutex> lock(GpuMutex());
  ++Gpu().num_kernels;
  weir::calibrate::Enqueue(launch.stream, Gpu().kernel_seconds, std::move(work),
                           std::move(accesses));
}

fake::Accesses AccessesOf(const Launch& launch, const StageOp& op,
                          const std::vector<const void*>& inputs,
                          const std::vector<void*>& outputs) {
  fake::Accesses accesses;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    accesses.push_back(
        Reads(inputs[i], SpanOf(op.inputs[i], InputShape(op, i)) *
                             BytesOf(FormatOf(launch, op, true, i))));
  }
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    accesses.push_back(
        Writes(outputs[i], SpanOf(op.outputs[i], OutputShape(op, i)) *
                               BytesOf(FormatOf(launch, op, false, i))));
  }
  return accesses;
}

}  // namespace

bool HasKernel(const StageOp& op) {
  const bool is_attention = op.kind == OpKind::kAttentionForward ||
                            op.kind == OpKind::kAttentionBackward;
  return op.kind != OpKind::kGemm && (!is_attention || op.fused);
}

int64_t WorkspaceBytes(const Launch&, const StageOp& op) {
  return op.kind == OpKind::kNormBackward || op.kind == OpKind::kBiasGradient
             ? 1 << 20
             : 0;
}

cudaError_t LaunchOp(const Launch& launch, const StageOp& op,
                     const void* const* inputs, void* const* outputs) {
  if (WorkspaceBytes(launch, op) > launch.workspace_bytes) {
    return cudaErrorInvalidValue;
  }
  std::vector<const void*> in(inputs, inputs + op.inputs.size());
  std::vector<void*> out(outputs, outputs + op.outputs.size());
  Enqueue(
      launch, [=] { RunKernel(launch, op, in, out); },
      AccessesOf(launch, op, in, out));
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchSoftmax(const Launch& launch, void* scores, int64_t num_rows,
                          int64_t columns, float scale, bool causal) {
  Enqueue(launch,
          [=] {
            auto values = Load(launch.format, scores, num_rows * columns);
            for (int64_t row = 0; row < num_rows; ++row) {
              double sum = 0;
              for (int64_t j = 0; j < columns; ++j) {
                double& value = values[row * columns + j];
                value =
                    causal && j > row % columns ? 0 : std::exp(scale * value);
                sum += value;
              }
              for (int64_t j = 0; j < columns; ++j)
                values[row * columns + j] /= sum;
            }
            Store(launch.format, values, scores);
          },
          {Writes(scores, num_rows * columns * BytesOf(launch.format))});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchSoftmaxGradient(const Launch& launch,
                                  const void* probabilities,
                                  void* d_probabilities, int64_t num_rows,
                                  int64_t columns, float scale) {
  Enqueue(
      launch,
      [=] {
        const auto p = Load(launch.format, probabilities, num_rows * columns);
        auto d = Load(launch.format, d_probabilities, num_rows * columns);
        for (int64_t row = 0; row < num_rows; ++row) {
          double mean = 0;
          for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            mean += p[i] * d[i];
          }
          for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            d[i] = scale * p[i] * (d[i] - mean);
          }
        }
        Store(launch.format, d, d_probabilities);
      },
      {Reads(probabilities, num_rows * columns * BytesOf(launch.format)),
       Writes(d_probabilities, num_rows * columns * BytesOf(launch.format))});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchFillNormal(const Launch& launch, ElementFormat format,
                             void* data, int64_t num_elements, float deviation,
                             uint64_t seed) {
  Enqueue(launch,
          [=] {
            std::mt19937_64 generator(seed);
            std::normal_distribution<double> normal(0, deviation);
            std::vector<double> values(num_elements);
            for (double& value : values) value = normal(generator);
            Store(format, values, data);
          },
          {Writes(data, num_elements * BytesOf(format))});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchFillTokens(const Launch& launch, int32_t* data,
                             int64_t num_elements, int32_t limit,
                             uint64_t seed) {
  Enqueue(launch,
          [=] {
            std::mt19937_64 generator(seed);
            for (int64_t i = 0; i < num_elements; ++i) {
              data[i] = static_cast<int32_t>(generator() % limit);
            }
          },
          {Writes(data, num_elements * 4)});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchEmpty(const Launch& launch) {
  Enqueue(launch, [] {}, {});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchPacedCopy(const Launch& launch, const PacedCopy& copy) {
  const double seconds =
      copy.latency_seconds +
      (copy.bytes_per_second > 0
           ? static_cast<double>(copy.num_bytes) / copy.bytes_per_second
           : 0);
  weir::calibrate::Enqueue(
      launch.stream, seconds,
      [copy] {
        if (copy.num_bytes > 0) {
          std::memcpy(copy.to, copy.from, copy.num_bytes);
        }
      },
      {Reads(copy.from, copy.num_bytes), Writes(copy.to, copy.num_bytes)});
  return cudaGetLastError();  // as libraries do
}

cudaError_t LaunchCopy(const Launch& launch, const void* from, void* to,
                       int64_t bytes) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                         launch.stream);
}

}  // namespace weir::calibrate
