// SPDX-License-Identifier: Apache-2.0
// Imports measured memory-bound kernels from a CSV file with the columns kernel
// (copy, elementwise or norm), bytes (read and written), one of latency_ms,
// latency_us or seconds, and optionally launches (kernels in the time). Errors
// are InvalidArgument; those of a field have line and column.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_STREAMS_H_
#define WEIR_CALIBRATE_FIT_IMPORT_STREAMS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/import.h"

namespace weir::calibrate {

// Entries of MeasurementFormats().
bool LooksLikeStreams(absl::string_view text);
absl::StatusOr<Import> ImportStreams(absl::string_view label,
                                     absl::string_view text,
                                     const DeviceProfile& start,
                                     absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_STREAMS_H_
