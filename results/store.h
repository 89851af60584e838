// SPDX-License-Identifier: Apache-2.0
// Results as files (weir.Results, binary), from which views can be made later.
#ifndef WEIR_RESULTS_STORE_H_
#define WEIR_RESULTS_STORE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/output_file.h"
#include "results/result.pb.h"

namespace weir::results {

// Writes a file that LoadResults reads. Returns InvalidArgument if it cannot be
// written (see WriteOutput), contains text that is not UTF-8 or would exceed
// protobuf's 2 GiB.
absl::Status SaveResults(const std::string& path, const Results& results,
                         const ReplaceOptions& replace = {});

// Reads a file of SaveResults and checks it with ValidateResult, up to the
// first invalid result. Returns NotFound if there is no such file,
// InvalidArgument if weir did not write it or its format has unknown fields,
// and the errors of ValidateResult.
absl::StatusOr<Results> LoadResults(const std::string& path);

// Returns true if `path` is a regular file that begins as SaveResults writes
// it.
bool IsResultFile(const std::string& path);

// The same as LoadResults from memory; messages name `label`.
absl::StatusOr<Results> ParseResults(absl::string_view label,
                                     absl::string_view bytes);

}  // namespace weir::results

#endif  // WEIR_RESULTS_STORE_H_
