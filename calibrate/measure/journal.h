// SPDX-License-Identifier: Apache-2.0
// The journal of a calibration on disk, and what of it is done.
//
// A textproto of weir.Calibration in records: all but the results first, then
// each result. A comment after each record has the CRC-32 of its lines:
//
//   workloads {
//     ...
//   }
//   # crc32: 1a2b3c4d
#ifndef WEIR_CALIBRATE_MEASURE_JOURNAL_H_
#define WEIR_CALIBRATE_MEASURE_JOURNAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/calibration.pb.h"

namespace weir {

// NotFound, or what the file has that no journal has. Results that do not match
// their checksum are left out and described in `damage`, such as "PATH: record
// 3 (byte 1042) is damaged: ..."; without `damage` they are an error, as damage
// to the first record always is.
absl::StatusOr<Calibration> LoadJournal(
    const std::string& path, std::vector<std::string>* damage = nullptr);
// The same from memory; `label` is what messages name.
absl::StatusOr<Calibration> ParseJournal(const std::string& label,
                                         absl::string_view text,
                                         std::vector<std::string>* damage);

// Replaces the file and syncs it to disk before it returns: whatever ends the
// writer, power failures included, leaves a whole journal with every result
// that was saved.
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
