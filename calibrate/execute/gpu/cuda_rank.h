// SPDX-License-Identifier: Apache-2.0
// Common base of replay ranks that use the whole GPU in turn or a partition
// each: operations, optimizers and uploads on a stream and in a memory pool.
// Errors are those of rank_device.h.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_CUDA_RANK_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_CUDA_RANK_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/execute/gpu/event_pool.h"
#include "calibrate/execute/gpu/pinned_memory.h"
#include "calibrate/execute/gpu/stage_executors.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/gpu/bench_device.h"
#include "calibrate/gpu/memory_pool.h"

namespace weir::calibrate {

// Resources of a rank; all of them outlive the rank.
struct RankTools {
  const ExecutionPlan* plan = nullptr;
  int rank = 0;
  int device = 0;
  Lane lane;
  ExecutorOptions options;
  const StageExecutors* executors = nullptr;
  std::shared_ptr<EventPool> events;
};

class CudaRank : public RankDevice {
 public:
  absl::Status Run(int stage, ProgramPass pass, int op, uint64_t seed,
                   const Buffers& buffers) override;
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights, const Buffers& buffers) override;
  absl::Status Estimate(int stage, const StageOptimizer& optimizer, int step,
                        double distance, const void* weights,
                        const void* average, const Buffers& buffers,
                        void* estimate) override;
  absl::Status Average(int stage, double decay, const void* old_weights,
                       const void* new_weights, void* average) override;
  absl::Status Add(int64_t num_elements, const void* addend,
                   void* sum) override;
  absl::Status Clear(int64_t num_elements, ElementFormat format,
                     void* memory) override;
  absl::Status Upload(absl::Span<const double> values, ElementFormat format,
                      void* to) override;
  absl::StatusOr<std::vector<double>> Download(const void* from,
                                               int64_t num_elements,
                                               ElementFormat format) override;
  absl::StatusOr<double> PeakBytes() override;
  absl::Status ResetPeak() override;

 protected:
  explicit CudaRank(RankTools tools);
  // Completes the construction: creates the pool, primed with `primed_bytes`,
  // and the upload ring.
  absl::Status Open(int64_t pool_bytes, int64_t primed_bytes);
  // Closes the pool after all memory has been freed, while the stream exists.
  // Returns when the GPU has the pool's memory again, since the next replay
  // needs it.
  void ClosePool();

  // Makes the calling thread work for this rank, with the rank's memory on the
  // GPU.
  virtual absl::Status MakeCurrent() = 0;
  // Marks what is enqueued next as this rank's work. `what` is used in
  // messages; `num_launches` launches are expected.
  virtual absl::Status Begin(int stage, ProgramPass pass, int num_launches) = 0;
  // Ends the work begun by Begin().
  virtual absl::Status End() = 0;
  // Returns the address of memory, valid until the next call of any rank's
  // MakeCurrent().
  virtual absl::StatusOr<void*> Locate(const void* memory) = 0;

  absl::Status Explain(const absl::Status& status) const;
  absl::Status UseDevice() const;
  absl::Status Wait(absl::string_view what) const;
  std::string name() const;  // "rank 3"
  double timeout_seconds() const { return tools_.plan->timeout_seconds; }
  Launch launch() const;
  const RankTools& tools() const { return tools_; }
  MemoryPool* pool() const { return pool_.get(); }
  cudaStream_t stream() const { return tools_.lane.stream; }

 private:
  // Indices of a stage's weights, gradients and optimizer state.
  struct Parts {
    int weights = -1, gradients = -1, state = -1;
    int64_t num_elements = 0;
  };
  struct Located {
    float *gradients, *master, *first, *second;
  };
  static Parts PartsOf(const StageProgram& program);
  absl::StatusOr<Located> LocateState(const Parts& parts,
                                      const Buffers& buffers);
  absl::Status RunOp(int stage, ProgramPass pass, int op,
                     const Buffers& buffers, const OpVariation& variation);
  absl::Status RunAdam(int stage, const StageOptimizer& optimizer, int step,
                       const Buffers& buffers);

  const RankTools tools_;
  std::vector<Parts> parts_;  // [stage]
  std::unique_ptr<MemoryPool> pool_;
  std::optional<UploadRing> uploads_;
  Buffers located_;  // addresses for the running operation
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_CUDA_RANK_H_
