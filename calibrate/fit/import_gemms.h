// SPDX-License-Identifier: Apache-2.0
// Imports measured GEMMs from a CSV file with columns m, n, k, one of
// latency_ms, latency_us or seconds, and optionally batch and dtype or type
// ("bf16", the same in all rows). Other columns are ignored. Errors are
// InvalidArgument; those of a field have line and column.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_GEMMS_H_
#define WEIR_CALIBRATE_FIT_IMPORT_GEMMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_gemms.h"
#include "calibrate/fit/import.h"

namespace weir::calibrate {

struct MeasuredGemms {
  std::string format;  // number format; empty: the file has no dtype column
  std::vector<GemmSample> samples;
  std::vector<int> lines;  // lines of the samples in the file
};

absl::StatusOr<MeasuredGemms> ReadGemms(absl::string_view label,
                                        absl::string_view text);

// Returns the GPU described by `profile` in a number format ("": bf16, or fp16
// if the profile has no bf16). Returns InvalidArgument if the profile does not
// have it.
absl::StatusOr<GemmMachine> MachineOf(const DeviceProfile& profile,
                                      std::string format);

// Returns a group for each distinct (n, k), so that cross-validation leaves out
// complete weight shapes.
std::vector<int> WeightShapes(const std::vector<GemmSample>& samples);

// Entries of MeasurementFormats().
bool LooksLikeGemms(absl::string_view text);
absl::StatusOr<Import> ImportGemms(absl::string_view label,
                                   absl::string_view text,
                                   const DeviceProfile& start,
                                   absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_GEMMS_H_
