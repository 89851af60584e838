// SPDX-License-Identifier: Apache-2.0
// Compares whole stages on the GPU with the reference in double precision.
#include <cmath>
#include <random>

#include "calibrate/execute/reference/reference_stage.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/executor.h"
#include "calibrate/gpu/host/difference.h"
#include "calibrate/gpu/host/host_tensor.h"
#include "tests/calibrate/gpu/gpu_test.h"

namespace weir::calibrate::gpu_executor_test {

// Each operation is within 1e-2. A stage chains tens of operations, whose
// rounding errors (2^-9 in bf16) are independent.
constexpr double kTolerance = 3e-2;

struct Case {
  std::string name;
  bool llama = false, fused = true;
  float dropout = 0;
};
void PrintTo(const Case& printed, std::ostream* out) { *out << printed.name; }

class GpuExecutorTest : public GpuTest,
                        public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto device = OpenBenchDevice({});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    const auto program =
        BuildStageProgram(GetParam().llama ? GpuLlama() : GpuGpt(),
                          Spec(GetParam().fused, GetParam().dropout));
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = std::make_shared<StageProgram>(*program);
    MakeReference();
    Upload();
  }

  // Fills the reference with numbers that the format represents exactly, so
  // that both sides start with the same values.
  void MakeReference() {
    reference_ = MakeStageBuffers(*program_);
    std::mt19937_64 generator(3);
    std::normal_distribution<double> normal;
    for (const PieceFill& fill : FillsOf(*program_)) {
      const StageBuffer& buffer = program_->buffers[fill.piece.buffer];
      if (buffer.buffer_class != BufferClass::kWeights &&
          buffer.buffer_class != BufferClass::kInput) {
        continue;
      }
      for (int64_t i = 0; i < fill.piece.num_elements; ++i) {
        uint8_t bytes[8];
        const double value =
            fill.fill.kind == Fill::Kind::kTokens
                ? static_cast<double>(generator() % fill.fill.limit)
                : fill.fill.deviation * normal(generator);
        WriteElement(buffer.format, value, bytes);
        reference_[fill.piece.buffer][fill.piece.first + i] =
            ReadElement(buffer.format, bytes);
      }
    }
  }

  void Upload() {
    table_.resize(program_->buffers.size());
    for (size_t i = 0; i < table_.size(); ++i) {
      const StageBuffer& buffer = program_->buffers[i];
      const int bytes = BytesOf(buffer.format);
      std::vector<uint8_t> host(buffer.bytes());
      for (int64_t j = 0; j < buffer.num_elements; ++j) {
        const double value = reference_[i][j];
        if (buffer.format == ElementFormat::kInt32 ||
            buffer.format == ElementFormat::kUint8) {
          WriteElement(buffer.format, std::isnan(value) ? 0 : value,
                       &host[j * bytes]);
        } else {
          WriteElement(buffer.format, value, &host[j * bytes]);
        }
      }
      auto memory = Allocate(std::max<int64_t>(buffer.bytes(), 1), buffer.name);
      ASSERT_TRUE(memory.ok()) << memory.status();
      ASSERT_EQ(cudaMemcpy(memory->get(), host.data(), host.size(),
                           cudaMemcpyHostToDevice),
                cudaSuccess);
      table_[i] = memory->get();
      memory_.push_back(*std::move(memory));
    }
    // Copies from pageable memory may still be in flight, and the bench's
    // stream does not wait for them.
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  double ErrorOf(int buffer_index) const {
    const StageBuffer& buffer = program_->buffers[buffer_index];
    std::vector<uint8_t> host(buffer.bytes());
    EXPECT_EQ(cudaMemcpy(host.data(), table_[buffer_index], host.size(),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    Difference difference;
    for (int64_t i = 0; i < buffer.num_elements; ++i) {
      difference.Add(
          ReadElement(buffer.format, &host[i * BytesOf(buffer.format)]),
          reference_[buffer_index][i]);
    }
    return difference.relative();
  }

  std::unique_ptr<BenchDevice> device_;
  std::shared_ptr<StageProgram> program_;
  StageBuffers reference_;
  std::vector<DeviceMemory> memory_;
  BufferTable table_;
};

TEST_P(GpuExecutorTest,
       LossesAndGradientsAreTheReferencesAndAnUpdateClearsThem) {
  StageExecutor executor(program_, device_->executor_options(),
                         device_->gemms.get());
  const Lane lane = device_->lane();
  for (const ProgramPass pass :
       {ProgramPass::kForward, ProgramPass::kBackwardInput,
        ProgramPass::kBackwardWeight}) {
    ASSERT_TRUE(executor.PlanPass(pass, {}, lane).ok());
    const absl::Status status = executor.RunPass(pass, table_, lane);
    ASSERT_TRUE(status.ok()) << status;
    RunReferencePass(*program_, pass, &reference_);
  }
  ASSERT_TRUE(device_->Wait("a stage").ok());
  EXPECT_LE(ErrorOf(program_->losses), kTolerance);
  const int gradients =
      program_->ops(ProgramPass::kOptimizer)[0].inputs[0].buffer;
  EXPECT_LE(ErrorOf(gradients), kTolerance);
  const absl::Status planned =
      executor.PlanPass(ProgramPass::kOptimizer, {}, lane);
  ASSERT_TRUE(planned.ok()) << planned;
  ASSERT_TRUE(executor.RunPass(ProgramPass::kOptimizer, table_, lane).ok());
  ASSERT_TRUE(device_->Wait("an update").ok());
  reference_[gradients].assign(reference_[gradients].size(), 0);
  EXPECT_EQ(ErrorOf(gradients), 0);  // cleared
}

TEST_P(GpuExecutorTest, ABufferThatIsNotThereIsNamed) {
  StageExecutor executor(program_, device_->executor_options(),
                         device_->gemms.get());
  ASSERT_TRUE(
      executor.PlanPass(ProgramPass::kForward, {}, device_->lane()).ok());
  table_[program_->losses] = nullptr;
  const absl::Status status =
      executor.RunPass(ProgramPass::kForward, table_, device_->lane());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find(program_->buffers[program_->losses].name),
            absl::string_view::npos)
      << status;
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuExecutorTest,
    testing::Values(Case{"Gpt", false, true, 0}, Case{"Llama", true, true, 0},
                    Case{"GptUnfused", false, false, 0},
                    Case{"LlamaUnfused", true, false, 0},
                    Case{"GptDropout", false, true, 0.25F}),
    [](const auto& info) { return info.param.name; });

}  // namespace weir::calibrate::gpu_executor_test
