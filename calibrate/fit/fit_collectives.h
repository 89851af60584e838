// SPDX-License-Identifier: Apache-2.0
// A device's collective costs from measurements of them.
#ifndef WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_
#define WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/error_statistics.h"
#include "calibrate/collective_model.h"
#include "calibrate/collective_seconds.h"

namespace weir {

// One measurement; bytes as CheapestCollective counts them.
struct CollectiveSample {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  CollectiveGroup group;
  double seconds = 0;
};

struct CollectiveFit {
  CollectiveModel model;
  ErrorStatistics errors;  // of the samples it was fitted to
  // Names of the figures that the samples speak about, of CollectiveFigures().
  // The others stay as they began.
  std::vector<std::string> fitted;
};

// Where fits begin: NCCL's own constants with guesses for what they lack.
CollectiveModel CollectiveStart(NcclGeneration generation);

// The figures of `start` moved so that the logarithms of predicted and measured
// seconds agree best (least squares, outliers beyond 10 % count linearly; 2 %
// of a figure's own change of logarithm is held against it, which settles what
// the samples leave open). Figures that matter become FITTED with `source`.
// Same input, same bytes out. InvalidArgument without samples or with one whose
// bytes, ranks, rates or seconds are not positive.
absl::StatusOr<CollectiveFit> FitCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    absl::string_view source);

// What the model says of each sample.
std::vector<double> PredictCollectives(
    const CollectiveModel& model, absl::Span<const CollectiveSample> samples);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_FIT_COLLECTIVES_H_
