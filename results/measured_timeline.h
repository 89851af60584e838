// SPDX-License-Identifier: Apache-2.0
// The timeline of any runtime, read from a CSV as if weir had executed it:
//
//   rank,action,start_ms,end_ms
//   0,0F0,0.00,1.92
//   0,0SEND_F0,1.95,2.31
//   1,1F0,2.40,4.41
//   1,1 step u0,30.1,31.0
//
// One row an event, in any order, on one clock. Times are start_seconds and
// end_seconds, or _ms, _us, _ns. Actions are PyTorch's words:
//   2F0, 2B0, 2I0, 2W0   passes (stage, op, microbatch), 2B0-3 of several
//   2 step u0            an optimizer step (stage, update)
//   2SEND_F0, 2SEND_B0   a transfer on the wire; row of the sender
//   2REDUCE_GRAD         a reduction of gradients
//   2UNSHARD             a gather of weights
// 2RECV_F0 and 2RESHARD are read and left out: a receive is mostly waiting.
//
// Optional columns: ready_seconds (in the same unit as the start: when what a
// transfer carries was made) and bytes of transfers.
#ifndef WEIR_RESULTS_MEASURED_TIMELINE_H_
#define WEIR_RESULTS_MEASURED_TIMELINE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir {

// The earliest start becomes 0, the makespan is the last end. InvalidArgument
// names every bad line: bad CSV, actions that are none, ends before starts,
// transfers to nobody, ranks that are missing.
absl::StatusOr<Result> ReadMeasuredTimeline(absl::string_view label,
                                            absl::string_view text);

}  // namespace weir

#endif  // WEIR_RESULTS_MEASURED_TIMELINE_H_
