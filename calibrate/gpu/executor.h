// SPDX-License-Identifier: Apache-2.0
// Runs the operations of a stage on caller-provided device memory, for one or
// many microbatches, on any stream, without allocating. Independent of
// measuring. Functions return the errors of errors.h.
#ifndef WEIR_CALIBRATE_GPU_EXECUTOR_H_
#define WEIR_CALIBRATE_GPU_EXECUTOR_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/gpu/gemm.h"
#include "calibrate/gpu/host/attention_gemms.h"
#include "calibrate/gpu/kernels/kernels.h"

namespace weir::calibrate {

// Address of each of a program's buffers, 256-byte aligned; null: currently not
// allocated. One table per microbatch; all have the same weights.
using BufferTable = std::vector<void*>;

// A stream and the workspace for GEMMs and kernels on it.
struct Lane {
  cudaStream_t stream = nullptr;
  Workspace workspace;
};

struct ExecutorOptions {
  ElementFormat format = ElementFormat::kBf16;  // the stage's 16-bit format
  int num_multiprocessors = 0;                  // available to the stream
  bool is_partition = false;  // the stream uses a partition of the GPU
};

// Differences between runs of an operation.
struct OpVariation {
  uint64_t seed = 0;               // XORed to the dropout's
  const AdamStep* adam = nullptr;  // replaces the operation's
};

class StageExecutor {
 public:
  // Requires: the library outlives the executor.
  StageExecutor(std::shared_ptr<const StageProgram> program,
                const ExecutorOptions& options, GemmLibrary* library);

  // Chooses the algorithms of an operation, or of all operations of a pass,
  // before they are run: timed on the tables in turn (whose outputs are
  // overwritten), or by heuristics alone if `tune_on` is empty. Returns
  // Unimplemented if this GPU or the library does not support it.
  absl::Status PlanOp(ProgramPass pass, int op,
                      absl::Span<const BufferTable> tune_on, const Lane& lane);
  absl::Status PlanPass(ProgramPass pass, absl::Span<const BufferTable> tune_on,
                        const Lane& lane);

  // Launches the operation or pass and returns; can be captured into a graph.
  // Returns Internal, with the operation or buffer, if an operation is not
  // planned or a required buffer is null.
  absl::Status RunOp(ProgramPass pass, int op, const BufferTable& buffers,
                     const Lane& lane, const OpVariation& variation = {}) const;
  absl::Status RunPass(ProgramPass pass, const BufferTable& buffers,
                       const Lane& lane) const;

  // Returns the algorithm chosen for a GEMM; empty for other kernels.
  std::string algorithm(ProgramPass pass, int op) const;
  const StageProgram& program() const { return *program_; }

 private:
  struct PlannedOp {
    bool planned = false;
    const Gemm* gemm = nullptr;
    // The library lacks the epilogue: GELU runs in a separate kernel.
    bool composed = false;
    // For unfused attention: its GEMMs, and the planned GEMMs that run them.
    AttentionGemms attention;
    std::vector<const Gemm*> before, after;
  };
  // Inputs and outputs in order; null if absent.
  struct Pointers {
    std::array<void*, 8> inputs{}, outputs{};
  };

  const StageOp& OpOf(ProgramPass pass, int op) const {
    return program_->ops(pass)[op];
  }
  ElementFormat FormatOf(const TensorView& view) const {
    return program_->buffers[view.buffer].format;
  }
  absl::StatusOr<Pointers> PointersOf(const StageOp& op,
                                      const BufferTable& buffers) const;
  GemmSpec SpecOf(const StageOp& op) const;
  absl::Status PlanGemm(const StageOp& op,
                        absl::Span<const BufferTable> tune_on, const Lane& lane,
                        PlannedOp* planned);
  absl::Status PlanAttention(const StageOp& op,
                             absl::Span<const BufferTable> tune_on,
                             const Lane& lane, PlannedOp* planned);
  absl::Status RunGemm(const StageOp& op, const PlannedOp& planned,
                       const Pointers& pointers, const Lane& lane) const;
  absl::Status RunGelu(const StageOp& op, const Pointers& pointers,
                       const Lane& lane) const;
  absl::Status RunAttention(const StageOp& op, const PlannedOp& planned,
                            const Pointers& pointers, const Lane& lane) const;
  GemmOperands OperandsOf(const AttentionGemm& gemm,
                          const Pointers& pointers) const;
  Launch LaunchOn(const Lane& lane) const;

  std::shared_ptr<const StageProgram> program_;
  ExecutorOptions options_;
  GemmLibrary* library_;
  std::array<std::vector<PlannedOp>, kNumProgramPasses> planned_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_EXECUTOR_H_
