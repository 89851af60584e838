// SPDX-License-Identifier: Apache-2.0
// Why the ranks of a pipeline were idle. The same for simulated and for
// measured timelines.
//
// A rank is busy while a pass or an optimizer step of it is under way (with the
// tensor and expert collectives inside; two at a time count once). All else
// between 0 and the makespan is idle, and every idle second has one cause:
//
//   start-up  before the rank's first action, cut as below
//   between   before another action, cut as below
//   drain     after its last action
//
// A gap before an action is cut by what happens to the input that arrives last
// of those which other ranks make for it (of a pair that starts together: for
// both): a forward's activation, a backward's gradient.
//
//   kPass    until it was made: the rank waits for another rank's pass
//   kQueued  until its transfer began: made, but behind others, or nobody took
//            it yet
//   kWire    until its transfer ended
//
// An optimizer step waits for gradients of other copies of its stage instead
// (of tied embeddings: of the other end of the pipeline):
//
//   kCopies  until the last of them was made and the reduction (over copies,
//            replicas, or the two ends of a tied embedding) has ended
//
// What of a gap comes after all that is
//
//   kHost    while activations move to the host or back
//   kCopies  while weights are gathered
//   kOther   else: everything was there and nothing ran. Launch gaps, the
//            runtime, blocking exchanges that carry nothing for this action;
//            where a measurement has no transfers, those too.
//
// Sums are exact: startup + between + drain = makespan - busy of each rank.
#ifndef WEIR_RESULTS_IDLE_CAUSES_H_
#define WEIR_RESULTS_IDLE_CAUSES_H_

#include <array>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/pipeline_events.h"

namespace weir {

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
  double of(IdleCause cause) const {  // wherever
    return startup[static_cast<int>(cause)] + between[static_cast<int>(cause)];
  }
};

std::vector<RankIdle> FindIdleCauses(const PipelineEvents& timeline);

// Of all ranks.
RankIdle SumOf(const std::vector<RankIdle>& ranks);

// How transfers fared, apart from how long their receivers stood and waited for
// them: a profiler's "receive" is the sum of the last three.
struct TransferTimes {
  int num_transfers = 0;
  double bytes = 0;
  double queued_seconds = 0;  // from made to begun
  double wire_seconds = 0;    // from begun to ended
  // Idle seconds of receivers, as above.
  double awaited_pass_seconds = 0;    // not yet made
  double awaited_queued_seconds = 0;  // made, not begun
  double awaited_wire_seconds = 0;    // under way
};
TransferTimes TimesOf(const PipelineEvents& timeline,
                      const std::vector<RankIdle>& idle);

// Passes that began before what they need from another rank was made: the
// clocks of the ranks do not agree (or were not read on the device).
struct ClockErrors {
  int num_inputs = 0;  // that ranks make for each other
  int num_early = 0;   // of those
  double largest_seconds = 0;
};
ClockErrors FindClockErrors(const PipelineEvents& timeline);

}  // namespace weir

#endif  // WEIR_RESULTS_IDLE_CAUSES_H_
