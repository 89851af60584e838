// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/stage_executors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

// Returns true if the operation uses GEMMs, which includes unfused attention.
bool HasGemms(const StageOp& op) {
  return op.kind == OpKind::kGemm || !HasKernel(op);
}

// Random data in all buffers that GEMMs use.
class TuningBuffers {
 public:
  static absl::StatusOr<TuningBuffers> Create(const StageProgram& program,
                                              const Launch& launch) {
    TuningBuffers buffers;
    buffers.table_.resize(program.buffers.size(), nullptr);
    const std::vector<PieceFill> fills = FillsOf(program);
    for (const auto& ops : program.passes) {
      for (const StageOp& op : ops) {
        if (!HasGemms(op)) continue;
        for (const auto* views : {&op.inputs, &op.outputs}) {
          for (const TensorView& view : *views) {
            if (!view.present()) continue;
            RETURN_IF_ERROR(
                buffers.AllocateBuffer(program, fills, launch, view.buffer));
          }
        }
      }
    }
    return buffers;
  }

  const BufferTable& table() const { return table_; }

 private:
  absl::Status AllocateBuffer(const StageProgram& program,
                              const std::vector<PieceFill>& fills,
                              const Launch& launch, int index) {
    if (table_[index] != nullptr) return absl::OkStatus();
    const StageBuffer& buffer = program.buffers[index];
    ASSIGN_OR_RETURN(DeviceMemory memory,
                     Allocate(std::max<int64_t>(buffer.bytes(), 1),
                              absl::StrCat("tuning ", buffer.name)));
    table_[index] = memory.get();
    memory_.push_back(std::move(memory));
    return FillPiece(launch, program, fills, {index, 0, buffer.num_elements},
                     table_[index], index);
  }

  BufferTable table_;
  std::vector<DeviceMemory> memory_;
};

absl::Status Plan(const BenchDevice& device, StageExecutor* executor,
                  const ExecutorOptions& options, const Lane& lane, bool tune) {
  const StageProgram& program = executor->program();
  const Launch launch = {lane.stream, options.format,
                         options.num_multiprocessors, lane.workspace.data,
                         lane.workspace.num_bytes};
  absl::StatusOr<TuningBuffers> buffers =
      tune ? TuningBuffers::Create(program, launch)
           : absl::ResourceExhaustedError("no tuning");
  // Insufficient memory next to the workspace: use the heuristics.
  if (!buffers.ok() && !absl::IsResourceExhausted(buffers.status())) {
    return buffers.status();
  }
  for (int p = 0; p < kNumProgramPasses; ++p) {
    const auto pass = static_cast<ProgramPass>(p);
    for (int op = 0; op < static_cast<int>(program.ops(pass).size()); ++op) {
      const bool timed = buffers.ok() && HasGemms(program.ops(pass)[op]);
      RETURN_IF_ERROR(
          executor->PlanOp(pass, op,
                           timed ? absl::MakeConstSpan(&buffers->table(), 1)
                                 : absl::Span<const BufferTable>(),
                           lane));
    }
  }
  return WaitFor(lane.stream, device.options.timeout_seconds,
                 "choosing GEMM algorithms");
}

}  // namespace

absl::StatusOr<StageExecutors> StageExecutors::Create(
    const BenchDevice& device, const ExecutionPlan& plan,
    const std::vector<int>& stages, const ExecutorOptions& options,
    GemmLibrary* gemms, const Lane& lane, bool tune) {
  StageExecutors all;
  for (const int stage : stages) {
    const auto& program = plan.programs[stage];
    auto& executor = all.executors_[program.get()];
    if (executor == nullptr) {
      executor = std::make_unique<StageExecutor>(program, options, gemms);
      RETURN_IF_ERROR(Plan(device, executor.get(), options, lane, tune));
    }
    all.by_stage_[stage] = executor.get();
  }
  return all;
}

}  // namespace weir::calibrate
