// SPDX-License-Identifier: Apache-2.0
// Divides a GPU into equal partitions that work concurrently: green contexts,
// each with its own multiprocessors. All belong to the primary context, so
// memory, events, modules and library handles are shared; only streams belong
// to a partition, and work launched on them stays on its multiprocessors.
// Memory, its bandwidth, the L2 cache, power and the launch queues are those of
// the whole GPU.
//
// The driver's entry points are looked up at run time (CUDA 12.5 and later), so
// that nothing links libcuda.
#ifndef WEIR_CALIBRATE_GPU_PARTITION_H_
#define WEIR_CALIBRATE_GPU_PARTITION_H_

#include <cuda.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

struct GreenEntries;  // entry points of the driver

// A set of multiprocessors of the GPU.
class GpuPartition {
 public:
  // Determines the size of grids and GEMMs (GemmSpec::num_multiprocessors),
  // since cuBLASLt does not know the partition that it runs on.
  int num_multiprocessors() const { return num_multiprocessors_; }
  // Creates a stream that does not wait for the default stream. Destroy it
  // before the partition. Thread-safe. Returns the errors of the driver.
  absl::StatusOr<Stream> MakeStream() const;

 private:
  friend class GpuPartitions;
  struct Destroy {
    const GreenEntries* entries;
    void operator()(CUgreenCtx context) const;
  };
  using Context = std::unique_ptr<CUgreenCtx_st, Destroy>;
  GpuPartition(Context context, int num_multiprocessors)
      : context_(std::move(context)),
        num_multiprocessors_(num_multiprocessors) {}

  Context context_;
  int num_multiprocessors_;
};

class GpuPartitions {
 public:
  // Creates `num_parts` partitions of the largest equal size that fits. The
  // remaining multiprocessors form the partition for copies: paced copies keep
  // a multiprocessor busy while they wait, which must not belong to a stage's
  // partition. The size is reduced if it leaves no multiprocessors, fewer than
  // `min_copy_multiprocessors`, or too few for the driver to create a context.
  // 132 multiprocessors in steps of 8 yield 2 x 64, 4 x 32 or 8 x 16, and 4 for
  // copies.
  //
  // Requires: the device has its primary context (cudaSetDevice,
  // cudaFree(nullptr)). Returns Unimplemented if the driver is older than CUDA
  // 12.5 or the GPU, which is named, cannot be partitioned; InvalidArgument,
  // with the number that fits, for too many partitions.
  static absl::StatusOr<std::unique_ptr<GpuPartitions>> Create(
      int device, int num_parts, int min_copy_multiprocessors = 1);
  ~GpuPartitions();

  int size() const { return static_cast<int>(parts_.size()); }
  const GpuPartition& part(int index) const { return parts_[index]; }
  const GpuPartition& copies() const { return copies_.front(); }
  // Number of multiprocessors of the whole GPU.
  int num_multiprocessors() const { return num_multiprocessors_; }

 private:
  GpuPartitions();
  absl::Status Split(int device, int num_parts, int min_copy_multiprocessors);
  absl::StatusOr<GpuPartition> Make(int device, CUdevResource* resource) const;
  absl::Status CutParts(int device, int num_parts, int size,
                        int min_copy_multiprocessors, CUdevResource* all);

  std::unique_ptr<GreenEntries> entries_;
  int num_multiprocessors_ = 0;
  std::vector<GpuPartition> parts_, copies_;  // a single partition for copies
};

// Requests the maximum number of launch queues (CUDA_DEVICE_MAX_CONNECTIONS=32,
// unless it is set), so that streams of different partitions do not wait for
// each other in one queue. Must precede all other uses of CUDA.
void RequestManyQueues();

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_PARTITION_H_
