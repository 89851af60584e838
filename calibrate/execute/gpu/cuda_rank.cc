// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/cuda_rank.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_parts.h"
#include "base/status_macros.h"
#include "calibrate/execute/optimizer_math.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/host_tensor.h"
#include "calibrate/gpu/kernels/training_kernels.h"

namespace weir::calibrate {
namespace {

// Holds the tokens of many microbatches; weights take several rounds.
constexpr int64_t kRingBytes = 32 << 20;
constexpr int64_t kUploadBytes = 8 << 20;

void Write(ElementFormat format, double value, uint8_t* bytes) {
  if (format == ElementFormat::kUint8) {
    *bytes = static_cast<uint8_t>(value);
  } else {
    WriteElement(format, value, bytes);
  }
}

// One loop per format, as there may be billions of weights.
void WritePart(ElementFormat format, absl::Span<const double> values,
               uint8_t* bytes) {
  if (format == ElementFormat::kFp32) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(bytes + 4 * i, &value, 4);
    }
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    if (format == ElementFormat::kBf16 && !std::isnan(value)) {
      const auto word = std::bit_cast<uint32_t>(value);
      const auto half =  // to nearest, ties to even
          static_cast<uint16_t>((word + 0x7FFF + (word >> 16 & 1)) >> 16);
      std::memcpy(bytes + 2 * i, &half, 2);
    } else {
      Write(format, values[i], bytes + i * BytesOf(format));
    }
  }
}

void ReadPart(ElementFormat format, const uint8_t* bytes,
              absl::Span<double> values) {
  if (format == ElementFormat::kFp32) {
    for (size_t i = 0; i < values.size(); ++i) {
      float value;
      std::memcpy(&value, bytes + 4 * i, 4);
      values[i] = value;
    }
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ReadElement(format, bytes + i * BytesOf(format));
  }
}

void WriteAll(ElementFormat format, absl::Span<const double> values,
              uint8_t* bytes) {
  InParts(std::ssize(values), [&](int64_t first, int64_t last) {
    WritePart(format, values.subspan(first, last - first),
              bytes + first * BytesOf(format));
  });
}

void ReadAll(ElementFormat format, const uint8_t* bytes,
             absl::Span<double> values) {
  InParts(std::ssize(values), [&](int64_t first, int64_t last) {
    ReadPart(format, bytes + first * BytesOf(format),
             values.subspan(first, last - first));
  });
}

char* At(void* memory, int64_t num_bytes) {
  return static_cast<char*>(memory) + num_bytes;
}

}  // namespace

CudaRank::CudaRank(RankTools tools) : tools_(std::move(tools)) {
  for (const auto& program : tools_.plan->programs) {
    parts_.push_back(PartsOf(*program));
  }
}

absl::Status CudaRank::Open(int64_t pool_bytes, int64_t primed_bytes) {
  ASSIGN_OR_RETURN(pool_, MemoryPool::Create(tools_.device, pool_bytes));
  RETURN_IF_ERROR(pool_->Prime(primed_bytes, stream()));
  RETURN_IF_ERROR(Wait("allocating its memory"));
  ASSIGN_OR_RETURN(uploads_, UploadRing::Create(kRingBytes));
  return absl::OkStatus();
}

void CudaRank::ClosePool() {
  if (pool_ == nullptr || DeviceIsHung()) return;
  if (!Wait("freeing its memory").ok()) return;
  pool_->Trim().IgnoreError();
  pool_.reset();
}

std::string CudaRank::name() const {
  return absl::StrCat("rank ", tools_.rank);
}

absl::Status CudaRank::Explain(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(name(), ": ", status.message()));
}

absl::Status CudaRank::UseDevice() const {
  thread_local int used = -1;
  if (used == tools_.device) return absl::OkStatus();
  RETURN_IF_ERROR(
      CudaStatus(cudaSetDevice(tools_.device), "selecting the GPU"));
  used = tools_.device;
  return absl::OkStatus();
}

absl::Status CudaRank::Wait(absl::string_view what) const {
  return WaitFor(stream(), timeout_seconds(), absl::StrCat(name(), ", ", what));
}

Launch CudaRank::launch() const {
  return {stream(), tools_.options.format, tools_.options.num_multiprocessors,
          tools_.lane.workspace.data, tools_.lane.workspace.num_bytes};
}

CudaRank::Parts CudaRank::PartsOf(const StageProgram& program) {
  Parts parts;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const BufferClass of = program.buffers[i].buffer_class;
    if (of == BufferClass::kWeights) parts.weights = i;
    if (of == BufferClass::kGradients) parts.gradients = i;
    if (of == BufferClass::kOptimizerState) parts.state = i;
  }
  if (parts.weights >= 0) {
    parts.num_elements = program.buffers[parts.weights].num_elements;
  }
  return parts;
}

