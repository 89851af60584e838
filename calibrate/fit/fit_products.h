// SPDX-License-Identifier: Apache-2.0
// A device's product figures from measured products.
#ifndef WEIR_CALIBRATE_FIT_FIT_PRODUCTS_H_
#define WEIR_CALIBRATE_FIT_FIT_PRODUCTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/product_seconds.h"

namespace weir {

struct ProductSample {
  ProductShape shape;
  double seconds = 0;  // measured
};

struct ProductFit {
  ProductModel model;
  ErrorStatistics errors;  // of the samples it was fitted to
};

// The ten figures of `start` beside sustained_rate, moved so that the
// logarithms of predicted and measured seconds agree best: least squares,
// outliers beyond 5 % count linearly; a figure that the samples do not speak
// about stays near its start. They become FITTED with `source`. Same input,
// same bytes out. InvalidArgument without samples, or with a size or time that
// is not positive.
// Least squares end in valleys: it also sets out from GenericProducts with few
// and with much quantization, and keeps to `start` unless another valley is
// clearly lower.
// At sustained clocks, as weir-calibrate measures, cache_bytes and throttling
// do not show: they stay as `start` has them.
absl::StatusOr<ProductFit> FitProducts(const ProductMachine& machine,
                                       const ProductModel& start,
                                       absl::Span<const ProductSample> samples,
                                       absl::string_view source,
                                       Clock clock = Clock::kBurst);

// Middling figures for a machine that nobody has measured.
ProductModel GenericProducts(const ProductMachine& machine,
                             double wave_quantization);

// Seconds of each sample.
std::vector<double> PredictProducts(const ProductMachine& machine,
                                    const ProductModel& model,
                                    absl::Span<const ProductSample> samples,
                                    Clock clock = Clock::kBurst);

// For every sample the prediction of a fit without the samples of its group
// (calibrate/fit/cross_validation.h).
absl::StatusOr<std::vector<double>> CrossValidateProducts(
    const ProductMachine& machine, const ProductModel& start,
    absl::Span<const ProductSample> samples, absl::Span<const int> groups,
    Clock clock = Clock::kBurst);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_FIT_PRODUCTS_H_
