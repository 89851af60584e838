// SPDX-License-Identifier: Apache-2.0
// The ranks of a replay (calibrate/replay/rank_device.h) on one GPU. No CUDA
// header is needed to use it.
//
// Serial: each rank in turn has all of the card. Moments are seconds of work:
// what it takes between two events on the stream, measured from where the card
// really begins with it. Copies run ahead of the first event, so that launches
// are hidden, as in steady work, unless a piece of work is launched for longer
// than it runs (description() says how many were launched too late for that to
// be certain). These copies leave nothing of the rank's data in the L2 cache,
// as in a calibration. Memory taken or given back, uploads, downloads, messages
// and the making of room are not in a time; what ranks and messages then would
// do at the same time is for the runner's clocks (logical_device.h). A copy to
// or from the host lasts as long as it took alone.
//
// Ranks that the card cannot hold all at once are kept in pinned host memory
// while they are not at work, the least recently used first. What Take returns
// is then no address of the card, but the runner may still add to it.
//
// Partitioned: each rank has a part of the card's multiprocessors, a stream, a
// memory pool of its share of the card, and all ranks work at the same time.
// Moments are events. Nothing waits for the GPU but Download, Finish, and an
// Upload of more than some MiB. A message is copied by a kernel at its link's
// pace, on multiprocessors that no rank has where some are left.
#ifndef WEIR_CALIBRATE_GPU_REPLAY_DEVICE_H_
#define WEIR_CALIBRATE_GPU_REPLAY_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/replay/rank_device.h"

namespace weir {

struct CudaReplayOptions {
  int device = 0;  // as CUDA counts those it sees
  // 0: serial. Else 2, 4 or 8 parts of the card, at least a part for each rank.
  int num_partitions = 0;
  int num_candidates = 8;  // algorithms timed per product; 1: the heuristics'
  int64_t workspace_bytes = 32LL << 20;  // of products and kernels, a rank
  // Of a rank's memory pool; 0: serial, the card's; partitioned, its share of
  // what is free.
  int64_t pool_bytes = 0;
  std::string nvml = "libnvidia-ml.so.1";  // clocks, in the provenance
};

// Takes the card and chooses the products' algorithms. The plan outlives the
// device; its timeout bounds every wait. Call it before anything else of CUDA:
// it sets CUDA_MODULE_LOADING and CUDA_DEVICE_MAX_CONNECTIONS unless they are
// set.
//
// FailedPrecondition, one line: no driver or GPU (as OpenCudaBench), or a card
// that cannot be cut into so many parts. Unimplemented: what the kernels do not
// do. ResourceExhausted: not even a rank's workspace fits.
//
// DeadlineExceeded from any method of a rank: the GPU hangs. Write down what
// there is and leave by std::_Exit.
absl::StatusOr<std::unique_ptr<ReplayDevice>> OpenCudaReplayDevice(
    const ReplayPlan& plan, const CudaReplayOptions& options);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_REPLAY_DEVICE_H_
