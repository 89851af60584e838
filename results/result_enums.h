// SPDX-License-Identifier: Apache-2.0
// Conversions of the enums of result.proto, for everything that writes or reads
// results.
#ifndef WEIR_RESULTS_RESULT_ENUMS_H_
#define WEIR_RESULTS_RESULT_ENUMS_H_

#include <string>

#include "absl/strings/ascii.h"
#include "results/result.pb.h"
#include "schedules/action.h"

namespace weir::results {

// Returns the op of a scheduled action in a timeline. Requires:
// IsScheduled(op).
inline Timeline::Actions::Op TimelineOpOf(schedules::Op op) {
  switch (op) {
    case schedules::Op::kForward:
      return Timeline::Actions::FORWARD;
    case schedules::Op::kBackward:
      return Timeline::Actions::BACKWARD;
    case schedules::Op::kBackwardInput:
      return Timeline::Actions::BACKWARD_INPUT;
    case schedules::Op::kBackwardWeight:
      return Timeline::Actions::BACKWARD_WEIGHT;
    case schedules::Op::kOffload:
      return Timeline::Actions::OFFLOAD;
    case schedules::Op::kReload:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return Timeline::Actions::RELOAD;
}

// Returns MemoryClass.name: "weight_stash".
inline std::string NameOf(MemoryClass::Kind kind) {
  return absl::AsciiStrToLower(MemoryClass::Kind_Name(kind));
}

}  // namespace weir::results

#endif  // WEIR_RESULTS_RESULT_ENUMS_H_
