// SPDX-License-Identifier: Apache-2.0
// The hardware interface of a replay: one RankDevice per rank of the pipeline.
// host_device.h implements it with threads and doubles, calibrate/gpu with GPU
// streams; the runner depends on neither.
//
// Work of a rank is in order, as on a stream: a call may return before its work
// has ended. A Buffers table points to memory: on the host every element is a
// double regardless of its format, on a GPU it has its format. Functions return
// ResourceExhausted if there is not enough memory, DeadlineExceeded after the
// plan's timeout, Cancelled after Cancel(), Internal for misuse, and on a GPU
// the errors of calibrate/gpu/errors.h.
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_DEVICE_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/execute/execution_plan.h"
#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::calibrate {

// [index into StageProgram::buffers]; null: currently not allocated. There is
// one table per microbatch and stage.
using Buffers = std::vector<void*>;

// An event in the work of a rank, or of a copy. Cheap to copy and valid on all
// ranks; null: before all work.
class RankEvent {
 public:
  virtual ~RankEvent() = default;
};
using RankEventPtr = std::shared_ptr<const RankEvent>;

// A queued copy: the events at which it moves its first byte and is complete.
struct CopyEvents {
  RankEventPtr begin, end;
};

// `num_elements` elements of one microbatch, see Send().
struct CopyPiece {
  const void* from = nullptr;
  void* into = nullptr;
};

// Requires: calls come from one thread at a time.
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  // Allocates memory of this rank, in its program order. Returns
  // ResourceExhausted, with `what` and the rank, if there is not enough. New
  // memory holds NaN on the host, arbitrary values on a GPU.
  virtual absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                               ElementFormat format,
                                               absl::string_view what) = 0;
  virtual absl::Status FreeMemory(void* memory) = 0;
  // Returns the address of an element within allocated memory.
  virtual void* ElementAt(void* memory, int64_t index, ElementFormat format) {
    return static_cast<char*>(memory) + index * BytesOf(format);
  }

  // Runs one operation of a pass. `seed` distinguishes the dropout of this
  // microbatch.
  virtual absl::Status Run(int stage, ProgramPass pass, int op, uint64_t seed,
                           const Buffers& buffers) = 0;
  // Runs one update. `buffers` hold weights (destination of the new version;
  // the old one is in `old_weights`), gradients (cleared afterwards) and
  // optimizer state. `step` counts from 1. Returns Unimplemented for an
  // unsupported optimizer.
  virtual absl::Status Update(int stage, const StageOptimizer& optimizer,
                              int step, const void* old_weights,
                              const Buffers& buffers) = 0;
  // Computes estimate = weights + distance x direction, where the direction is
  // the optimizer's next step from its state after `step` updates or, if
  // `average` is given, the moving average of past updates.
  virtual absl::Status Estimate(int stage, const StageOptimizer& optimizer,
                                int step, double distance, const void* weights,
                                const void* average, const Buffers& buffers,
                                void* estimate) = 0;
  // Computes average = decay average + (1 - decay) (new_weights - old_weights).
  virtual absl::Status Average(int stage, double decay, const void* old_weights,
                               const void* new_weights, void* average) = 0;
  // Computes sum += addend in fp32: gradients of replicas of a stage, or of
  // tied embeddings.
  virtual absl::Status Add(int64_t num_elements, const void* addend,
                           void* sum) = 0;
  virtual absl::Status Clear(int64_t num_elements, ElementFormat format,
                             void* memory) = 0;

  // Copy to and from the host; these wait for completion.
  virtual absl::Status Upload(absl::Span<const double> values,
                              ElementFormat format, void* to) = 0;
  virtual absl::StatusOr<std::vector<double>> Download(
      const void* from, int64_t num_elements, ElementFormat format) = 0;

  // Returns the event at which all work of this rank so far has ended.
  virtual absl::StatusOr<RankEventPtr> Now() = 0;
  // Delays subsequent work of this rank until that event.
  virtual absl::Status WaitForEvent(const RankEventPtr& event) = 0;

  // Copies to memory of another rank over `link`, overlapped with this rank's
  // work and not before `ready`. The bytes of messages between the same pair of
  // ranks are transferred one message after the other. All pieces form one
  // message with one latency. With `bits` > 0 the values of each piece are
  // rounded to that many bits. Requires: `to` has allocated `into` before
  // anything that `ready` follows, so that no other wait is needed; both sides
  // stay unchanged until `end`.
  virtual absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                          absl::Span<const CopyPiece> pieces,
                                          int64_t num_elements,
                                          ElementFormat format,
                                          const LinkSpec& link, int bits,
                                          const RankEventPtr& ready) = 0;
  // Copies memory to the host and back, overlapped with this rank's work and
  // not before `ready` (all of them); each direction is a separate channel.
  // `slot` is the caller's key of the saved data.
  virtual absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t num_elements,
                                            ElementFormat format,
                                            const RankEventPtr& ready,
                                            const void* from) = 0;
  virtual absl::StatusOr<CopyEvents> FromHost(
      int64_t slot, int64_t num_elements, ElementFormat format,
      absl::Span<const RankEventPtr> ready, void* into) = 0;

  // Waits for all work of this rank. Returns DeadlineExceeded after the plan's
  // timeout.
  virtual absl::Status Finish() = 0;
  // Returns seconds since the device's Start(). Requires: the event has passed.
  virtual absl::StatusOr<double> SecondsOf(const RankEventPtr& event) = 0;
  // Returns true if the event has passed. Never waits; used by watchdogs.
  virtual bool HasPassed(const RankEventPtr& event) = 0;

  // Returns the peak bytes since the last reset according to the device's own
  // allocator; 0 if it has none.
  virtual absl::StatusOr<double> PeakBytes() = 0;
  virtual absl::Status ResetPeak() = 0;
};

// A set of ranks.
class ExecutionDevice {
 public:
  virtual ~ExecutionDevice() = default;
  virtual RankDevice* rank(int rank) = 0;
  // Returns true if ranks run concurrently; otherwise they run one at a time,
  // each with all of the hardware (serial replay).
  virtual bool concurrent() const = 0;
  // Sets the origin of SecondsOf(). Requires: no work is in flight.
  virtual absl::Status Start() = 0;
  // Ends the replay: waiting calls return soon, with any error. Called from
  // another thread than the ranks'.
  virtual void Cancel() {}
  virtual const Provenance& provenance() const = 0;
  virtual std::string description() const = 0;  // "4 partitions of 32 of ..."
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_DEVICE_H_
