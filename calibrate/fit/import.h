// SPDX-License-Identifier: Apache-2.0
// Measurements into a device profile. Each format is one entry of a table and
// is known by its content, not by the file's name.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_H_
#define WEIR_CALIBRATE_FIT_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"

namespace weir {

struct Import {
  DeviceProfile profile;
  // What was read and how well the profile explains it, a few lines.
  std::string report;
};

struct MeasurementFormat {
  absl::string_view name;
  absl::string_view expected;  // what a file of it looks like, for errors
  bool (*recognizes)(absl::string_view text);
  // `start` with the figures that the measurements speak about replaced;
  // `label` names the file in errors, `source` in the figures.
  absl::StatusOr<Import> (*import)(absl::string_view label,
                                   absl::string_view text,
                                   const DeviceProfile& start,
                                   absl::string_view source);
};

const std::vector<MeasurementFormat>& MeasurementFormats();

// Imports with the first format that recognizes the text. InvalidArgument names
// file, line, column, what was found and what was expected; all formats where
// none recognizes it.
absl::StatusOr<Import> ImportMeasurements(absl::string_view label,
                                          absl::string_view text,
                                          const DeviceProfile& start,
                                          absl::string_view source);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_IMPORT_H_
