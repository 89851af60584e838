// SPDX-License-Identifier: Apache-2.0
// Causes of the idle time of a pipeline's ranks, for simulated and for measured
// timelines.
//
// A rank is busy while one of its passes or optimizer steps runs (including the
// tensor and expert collectives inside; overlapped passes count once). The rest
// of the time from 0 to the makespan is idle, and every idle second has one
// cause:
//
//   start-up  before the rank's first action, divided as below
//   between   before another action, divided as below
//   drain     after its last action
//
// A gap before an action is divided by the progress of its input from another
// rank that arrives last: a forward's activation or a backward's gradient (for
// a pair that starts together, the last input of both).
//
//   kPass    until it was computed: the rank waits for another rank's pass
//   kQueued  until its transfer began: computed, but queued after others, or
//            not yet accepted by the receiver
//   kWire    until its transfer ended
//
// An optimizer step waits instead for gradients of other copies of its stage
// (with tied embeddings, of the other end of the pipeline):
//
//   kCopies  until the last of them was computed and the reduction ended (over
//            copies, replicas, or the two ends of a tied embedding)
//
// The rest of a gap is divided into
//
//   kHost    while activations move to the host or back
//   kCopies  while weights are gathered
//   kOther   otherwise: all inputs were available and nothing ran. Launch gaps,
//            the runtime, blocking exchanges that carry nothing for this
//            action; also transfers, if a measurement does not contain them.
//
// Sums are exact: startup + between + drain = makespan - busy for each rank.
#ifndef WEIR_RESULTS_COMPARE_IDLE_CAUSES_H_
#define WEIR_RESULTS_COMPARE_IDLE_CAUSES_H_

#include <array>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/pipeline_events.h"

namespace weir::results {

enum class IdleCause { kPass, kQueued, kWire, kCopies, kHost, kOther };
inline constexpr int kNumIdleCauses = 6;
absl::string_view Name(IdleCause cause);  // "pass", "queued", "wire", ...

using IdleSeconds = std::array<double, kNumIdleCauses>;

struct RankIdle {
  double busy_seconds = 0;
  IdleSeconds startup{}, between{};  // [cause]
  double drain_seconds = 0;

  double startup_seconds() const;
  double between_seconds() const;
  double idle_seconds() const {
    return startup_seconds() + between_seconds() + drain_seconds;
  }
  double of(IdleCause cause) const {  // startup and between
    return startup[static_cast<int>(cause)] + between[static_cast<int>(cause)];
  }
};

std::vector<RankIdle> FindIdleCauses(const PipelineEvents& timeline);

// A part of a gap in the work of a rank, with one cause.
struct IdlePiece {
  static constexpr int kNone = -1;
  double from_seconds = 0, to_seconds = 0;
  IdleCause cause = IdleCause::kOther;  // unused if `next` is kNone
  // Index into PipelineEvents::ranks[rank] of the action that the gap precedes;
  // kNone: drain, after the last action.
  int next = kNone;
  // Rank whose pass it waits for (kPass, kQueued, kWire), else kNone.
  int awaited_rank = kNone;
};

// Returns [rank] the pieces of its idle time, in the order of time. Their
// lengths by cause add up to FindIdleCauses, except for rounding.
std::vector<std::vector<IdlePiece>> FindIdlePieces(
    const PipelineEvents& timeline);

// Returns the sum over all ranks.
RankIdle SumOf(const std::vector<RankIdle>& ranks);

// Times of transfers, and idle times of the receivers that waited for them. A
// profiler's "receive" is the sum of the last three.
struct TransferTimes {
  int num_transfers = 0;
  double bytes = 0;
  double queued_seconds = 0;  // from computed to started
  double wire_seconds = 0;    // from start to end
  // Idle seconds of receivers, as above.
  double awaited_pass_seconds = 0;    // not yet computed
  double awaited_queued_seconds = 0;  // computed, not started
  double awaited_wire_seconds = 0;    // in flight
};
TransferTimes TimesOf(const PipelineEvents& timeline,
                      const std::vector<RankIdle>& idle);

// Passes that began before their input from another rank was computed: the
// clocks of the ranks disagree (or were not read on the device).
struct ClockErrors {
  int num_inputs = 0;  // from other ranks
  int num_early = 0;   // of num_inputs
  double largest_seconds = 0;
};
ClockErrors FindClockErrors(const PipelineEvents& timeline);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_IDLE_CAUSES_H_
