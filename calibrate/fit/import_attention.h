// SPDX-License-Identifier: Apache-2.0
// Imports measured fused attention from a CSV file with the columns pass
// (forward or backward), batch (sequences), heads, sequence_length, head_size,
// causal (yes or no), one of latency_ms, latency_us or seconds, and optionally
// dtype or type and backend (each the same in all rows). Other columns are
// ignored. Errors are InvalidArgument; those of a field have line and column.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_
#define WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/import.h"
#include "models/layer_work.h"

namespace weir::calibrate {

struct MeasuredAttention {
  std::string format;   // number format; empty: no such column
  std::string backend;  // "cudnn"; empty: no such column
  std::vector<models::Kernel> kernels;
  std::vector<double> seconds;  // of the kernels
  std::vector<int> lines;       // lines of the kernels in the file
};

absl::StatusOr<MeasuredAttention> ReadAttention(absl::string_view label,
                                                absl::string_view text);

// Entries of MeasurementFormats(). The import also removes the profile's
// measured kernels of fused attention, which would otherwise take precedence
// and may be those of another program.
bool LooksLikeAttention(absl::string_view text);
absl::StatusOr<Import> ImportAttention(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_
