// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems (nsys export --type sqlite): NVTX ranges, and the
// kernels that were launched in them.
#ifndef WEIR_RESULTS_IMPORT_NSIGHT_EXPORT_H_
#define WEIR_RESULTS_IMPORT_NSIGHT_EXPORT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "results/import/chrome_events.h"

namespace weir::results {

// Returns true if the bytes begin as an SQLite database does.
bool IsSqlite(absl::string_view bytes);

// Calls `take` with every NVTX range whose name is an operation
// (ParseOperationName), as an event of "user_annotation" with the process as
// text; and if kernels were launched in it (by any thread of its process), as
// one of "gpu_user_annotation" from the start of the first kernel to the end of
// the last. Of nested ranges the innermost has the kernel. Returns
// InvalidArgument if the file is no such export.
absl::Status ReadNsightExport(
    const std::string& path,
    const std::function<void(const ChromeEvent&)>& take);

// The same from memory; messages name `label`.
absl::Status ReadNsightBytes(
    absl::string_view label, absl::string_view bytes,
    const std::function<void(const ChromeEvent&)>& take);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_NSIGHT_EXPORT_H_
