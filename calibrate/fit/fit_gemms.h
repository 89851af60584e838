// SPDX-License-Identifier: Apache-2.0
// Fits a device's GEMM model to measured GEMMs.
#ifndef WEIR_CALIBRATE_FIT_FIT_GEMMS_H_
#define WEIR_CALIBRATE_FIT_FIT_GEMMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/pricing/gemm_seconds.h"

namespace weir::calibrate {

struct GemmSample {
  GemmSize shape;
  double seconds = 0;  // measured
};

struct GemmFit {
  GemmModel model;
  ErrorStatistics errors;  // on the fitted samples
};

// Fits the ten parameters of `start` other than sustained_rate and the rates of
// unaligned GEMMs, which it uses as they are, to the samples
// by least squares on the logarithms of predicted and measured seconds. Errors
// beyond 5 % count linearly; a parameter that the samples do not determine
// stays near its start. The parameters become FITTED with `source`. The same
// input yields identical output. Returns InvalidArgument if there are no
// samples, or a size or time is not positive.
//
// Least squares end in local minima, so the fit also starts from
// GenericGemms with low and with high wave quantization; it keeps the
// minimum reached from `start` unless another one is clearly lower.
//
// At sustained clocks, as measured by weir-calibrate, cache_bytes and
// throttling have no effect and keep the values of `start`.
absl::StatusOr<GemmFit> FitGemms(const GemmMachine& machine,
                                 const GemmModel& start,
                                 absl::Span<const GemmSample> samples,
                                 absl::string_view source,
                                 Clock clock = Clock::kBurst);

// Returns typical parameters for a GPU without measurements.
GemmModel GenericGemms(const GemmMachine& machine, double wave_quantization);

// Returns the predicted time of each sample.
std::vector<double> PredictGemms(const GemmMachine& machine,
                                 const GemmModel& model,
                                 absl::Span<const GemmSample> samples,
                                 Clock clock = Clock::kBurst);

// Returns for every sample the prediction of a fit without the samples of its
// group (calibrate/fit/cross_validation.h). Returns the errors of FitGemms.
absl::StatusOr<std::vector<double>> CrossValidateGemms(
    const GemmMachine& machine, const GemmModel& start,
    absl::Span<const GemmSample> samples, absl::Span<const int> groups,
    Clock clock = Clock::kBurst);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_FIT_GEMMS_H_
