// SPDX-License-Identifier: Apache-2.0
// Times of checkpoints.
#ifndef WEIR_PLAN_GOODPUT_CHECKPOINT_H_
#define WEIR_PLAN_GOODPUT_CHECKPOINT_H_

#include "absl/status/statusor.h"
#include "plan/goodput/reliability.h"
#include "scenarios/scenario.h"

namespace weir::plan {

enum class CheckpointMode {
  kSync,      // training waits until the checkpoint is in storage
  kAsync,     // training waits for copies to host memory
  kInMemory,  // the same; hosts exchange copies (Gemini, SOSP 2023)
};

struct CheckpointSpec {
  CheckpointMode mode = CheckpointMode::kSync;
  double bytes = 0;  // of the whole job
  // Bandwidth of the storage, shared by the whole job, for writing and reading.
  double storage_bytes_per_second = 0;
  // Bandwidth from a GPU to the memory of its host. All GPUs copy equal parts.
  double snapshot_bytes_per_second = 10e9;
  // Between hosts, per host, with kInMemory.
  double peer_bytes_per_second = 25e9;
};

struct CheckpointTimes {
  double stall_seconds = 0;  // of training
  // From the start of the stall until a failure no longer loses the work before
  // it; at least stall_seconds.
  double safe_seconds = 0;
  double load_seconds = 0;  // after a failure
};

// kSync: bytes / storage for everything. kAsync: the stall is the copy to the
// host; safe after copy and storage. kInMemory: safe after the copy and the
// exchange of each host's part with another host, from which it is loaded; a
// failure stops one host at most, so one copy always remains.
CheckpointTimes TimesOfCheckpoint(const CheckpointSpec& spec,
                                  const JobSize& job);

// Returns the bytes of weights, master weights and optimizer states of all
// parameters, each once. Returns InvalidArgument with given costs (the model is
// unknown) and with low-rank adapters (what is saved depends on the program).
absl::StatusOr<double> CheckpointBytes(
    const scenarios::ResolvedScenario& scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_CHECKPOINT_H_
