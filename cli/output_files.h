// SPDX-License-Identifier: Apache-2.0
// The files that commands write beside standard output.
#ifndef WEIR_CLI_OUTPUT_FILES_H_
#define WEIR_CLI_OUTPUT_FILES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/output_file.h"
#include "cli/flags.h"
#include "results/result.pb.h"
#include "results/trace.h"

namespace weir {

// What the flags allow to be replaced, see base/output_file.h.
ReplaceOptions ReplaceOf(
    const OutputFlags& output,
    std::function<bool(absl::string_view)> is_own_line = nullptr);

// Refuses --out and --trace where they cannot be written or are the same file,
// before hours of work. `folders`: --trace may name a folder.
absl::Status CheckOutputs(const OutputFlags& output, bool folders);

// Refuses a trace file whose ending names no format, before hours of work.
// `folders`: a path that ends with '/' is fine too.
absl::Status CheckTracePath(absl::string_view option, const std::string& path,
                            bool folders);

// Writes the timeline in the format that the ending names; in a folder the
// file is called after the schedule, .pftrace. Notes what was written.
absl::Status WriteTrace(const std::string& path, const Result& result,
                        const OutputFlags& output);

// The same of two results under each other.
absl::Status WriteTwoRows(const std::string& path, const TwoRows& rows,
                          const OutputFlags& output);

// Writes --out and, with `traced`, --trace; both are tried. Notes each file.
absl::Status WriteOutputs(const OutputFlags& output, const Results& results,
                          const Result* traced);

// Prints what a table or a CSV does not hold: the warnings.
void PrintWarnings(const Results& results, const OutputFlags& output);

}  // namespace weir

#endif  // WEIR_CLI_OUTPUT_FILES_H_
