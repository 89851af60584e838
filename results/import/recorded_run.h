// SPDX-License-Identifier: Apache-2.0
// The operations of a real training run, read from its traces.
#ifndef WEIR_RESULTS_IMPORT_RECORDED_RUN_H_
#define WEIR_RESULTS_IMPORT_RECORDED_RUN_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir::results {

enum class RecordedKind : uint8_t {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kSendForward,  // of an activation, to the next stage
  kReceiveForward,
  kSendBackward,  // of a gradient, to the previous stage
  kReceiveBackward,
  kWeightGather,       // all-gather over the replicas
  kGradientReduction,  // reduce-scatter or all-reduce over the replicas
  kNormReduction,      // of layer norms' gradients, over tensor ranks
  kTiedReduction,      // of a tied embedding's gradients, over two stages
  kGradientClip,       // norm over all workers
  kOptimizerStep,
  kGarbageCollection,
  kDispatch,  // of tokens to experts
  kCombine,   // of experts' outputs
};
inline constexpr int kNumRecordedKinds =
    static_cast<int>(RecordedKind::kCombine) + 1;

// Returns "forward", "gradient reduction", ...
absl::string_view NameOf(RecordedKind kind);

inline bool IsPass(RecordedKind kind) {
  return kind <= RecordedKind::kBackwardWeight;
}
// A send or receive between stages.
inline bool IsMessage(RecordedKind kind) {
  return kind >= RecordedKind::kSendForward &&
         kind <= RecordedKind::kReceiveBackward;
}
inline bool IsReceive(RecordedKind kind) {
  return kind == RecordedKind::kReceiveForward ||
         kind == RecordedKind::kReceiveBackward;
}
// Its time depends on the network, or on when the others of a group begin.
inline bool IsCommunication(RecordedKind kind) {
  return (kind >= RecordedKind::kSendForward &&
          kind <= RecordedKind::kGradientClip) ||
         kind >= RecordedKind::kDispatch;
}

// Limits of what is read, far above real runs; products fit into 32 bits.
inline constexpr int kMaxRecordedWorkers = 1 << 16;  // replicas, and ranks
inline constexpr int kMaxRecordedChunks = 1 << 12;
inline constexpr int kMaxRecordedNumber = 1 << 24;  // steps and microbatches
// Of starts and durations. Clocks count from 1970 at the earliest.
inline constexpr double kMaxRecordedSeconds = 1e10;

struct RecordedOperation {
  int32_t step = 0;  // number in the trace
  int32_t replica = 0;
  int32_t rank = 0;         // of the pipeline
  int32_t stage = -1;       // of all chunks; -1: not known
  int32_t microbatch = -1;  // -1: does not apply, or not known
  RecordedKind kind = RecordedKind::kForward;
  // From the start of its step; communication includes waiting for others.
  double start_seconds = 0, end_seconds = 0;

  double seconds() const { return end_seconds - start_seconds; }
};

// What was added to the times of a worker because its clock differed: the least
// and the most of all steps.
struct MovedClock {
  int32_t replica = 0, rank = 0;
  double least_seconds = 0, most_seconds = 0;
};

// Workers are pairs of replica and pipeline rank; of tensor-parallel ranks one
// is recorded.
struct RecordedRun {
  std::string label;   // the first file
  std::string format;  // "ByteDance timeline"
  int num_replicas = 0, num_ranks = 0, num_stages = 0;
  // GPUs of each worker, as far as the trace tells.
  int num_tensor_ranks = 1;
  // By step, replica, rank and start.
  std::vector<RecordedOperation> operations;
  // What was left out, repaired or assumed, in sentences.
  std::vector<std::string> notes;
  // Of the workers whose clocks were moved, by replica and rank.
  std::vector<MovedClock> moved_clocks;
  // Passes are recorded in several parts.
  bool in_parts = false;
  // Each worker counts from its own start of each step.
  bool has_clock_of_step = false;
  // Passes may start before those that they need have ended, whatever the
  // clocks: their times are those of launches, or of another rank.
  bool has_early_passes = false;
  // What weir import prints besides the result.
  std::string summary;
};

// The operations of one step.
struct RecordedStep {
  int32_t step = 0;
  const RecordedOperation* begin = nullptr;
  const RecordedOperation* end = nullptr;

  size_t size() const { return static_cast<size_t>(end - begin); }
  // From the first start to the last end.
  double seconds() const;
};

// Returns the steps of a run whose operations are sorted.
std::vector<RecordedStep> StepsOf(const RecordedRun& run);

// Returns the index of the step with the median time (the shorter of two).
int MedianStep(const std::vector<RecordedStep>& steps);

// Returns the numbers from 0 to below `end` that are not in `found`, up to 5 of
// them: "1, 3".
std::string MissingNumbers(const std::set<int64_t>& found, int64_t end);

// Sorts the operations, and checks and repairs them; notes what was done:
// - of operations that are recorded twice (all fields the same), one is kept;
// - steps in which passes or collectives of a worker are missing, in which a
//   worker has two passes of one kind, stage and microbatch at different times
//   (unless in_parts), or whose number of operations differs from most others',
//   are left out;
// - messages without microbatch get those of the passes that they serve, in
//   order; messages that serve none are left out, and those without their
//   counterpart are noted;
// - passes of a worker that overlap are noted (pass_times.h);
// - clocks that differ are repaired (clocks.h);
// - each step starts at 0.
// Returns InvalidArgument if no complete step is left, a worker is missing, all
// passes last 0 s, messages do not match the passes, a backward precedes its
// forward, or the clocks cannot be repaired.
absl::Status CleanRun(RecordedRun* run);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_RECORDED_RUN_H_
