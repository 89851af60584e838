// SPDX-License-Identifier: Apache-2.0
// Imports measurements into a device profile. Each format is one entry of a
// table and is recognized by its content, not by the file name. Errors are
// InvalidArgument.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_H_
#define WEIR_CALIBRATE_FIT_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

struct Import {
  DeviceProfile profile;
  // Summary of the input and of the fit's errors, a few lines.
  std::string report;
};

struct MeasurementFormat {
  absl::string_view name;
  absl::string_view expected;  // description of the format, for errors
  bool (*recognizes)(absl::string_view text);
  // Returns `start` with the parameters that the measurements determine
  // replaced. `label` names the file in errors, `source` in the parameters.
  absl::StatusOr<Import> (*import)(absl::string_view label,
                                   absl::string_view text,
                                   const DeviceProfile& start,
                                   absl::string_view source);
};

const std::vector<MeasurementFormat>& MeasurementFormats();

// Imports with the first format that recognizes the text. Returns
// InvalidArgument with file, line, column, the value found and the value
// expected, or with all formats if none recognizes the text.
absl::StatusOr<Import> ImportMeasurements(absl::string_view label,
                                          absl::string_view text,
                                          const DeviceProfile& start,
                                          absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_H_
