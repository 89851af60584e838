// SPDX-License-Identifier: Apache-2.0
// What a replay needs of the hardware: one RankDevice for each rank of the
// pipeline. host_device.h implements it with threads and doubles, calibrate/gpu
// with streams of a GPU; the runner knows neither.
//
// Work of a rank is in order, as on a stream: a call may return before its work
// has ended. Memory is what a BufferTable holds: on the host every element is a
// double whatever its format, on a GPU it has its format.
#ifndef WEIR_CALIBRATE_REPLAY_RANK_DEVICE_H_
#define WEIR_CALIBRATE_REPLAY_RANK_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/provenance.pb.h"
#include "calibrate/replay/replay_plan.h"
#include "calibrate/stage/stage_program.h"

namespace weir {

// [index into StageProgram::buffers]; null: not there at this moment. One for
// each microbatch in each stage.
using Buffers = std::vector<void*>;

// A moment in the work of a rank, or of a copy. Cheap to copy, known to all
// ranks; default: the beginning of everything.
class Moment {
 public:
  virtual ~Moment() = default;
};
using MomentPtr = std::shared_ptr<const Moment>;

// A copy that has been queued: when it moves its first byte, and when all of it
// is there.
struct CopyMoments {
  MomentPtr begin, end;
};

// Of one microbatch: num_elements elements of Send.
struct CopyPiece {
  const void* from = nullptr;
  void* into = nullptr;
};

// Calls come from one thread at a time.
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  // Memory of this rank, by its program order. ResourceExhausted names `what`
  // and the rank. New memory holds NaN on the host, anything on a GPU.
  virtual absl::StatusOr<void*> Take(int64_t num_elements, ElementFormat format,
                                     absl::string_view what) = 0;
  virtual absl::Status GiveBack(void* memory) = 0;
  // An element within memory that was taken.
  virtual void* ElementAt(void* memory, int64_t index, ElementFormat format) {
    return static_cast<char*>(memory) + index * BytesOf(format);
  }

  // One operation of a pass. `seed` makes the dropout of this microbatch its
  // own.
  virtual absl::Status Run(int stage, StagePass pass, int op, uint64_t seed,
                           const Buffers& buffers) = 0;
  // One update: buffers hold weights (where the new version goes; the old one
  // is in `old_weights`), gradients (cleared behind it) and optimizer state.
  // `step` counts from 1. Unimplemented: an optimizer that it does not have.
  virtual absl::Status Update(int stage, const StageOptimizer& optimizer,
                              int step, const void* old_weights,
                              const Buffers& buffers) = 0;
  // estimate = weights + distance x direction, the direction being that of the
  // optimizer's next step by its state after `step` updates, or, where
  // `average` is given, the moving average of past updates.
  virtual absl::Status Estimate(int stage, const StageOptimizer& optimizer,
                                int step, double distance, const void* weights,
                                const void* average, const Buffers& buffers,
                                void* estimate) = 0;
  // average = decay average + (1 - decay) (new_weights - old_weights)
  virtual absl::Status Average(int stage, double decay, const void* old_weights,
                               const void* new_weights, void* average) = 0;
  // sum += addend, fp32: gradients of copies of a stage, of tied embeddings.
  virtual absl::Status Add(int64_t num_elements, const void* addend,
                           void* sum) = 0;
  virtual absl::Status Clear(int64_t num_elements, ElementFormat format,
                             void* memory) = 0;

  // To and from the host, at once: these wait.
  virtual absl::Status Upload(absl::Span<const double> values,
                              ElementFormat format, void* to) = 0;
  virtual absl::StatusOr<std::vector<double>> Download(
      const void* from, int64_t num_elements, ElementFormat format) = 0;

  // The moment when all work of this rank so far has ended.
  virtual absl::StatusOr<MomentPtr> Now() = 0;
  // What follows on this rank begins after that moment.
  virtual absl::Status After(const MomentPtr& moment) = 0;

  // Copies to memory of another rank, beside this rank's work, over `link`, the
  // bytes of one message of a pair of ranks after those of the other, not
  // before `ready`. All pieces go as one message: one latency. With `bits` > 0
  // the values of each piece are rounded to so many bits on their way. `into`
  // was taken by `to` before anything that `ready` comes after: there is
  // nothing else to wait for. Both sides stay as they are until `end` has
  // passed.
  virtual absl::StatusOr<CopyMoments> Send(RankDevice* to,
                                           absl::Span<const CopyPiece> pieces,
                                           int64_t num_elements,
                                           ElementFormat format,
                                           const LinkSpec& link, int bits,
                                           const MomentPtr& ready) = 0;
  // Memory to the host and back, beside this rank's work, not before `ready`
  // (all of them); each direction is a channel of its own. `slot` is the
  // caller's name for what is kept.
  virtual absl::StatusOr<CopyMoments> ToHost(int64_t slot, int64_t num_elements,
                                             ElementFormat format,
                                             const MomentPtr& ready,
                                             const void* from) = 0;
  virtual absl::StatusOr<CopyMoments> FromHost(
      int64_t slot, int64_t num_elements, ElementFormat format,
      absl::Span<const MomentPtr> ready, void* into) = 0;

  // Waits for all work of this rank. DeadlineExceeded after the plan's timeout.
  virtual absl::Status Finish() = 0;
  // Seconds since the device's Start(); the moment must have passed.
  virtual absl::StatusOr<double> SecondsOf(const MomentPtr& moment) = 0;
  // Has it passed? Never waits: what a watchdog asks.
  virtual bool HasPassed(const MomentPtr& moment) = 0;

  // Most bytes in use at a time since the last reset, as the device's own
  // allocator says; 0 where it has none.
  virtual absl::StatusOr<double> PeakBytes() = 0;
  virtual absl::Status ResetPeak() = 0;
};

// A set of ranks.
class ReplayDevice {
 public:
  virtual ~ReplayDevice() = default;
  virtual RankDevice* rank(int rank) = 0;
  // Ranks really work at the same time; else one after the other, each with all
  // of the hardware (serial replay).
  virtual bool concurrent() const = 0;
  // Where SecondsOf counts from. No work may be under way.
  virtual absl::Status Start() = 0;
  // The replay ends: whoever waits in a call comes back soon, with any error.
  // From another thread than the ranks'.
  virtual void Cancel() {}
  virtual const Provenance& provenance() const = 0;
  virtual std::string description() const = 0;  // "4 partitions of 32 of ..."
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_RANK_DEVICE_H_
