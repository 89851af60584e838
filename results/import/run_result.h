// SPDX-License-Identifier: Apache-2.0
// One step of a recorded run as a result, which every view of weir shows.
#ifndef WEIR_RESULTS_IMPORT_RUN_RESULT_H_
#define WEIR_RESULTS_IMPORT_RUN_RESULT_H_

#include <string>

#include "results/import/recorded_run.h"
#include "results/result.pb.h"

namespace weir::results {

// Returns the result with method "imported". Ranks are workers by replica and
// pipeline rank; the timeline is that of steps[index] of StepsOf(run). A
// transfer starts when both its send and its receive have, and a collective
// when all its members have; both have 0 bytes, which traces do not record.
// The norm's all-reduces are gradient reductions.
Result ResultOfStep(const RecordedRun& run, int index);

// Returns the label without folders and extensions.
std::string NameOfRun(const RecordedRun& run);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_RUN_RESULT_H_
