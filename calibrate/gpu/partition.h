// SPDX-License-Identifier: Apache-2.0
// A card cut into equal parts that work at the same time: green contexts, each
// with multiprocessors of its own. All belong to the primary context, so that
// memory, events, modules and library handles are shared; only streams belong
// to a part, and all that is launched on a stream of a part stays on its
// multiprocessors. Memory, its bandwidth, the L2 cache, power and the queues of
// launches are the whole card's.
//
// The driver's entry points are looked up at run time (CUDA 12.5's and later),
// so that nothing links libcuda.
#ifndef WEIR_CALIBRATE_GPU_PARTITION_H_
#define WEIR_CALIBRATE_GPU_PARTITION_H_

#include <cuda.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/handles.h"

namespace weir {

struct GreenEntries;  // of the driver

// Some multiprocessors of the card.
class CardPartition {
 public:
  // What grids are sized by, and products (ProductSpec::num_multiprocessors:
  // cuBLASLt does not see the part that it runs on).
  int num_multiprocessors() const { return num_multiprocessors_; }
  // Does not wait for the default stream. Destroy it before the partition.
  // Can be called from several threads.
  absl::StatusOr<Stream> MakeStream() const;

 private:
  friend class CardPartitions;
  struct Destroy {
    const GreenEntries* entries;
    void operator()(CUgreenCtx context) const;
  };
  using Context = std::unique_ptr<CUgreenCtx_st, Destroy>;
  CardPartition(Context context, int num_multiprocessors)
      : context_(std::move(context)),
        num_multiprocessors_(num_multiprocessors) {}

  Context context_;
  int num_multiprocessors_;
};

class CardPartitions {
 public:
  // Parts of the largest equal size of which `num_parts` fit. What they leave
  // over is the part for copies: paced copies keep a multiprocessor busy while
  // they wait, which must not be one that a stage computes on. The largest size
  // that leaves nothing over, or fewer multiprocessors than asked for, or too
  // few for the driver to make a context of, is not taken: the next smaller one
  // is. An H200 (132, in steps of 8): 2 x 64, 4 x 32 or 8 x 16, and 4 for
  // copies.
  //
  // The device has its primary context (cudaSetDevice, cudaFree(nullptr)).
  // Unimplemented: the driver is older than CUDA 12.5, or the card cannot be
  // cut, and it is named. InvalidArgument: so many parts do not fit, and how
  // many do.
  static absl::StatusOr<std::unique_ptr<CardPartitions>> Create(
      int device, int num_parts, int min_copy_multiprocessors = 1);
  ~CardPartitions();

  int size() const { return static_cast<int>(parts_.size()); }
  const CardPartition& part(int index) const { return parts_[index]; }
  const CardPartition& copies() const { return copies_.front(); }
  // Of the whole card.
  int num_multiprocessors() const { return num_multiprocessors_; }

 private:
  CardPartitions();
  absl::Status Split(int device, int num_parts, int min_copy_multiprocessors);
  absl::StatusOr<CardPartition> Make(int device, CUdevResource* resource) const;
  absl::Status Take(int device, int num_parts, int size,
                    int min_copy_multiprocessors, CUdevResource* all);

  std::unique_ptr<GreenEntries> entries_;
  int num_multiprocessors_ = 0;
  std::vector<CardPartition> parts_, copies_;  // one part for copies
};

// Streams of different parts must not wait for each other in one of the card's
// queues of launches: as many as there can be (CUDA_DEVICE_MAX_CONNECTIONS=32,
// unless it is set). Call it before anything else of CUDA.
void AskForManyQueues();

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_PARTITION_H_