absl::StatusOr<CudaRank::Located> CudaRank::LocateState(
    const Parts& parts, const Buffers& buffers) {
  ASSIGN_OR_RETURN(void* gradients, Locate(buffers[parts.gradients]));
  ASSIGN_OR_RETURN(void* state, Locate(buffers[parts.state]));
  auto* master = static_cast<float*>(state);
  return Located{static_cast<float*>(gradients), master,
                 master + parts.num_elements, master + 2 * parts.num_elements};
}

absl::Status CudaRank::RunOp(int stage, ProgramPass pass, int op,
                             const Buffers& buffers,
                             const OpVariation& variation) {
  const StageExecutor& executor = tools_.executors->of(stage);
  const auto& ops = executor.program().ops(pass);
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(stage, pass, static_cast<int>(ops.size())));
  located_.assign(buffers.size(), nullptr);
  for (const auto* views : {&ops[op].inputs, &ops[op].outputs}) {
    for (const TensorView& view : *views) {
      if (!view.present() || buffers[view.buffer] == nullptr) continue;
      ASSIGN_OR_RETURN(located_[view.buffer], Locate(buffers[view.buffer]));
    }
  }
  return Explain(executor.RunOp(pass, op, located_, tools_.lane, variation));
}

absl::Status CudaRank::Run(int stage, ProgramPass pass, int op, uint64_t seed,
                           const Buffers& buffers) {
  return RunOp(stage, pass, op, buffers, {.seed = seed});
}

absl::Status CudaRank::RunAdam(int stage, const StageOptimizer& optimizer,
                               int step, const Buffers& buffers) {
  AdamStep adam = optimizer.adam;
  adam.learning_rate = static_cast<float>(LearningRateAt(optimizer, step));
  adam.step = step;
  adam.gradient_scale = static_cast<float>(optimizer.gradient_scale);
  const auto& ops =
      tools_.executors->of(stage).program().ops(ProgramPass::kOptimizer);
  for (int op = 0; op < static_cast<int>(ops.size()); ++op) {
    RETURN_IF_ERROR(
        RunOp(stage, ProgramPass::kOptimizer, op, buffers, {.adam = &adam}));
  }
  return absl::OkStatus();
}

// Uses the master weights, which have more digits than `old_weights`.
absl::Status CudaRank::Update(int stage, const StageOptimizer& optimizer,
                              int step, const void* /*old_weights*/,
                              const Buffers& buffers) {
  if (optimizer.kind == ADAM) {
    return RunAdam(stage, optimizer, step, buffers);
  }
  const Parts& parts = parts_[stage];
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(stage, ProgramPass::kOptimizer, 1));
  ASSIGN_OR_RETURN(const Located at, LocateState(parts, buffers));
  ASSIGN_OR_RETURN(void* weights, Locate(buffers[parts.weights]));
  MomentumStep momentum_step;
  momentum_step.learning_rate =
      static_cast<float>(LearningRateAt(optimizer, step));
  momentum_step.momentum = static_cast<float>(optimizer.momentum);
  momentum_step.velocity_weight = static_cast<float>(optimizer.velocity_weight);
  momentum_step.gradient_weight = static_cast<float>(optimizer.gradient_weight);
  momentum_step.gradient_scale = static_cast<float>(optimizer.gradient_scale);
  return CudaStatus(
      LaunchMomentum(launch(), momentum_step, at.gradients, at.master, at.first,
                     weights, parts.num_elements),
      absl::StrCat(name(), ": the update of stage ", stage));
}

absl::Status CudaRank::Estimate(int stage, const StageOptimizer& optimizer,
                                int step, double distance, const void* weights,
                                const void* average, const Buffers& buffers,
                                void* estimate) {
  const int64_t n = parts_[stage].num_elements;
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(stage, ProgramPass::kOptimizer, 1));
  ASSIGN_OR_RETURN(void* from, Locate(weights));
  ASSIGN_OR_RETURN(void* into, Locate(estimate));
  const std::string what =
      absl::StrCat(name(), ": estimating the weights of stage ", stage);
  if (average != nullptr) {
    ASSIGN_OR_RETURN(void* velocity, Locate(average));
    return CudaStatus(
        LaunchEstimateByVelocity(launch(), from, static_cast<float*>(velocity),
                                 static_cast<float>(-distance), into, n),
        what);
  }
  if (step == 0 || distance == 0) {
    if (from == into) return absl::OkStatus();
    return CudaStatus(
        cudaMemcpyAsync(into, from, n * BytesOf(tools_.options.format),
                        cudaMemcpyDeviceToDevice, stream()),
        what);
  }
  ASSIGN_OR_RETURN(const Located at, LocateState(parts_[stage], buffers));
  const auto far =
      static_cast<float>(distance * LearningRateAt(optimizer, step + 1));
  if (optimizer.kind != ADAM) {
    return CudaStatus(
        LaunchEstimateByVelocity(launch(), from, at.first, far, into, n), what);
  }
  AdamStep adam = optimizer.adam;
  adam.step = step;
  return CudaStatus(LaunchEstimateByAdam(launch(), adam, from, at.first,
                                         at.second, far, into, n),
                    what);
}

