// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/stage_memory.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/stage_walk.h"
#include "calibrate/gpu/memory_pool.h"

namespace weir::calibrate {
namespace {

// Wraps a program that the caller keeps alive.
std::shared_ptr<const StageProgram> Unowned(const StageProgram& program) {
  return {std::shared_ptr<const StageProgram>(), &program};
}

class StageRun {
 public:
  StageRun(const BenchDevice& device, const StageProgram& program,
           int num_microbatches, MemoryPool* pool)
      : device_(device),
        program_(program),
        fills_(FillsOf(program)),
        pool_(pool),
        executor_(Unowned(program), device.executor_options(),
                  device.gemms.get()),
        permanent_(program.buffers.size(), nullptr),
        tables_(num_microbatches, permanent_) {}

  absl::Status Run(const std::vector<StageStep>& steps) {
    // The marks do not depend on the speed of GEMMs, so heuristics suffice.
    for (int pass = 0; pass < kNumProgramPasses; ++pass) {
      RETURN_IF_ERROR(executor_.PlanPass(static_cast<ProgramPass>(pass), {},
                                         device_.lane()));
    }
    for (const StageStep& step : steps) RETURN_IF_ERROR(Do(step));
    return device_.Wait("running a stage in a memory pool");
  }

 private:
  absl::Status Do(const StageStep& step) {
    switch (step.kind) {
      case StageStep::Kind::kAllocate:
        return AllocateBuffer(step);
      case StageStep::Kind::kFree:
        return FreeBuffer(step);
      case StageStep::Kind::kRun:
        return executor_.RunOp(step.pass, step.op, TableOf(step.microbatch),
                               device_.lane());
    }
    return absl::OkStatus();
  }

  BufferTable& TableOf(int microbatch) {
    return microbatch < 0 ? permanent_ : tables_[microbatch];
  }

  absl::Status AllocateBuffer(const StageStep& step) {
    const StageBuffer& buffer = program_.buffers[step.buffer];
    ASSIGN_OR_RETURN(
        void* memory,
        pool_->Allocate(buffer.bytes(), device_.stream.get(), buffer.name));
    TableOf(step.microbatch)[step.buffer] = memory;
    if (step.microbatch < 0) {
      for (BufferTable& table : tables_) table[step.buffer] = memory;
    }
    // Other buffers are written before they are read.
    if (step.microbatch >= 0 && buffer.buffer_class != BufferClass::kInput) {
      return absl::OkStatus();
    }
    return FillPiece(device_.launch(), program_, fills_,
                     {step.buffer, 0, buffer.num_elements}, memory, ++seed_);
  }

  absl::Status FreeBuffer(const StageStep& step) {
    void*& memory = TableOf(step.microbatch)[step.buffer];
    RETURN_IF_ERROR(pool_->Free(memory, device_.stream.get()));
    memory = nullptr;  // RunOp names an operation that still needs it
    // Wait, so that the marks do not depend on how far the host has run ahead.
    return device_.Wait("running a stage in a memory pool");
  }

  const BenchDevice& device_;
  const StageProgram& program_;
  const std::vector<PieceFill> fills_;
  MemoryPool* pool_;
  StageExecutor executor_;
  BufferTable permanent_;
  std::vector<BufferTable> tables_;
  uint64_t seed_ = 0;
};

}  // namespace

absl::StatusOr<MeasuredMemory> MeasureStage(const BenchDevice& device,
                                            const StageProgram& program,
                                            int num_microbatches) {
  const std::vector<StageStep> steps = WalkStage(program, num_microbatches);
  cudaStream_t stream = device.stream.get();
  ASSIGN_OR_RETURN(const auto ruler,
                   MemoryPool::Create(device.facts.device, 0));
  ASSIGN_OR_RETURN(const int64_t granularity,
                   ruler->MeasureGranularity(stream));
  ASSIGN_OR_RETURN(const auto pool, MemoryPool::Create(device.facts.device, 0));
  StageRun run(device, program, num_microbatches, pool.get());
  RETURN_IF_ERROR(run.Run(steps));
  ASSIGN_OR_RETURN(const PoolMarks marks, pool->Marks());
  MeasuredMemory memory;
  memory.set_num_microbatches(num_microbatches);
  memory.set_predicted_bytes(
      static_cast<double>(PeakOfWalk(program, steps, 1)));
  memory.set_rounded_bytes(
      static_cast<double>(PeakOfWalk(program, steps, granularity)));
  memory.set_used_high_bytes(static_cast<double>(marks.used_bytes));
  memory.set_reserved_high_bytes(static_cast<double>(marks.reserved_bytes));
  return memory;
}

}  // namespace weir::calibrate
