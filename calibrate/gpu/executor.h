// SPDX-License-Identifier: Apache-2.0
// Runs the operations of a stage on device memory that others provide: one
// microbatch or many, on any stream, with nothing allocated on the way. It
// knows nothing of measuring.
#ifndef WEIR_CALIBRATE_GPU_EXECUTOR_H_
#define WEIR_CALIBRATE_GPU_EXECUTOR_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "calibrate/gpu/host/attention_products.h"
#include "calibrate/gpu/kernels/kernels.h"
#include "calibrate/gpu/product.h"
#include "calibrate/stage/stage_program.h"

namespace weir {

// Where each of a program's buffers lies, 256-byte aligned; null: not there at
// this moment. One table per microbatch, with the same weights in all.
using BufferTable = std::vector<void*>;

// Where and with what the work is done: one lane per stream. The workspace is
// for products and kernels.
struct Lane {
  cudaStream_t stream = nullptr;
  Workspace workspace;
};

struct ExecutorOptions {
  ElementFormat format = ElementFormat::kBf16;  // the stage's 16-bit format
  int num_multiprocessors = 0;                  // that the stream may use
  bool is_partition = false;                    // they are a part of the GPU
};

// What differs from one run of an operation to the next.
struct OpVariation {
  uint64_t seed = 0;               // XORed to the dropout's
  const AdamStep* adam = nullptr;  // in the place of the operation's
};

class StageExecutor {
 public:
  // The library outlives the executor.
  StageExecutor(std::shared_ptr<const StageProgram> program,
                const ExecutorOptions& options, ProductLibrary* library);

  // Chooses the algorithms of an operation, or of all of a pass, before it is
  // run; timed on the tables in turn (which then holds other results), or by
  // heuristics alone where there are none. Unimplemented: this GPU or the
  // library cannot do it.
  absl::Status PlanOp(StagePass pass, int op,
                      absl::Span<const BufferTable> tune_on, const Lane& lane);
  absl::Status PlanPass(StagePass pass, absl::Span<const BufferTable> tune_on,
                        const Lane& lane);

  // Launches it and returns; can be captured into a graph. Internal names an
  // operation that is not planned, or a buffer that it needs and that is not
  // there.
  absl::Status RunOp(StagePass pass, int op, const BufferTable& buffers,
                     const Lane& lane, const OpVariation& variation = {}) const;
  absl::Status RunPass(StagePass pass, const BufferTable& buffers,
                       const Lane& lane) const;

  // What was chosen for a product; empty for other kernels.
  std::string algorithm(StagePass pass, int op) const;
  const StageProgram& program() const { return *program_; }

 private:
  struct PlannedOp {
    bool planned = false;
    const Product* product = nullptr;
    // The library has no such epilogue: GELU by a kernel of its own.
    bool composed = false;
    // Of unfused attention: its products, and what runs each.
    AttentionProducts attention;
    std::vector<const Product*> before, after;
  };
  // Of inputs and outputs in their order; null where there is none.
  struct Pointers {
    std::array<void*, 8> inputs{}, outputs{};
  };

  const StageOp& OpOf(StagePass pass, int op) const {
    return program_->ops(pass)[op];
  }
  ElementFormat FormatOf(const TensorView& view) const {
    return program_->buffers[view.buffer].format;
  }
  absl::StatusOr<Pointers> PointersOf(const StageOp& op,
                                      const BufferTable& buffers) const;
  ProductSpec SpecOf(const StageOp& op) const;
  absl::Status PlanProduct(const StageOp& op,
                           absl::Span<const BufferTable> tune_on,
                           const Lane& lane, PlannedOp* planned);
  absl::Status PlanAttention(const StageOp& op,
                             absl::Span<const BufferTable> tune_on,
                             const Lane& lane, PlannedOp* planned);
  absl::Status RunProduct(const StageOp& op, const PlannedOp& planned,
                          const Pointers& pointers, const Lane& lane) const;
  absl::Status RunGelu(const StageOp& op, const Pointers& pointers,
                       const Lane& lane) const;
  absl::Status RunAttention(const StageOp& op, const PlannedOp& planned,
                            const Pointers& pointers, const Lane& lane) const;
  ProductOperands OperandsOf(const AttentionProduct& product,
                             const Pointers& pointers) const;
  Launch LaunchOn(const Lane& lane) const;

  std::shared_ptr<const StageProgram> program_;
  ExecutorOptions options_;
  ProductLibrary* library_;
  std::array<std::vector<PlannedOp>, kNumStagePasses> planned_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_EXECUTOR_H_
