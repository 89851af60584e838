// SPDX-License-Identifier: Apache-2.0
// The journal of a calibration on disk, and what of it is done.
#ifndef WEIR_CALIBRATE_MEASURE_JOURNAL_H_
#define WEIR_CALIBRATE_MEASURE_JOURNAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/calibration.pb.h"

namespace weir {

// NotFound, or what the file has that no journal has.
absl::StatusOr<Calibration> LoadJournal(const std::string& path);

// Through a temporary and a rename: whoever reads it, or whatever kills the
// writer, finds a whole journal.
absl::Status SaveJournal(const std::string& path, const Calibration& journal);

// InvalidArgument names what differs where `journal`, read from `path`, is of
// another GPU or another part of one, of other libraries or of another version
// of weir than the (empty) journal of this run: their times do not belong into
// one profile.
absl::Status CheckSameMachine(absl::string_view path,
                              const Calibration& journal,
                              const Calibration& this_run);

// Null: not in it.
const WorkloadResult* FindResult(const Calibration& journal,
                                 absl::string_view key);
const StageMemoryResult* FindMemory(const Calibration& journal,
                                    absl::string_view key);

}  // namespace weir

#endif  // WEIR_CALIBRATE_MEASURE_JOURNAL_H_
