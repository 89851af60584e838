// SPDX-License-Identifier: Apache-2.0
// Measured matrix products from a CSV: columns m, n, k, one of latency_ms,
// latency_us or seconds, and if wanted dtype or type ("bf16", one for all rows)
// and batch. Other columns are left alone.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_PRODUCTS_H_
#define WEIR_CALIBRATE_FIT_IMPORT_PRODUCTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_products.h"
#include "calibrate/fit/import.h"

namespace weir {

struct MeasuredProducts {
  std::string format;  // number format; empty: the file has no dtype
  std::vector<ProductSample> samples;
  std::vector<int> lines;  // of the samples in the file
};

absl::StatusOr<MeasuredProducts> ReadProducts(absl::string_view label,
                                              absl::string_view text);

// The machine that `profile` describes, in a number format ("": bf16, or fp16
// where there is none).
absl::StatusOr<ProductMachine> MachineOf(const DeviceProfile& profile,
                                         std::string format);

// A group for each distinct (n, k), so that cross-validation leaves a weight's
// shape out whole.
std::vector<int> WeightShapes(const std::vector<ProductSample>& samples);

// For MeasurementFormats.
bool LooksLikeProducts(absl::string_view text);
absl::StatusOr<Import> ImportProducts(absl::string_view label,
                                      absl::string_view text,
                                      const DeviceProfile& start,
                                      absl::string_view source);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_IMPORT_PRODUCTS_H_
