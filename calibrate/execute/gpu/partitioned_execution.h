// SPDX-License-Identifier: Apache-2.0
// Ranks that run concurrently, each on a GPU partition (execution_device.h:
// partitioned).
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_EXECUTION_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_EXECUTION_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "calibrate/execute/gpu/cuda_rank.h"
#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/gpu/partition.h"

namespace weir::calibrate {

class PartitionedRank;

class PartitionedExecution : public ExecutionDevice {
 public:
  // Returns InvalidArgument if there are more ranks than partitions,
  // ResourceExhausted if the ranks need more memory than the GPU has,
  // Unimplemented if it cannot be partitioned, and the errors of
  // calibrate/gpu/errors.h.
  static absl::StatusOr<std::unique_ptr<PartitionedExecution>> Open(
      const ExecutionPlan& plan, std::unique_ptr<BenchDevice> bench,
      const CudaExecutionOptions& options);
  ~PartitionedExecution() override;

  RankDevice* rank(int rank) override;
  bool concurrent() const override { return true; }
  absl::Status Start() override;
  const Provenance& provenance() const override { return provenance_; }
  std::string description() const override;

 private:
  friend class PartitionedRank;
  PartitionedExecution() = default;
  absl::Status OpenRanks(const ExecutionPlan& plan,
                         const CudaExecutionOptions& options);
  // Sets a warning if the blocks of all concurrent message copies do not fit.
  void CheckCopies(const ExecutionPlan& plan);

  std::unique_ptr<BenchDevice> bench_;
  Provenance provenance_;
  std::shared_ptr<EventPool> events_;
  std::unique_ptr<GpuPartitions> parts_;
  PinnedBlocks host_;
  std::string warning_;
  std::unique_ptr<RecordedEvent> started_;  // origin of seconds
  std::vector<std::unique_ptr<PartitionedRank>> ranks_;
};

// Returns the pairs of ranks, from and to, between which the schedule sends:
// neighboring stages, replicas of a stage, both ends of a tied table.
std::vector<std::pair<int, int>> PairsThatSend(const ExecutionPlan& plan);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_EXECUTION_H_
