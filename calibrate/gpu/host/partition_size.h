// SPDX-License-Identifier: Apache-2.0
// Sizes of the partitions of a GPU, and of the partition that copies messages
// between them.
#ifndef WEIR_CALIBRATE_GPU_HOST_PARTITION_SIZE_H_
#define WEIR_CALIBRATE_GPU_HOST_PARTITION_SIZE_H_

namespace weir::calibrate {

// Bytes per second that one multiprocessor copies with the paced copy kernel.
// Assumed, not yet measured: four multiprocessors of a recent GPU copy 250 GB/s
// together.
inline constexpr double kCopyBytesPerSecond = 62.5e9;
// Bytes per second of a link in the cluster preset gpu-partitions: the rate of
// one block of the paced copy kernel.
inline constexpr double kPartitionLinkBytesPerSecond = 10e9;
// Partitions have a multiple of this number of multiprocessors, at least one
// (compute capability 9.0 and later; 2 before, with a minimum of 4 from 8.0).
inline constexpr int kPartitionStep = 8;

// Returns the smallest number of multiprocessors that can copy on all links of
// a ring of `num_partitions` ranks, both directions, at the same time.
int MinCopyMultiprocessors(int num_partitions);

struct PartitionSize {
  int num_multiprocessors = 0;  // of a partition; 0: they do not fit
  int num_for_copies = 0;       // the rest
};
// Returns the largest partitions that leave MinCopyMultiprocessors().
// GpuPartitions::Create() may make them smaller if the driver refuses a context
// for the rest, and larger if it divides in smaller steps.
PartitionSize SizeOfPartitions(int num_multiprocessors, int num_partitions,
                               int step = kPartitionStep);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_PARTITION_SIZE_H_
