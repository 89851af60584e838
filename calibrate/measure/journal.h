// SPDX-License-Identifier: Apache-2.0
// The journal of a calibration on disk.
//
// The file is a textproto of weir.Calibration in records: first everything but
// the results, then each result. A comment after each record has the CRC-32 of
// its lines:
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

namespace weir::calibrate {

// Loads a journal. Returns NotFound if there is none, InvalidArgument if its
// content is invalid. Results that do not match their checksum are omitted and
// described in `damage`, such as "PATH: record 3 (byte 1042) is damaged: ...";
// if `damage` is null they are an error. Damage to the first record is always
// an error.
absl::StatusOr<Calibration> LoadJournal(
    const std::string& path, std::vector<std::string>* damage = nullptr);
// The same for a text in memory; `label` is the name used in messages. Errors
// are InvalidArgument.
absl::StatusOr<Calibration> ParseJournal(const std::string& label,
                                         absl::string_view text,
                                         std::vector<std::string>* damage);

// Replaces the file and syncs it to disk before returning. After a crash or
// power failure at any point, the file is a complete journal of all results
// saved so far. Returns InvalidArgument if it cannot be written.
absl::Status SaveJournal(const std::string& path, const Calibration& journal);

// Returns InvalidArgument that lists the differences if `journal`, read from
// `path`, is of another GPU or partition, of other libraries or of another
// version of weir than the (empty) journal of this run. Such times must not be
// combined in one profile.
absl::Status CheckSameMachine(absl::string_view path,
                              const Calibration& journal,
                              const Calibration& this_run);

// Returns the journal with only the results that later runs need not measure
// again: timed workloads and measured memory.
Calibration CompletedPart(const Calibration& journal);

// Returns null if the key is not in the journal.
const WorkloadResult* FindResult(const Calibration& journal,
                                 absl::string_view key);
const StageMemoryResult* FindMemory(const Calibration& journal,
                                    absl::string_view key);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_JOURNAL_H_