absl::Status CudaRank::Average(int stage, double decay, const void* old_weights,
                               const void* new_weights, void* average) {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(stage, ProgramPass::kOptimizer, 1));
  ASSIGN_OR_RETURN(void* before, Locate(old_weights));
  ASSIGN_OR_RETURN(void* now, Locate(new_weights));
  ASSIGN_OR_RETURN(void* moved, Locate(average));
  return CudaStatus(
      LaunchMoveAverage(launch(), before, now, static_cast<float>(decay),
                        static_cast<float*>(moved), parts_[stage].num_elements),
      absl::StrCat(name(), ": the average of updates of stage ", stage));
}

absl::Status CudaRank::Add(int64_t num_elements, const void* addend,
                           void* sum) {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(-1, ProgramPass::kOptimizer, 1));
  ASSIGN_OR_RETURN(void* from, Locate(addend));
  ASSIGN_OR_RETURN(void* into, Locate(sum));
  return CudaStatus(LaunchAdd(launch(), static_cast<const float*>(from),
                              static_cast<float*>(into), num_elements),
                    absl::StrCat(name(), ": accumulating gradients"));
}

absl::Status CudaRank::Clear(int64_t num_elements, ElementFormat format,
                             void* memory) {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(Begin(-1, ProgramPass::kOptimizer, 1));
  ASSIGN_OR_RETURN(void* at, Locate(memory));
  return CudaStatus(
      cudaMemsetAsync(at, 0, num_elements * BytesOf(format), stream()),
      absl::StrCat(name(), ": clearing memory"));
}

absl::Status CudaRank::Upload(absl::Span<const double> values,
                              ElementFormat format, void* to) {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(End());
  ASSIGN_OR_RETURN(void* at, Locate(to));
  const int width = BytesOf(format);
  const size_t most = kUploadBytes / width;
  for (size_t first = 0; first < values.size(); first += most) {
    const auto part = values.subspan(first, most);
    const auto fill = [&](uint8_t* bytes) {
      InParts(std::ssize(part), [&](int64_t begin, int64_t end) {
        WriteAll(format, part.subspan(begin, end - begin),
                 bytes + begin * width);
      });
    };
    RETURN_IF_ERROR(Explain(
        uploads_->Upload(static_cast<int64_t>(part.size()) * width,
                         At(at, static_cast<int64_t>(first) * width), stream(),
                         tools_.events, timeout_seconds(), fill)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> CudaRank::Download(const void* from,
                                                       int64_t num_elements,
                                                       ElementFormat format) {
  RETURN_IF_ERROR(MakeCurrent());
  RETURN_IF_ERROR(End());
  ASSIGN_OR_RETURN(void* at, Locate(from));
  const int width = BytesOf(format);
  const int64_t most = kRingBytes / width;
  RETURN_IF_ERROR(Wait("before a download"));  // empties the ring
  std::vector<double> values(num_elements);
  for (int64_t first = 0; first < num_elements; first += most) {
    const int64_t count = std::min(most, num_elements - first);
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(uploads_->data(), At(at, first * width), count * width,
                        cudaMemcpyDeviceToHost, stream()),
        absl::StrCat(name(), ": copying to the host")));
    RETURN_IF_ERROR(Wait("a download"));
    const auto into = absl::MakeSpan(values).subspan(first, count);
    InParts(count, [&](int64_t begin, int64_t end) {
      ReadAll(format, uploads_->data() + begin * width,
              into.subspan(begin, end - begin));
    });
  }
  return values;
}

absl::StatusOr<double> CudaRank::PeakBytes() {
  RETURN_IF_ERROR(UseDevice());
  ASSIGN_OR_RETURN(const PoolMarks marks, pool_->Marks());
  return static_cast<double>(marks.used_bytes);
}

absl::Status CudaRank::ResetPeak() {
  RETURN_IF_ERROR(UseDevice());
  return pool_->ResetMarks();
}

}  // namespace weir::calibrate
