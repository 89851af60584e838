// SPDX-License-Identifier: Apache-2.0
// The timeline of any runtime, read from a CSV file as if weir had executed it:
//
//   rank,action,start_ms,end_ms
//   0,0F0,0.00,1.92
//   0,0SEND_F0,1.95,2.31
//   1,1F0,2.40,4.41
//   1,1 step u0,30.1,31.0
//
// One row per event, in any order, on one clock. Times are start_seconds and
// end_seconds, or _ms, _us, _ns. Actions use PyTorch's notation:
//   2F0, 2B0, 2I0, 2W0   passes (stage, op, microbatch); 2B0-3: several
//   2 step u0            an optimizer step (stage, update)
//   2SEND_F0, 2SEND_B0   a transfer on the wire; row of the sender
//   2REDUCE_GRAD         a reduction of gradients
//   2UNSHARD             a gather of weights
// 2RECV_F0 and 2RESHARD are read and ignored: a receive is mostly waiting.
//
// Optional columns: ready_seconds (in the unit of the start; when the data of a
// transfer was computed) and bytes of transfers.
#ifndef WEIR_RESULTS_COMPARE_MEASURED_TIMELINE_H_
#define WEIR_RESULTS_COMPARE_MEASURED_TIMELINE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// Returns a result whose earliest start is 0 and whose makespan is the last
// end. Returns InvalidArgument with all invalid lines: malformed CSV, invalid
// actions, ends before starts, transfers without a receiver, missing ranks.
absl::StatusOr<Result> ReadMeasuredTimeline(absl::string_view label,
                                            absl::string_view text);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_MEASURED_TIMELINE_H_
