// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/collective_residual.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error_statistics.h"
#include "base/status_macros.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/figures.h"

namespace weir::calibrate {
namespace {

constexpr int kFewestGroups = 3;
constexpr int kNumResidualFolds = 5;

std::vector<int> Groups(absl::Span<const CollectiveSample> samples) {
  std::vector<std::pair<models::CollectiveKind, int>> keys;
  for (const CollectiveSample& sample : samples) {
    keys.emplace_back(sample.kind, sample.group.num_ranks);
  }
  return GroupsOf(keys);
}

absl::StatusOr<std::vector<double>> LeftOut(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    absl::Span<const int> groups) {
  const auto fit_and_predict = [&](absl::Span<const int> fitted,
                                   absl::Span<const int> left_out)
      -> absl::StatusOr<std::vector<double>> {
    std::vector<CollectiveSample> seen, unseen;
    for (const int row : fitted) seen.push_back(samples[row]);
    for (const int row : left_out) unseen.push_back(samples[row]);
    ASSIGN_OR_RETURN(const CollectiveFit fit,
                     FitCollectives(start, seen, "folds"));
    return PredictCollectives(fit.model, unseen);
  };
  return CrossValidate(groups, fit_and_predict);
}

}  // namespace

absl::StatusOr<std::vector<double>> CrossValidateCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples) {
  return LeftOut(start, samples, Groups(samples));
}

absl::StatusOr<Figure> CollectiveResidual(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    const CollectiveFit& fit, absl::string_view source) {
  std::vector<int> groups = Groups(samples);
  if (groups.empty() ||
      *std::max_element(groups.begin(), groups.end()) + 1 < kFewestGroups) {
    return ResidualOf(fit.errors.mean_absolute,
                      absl::StrCat(source, ": errors on the fitted data"));
  }
  for (int& group : groups) group %= kNumResidualFolds;
  ASSIGN_OR_RETURN(const std::vector<double> unseen,
                   LeftOut(start, samples, groups));
  std::vector<double> measured;
  for (const CollectiveSample& sample : samples) {
    measured.push_back(sample.seconds);
  }
  const double error = SummarizeErrors(unseen, measured).mean_absolute;
  return ResidualOf(error,
                    absl::StrFormat("%s: %.1f %% with a fifth of the "
                                    "(collective, number of ranks) left out",
                                    source, 100 * error));
}

}  // namespace weir::calibrate
