// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/run_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "results/import/messages.h"

namespace weir::plan {
namespace {

using results::RecordedKind;
using results::RecordedOperation;

// Parts of a normal distribution below one standard deviation.
constexpr double kBelow = 0.158655, kAbove = 0.841345;

double QuantileOf(std::vector<double>* values, double part) {
  const auto index =
      static_cast<size_t>(part * static_cast<double>(values->size() - 1) + 0.5);
  std::nth_element(values->begin(), values->begin() + index, values->end());
  return (*values)[index];
}

std::vector<double> HopsOf(const results::RecordedRun& run) {
  std::vector<double> hops;
  for (const results::RecordedStep& step : results::StepsOf(run)) {
    const results::OperationGroups groups = results::GroupsOf(step);
    const std::vector<double> seconds = results::TransferSeconds(step, groups);
    for (size_t i = 0; i < step.size(); ++i) {
      const RecordedKind kind = step.begin[i].kind;
      const bool receives = kind == RecordedKind::kReceiveForward ||
                            kind == RecordedKind::kReceiveBackward;
      if (receives && groups.group_of[i] >= 0) hops.push_back(seconds[i]);
    }
  }
  return hops;
}

}  // namespace

absl::StatusOr<RunCosts> CostsOfRun(const results::RecordedRun& run) {
  std::map<std::pair<int32_t, RecordedKind>, std::vector<double>> seconds;
  for (const RecordedOperation& o : run.operations) {
    if (results::IsPass(o.kind)) {
      seconds[{o.stage, o.kind}].push_back(o.seconds());
    }
  }
  const bool is_split =
      std::any_of(seconds.begin(), seconds.end(), [](const auto& entry) {
        return entry.first.second == RecordedKind::kBackwardWeight;
      });
  RunCosts result;
  std::vector<double> ratios;
  const auto median = [&](int stage,
                          RecordedKind kind) -> absl::StatusOr<double> {
    const auto found = seconds.find({stage, kind});
    if (found == seconds.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          run.label, ": stage ", stage, " has no ", results::NameOf(kind),
          " pass, expected ",
          is_split ? "a forward, a backward-input and a backward-weight"
                   : "a forward and a backward",
          " of every stage, for costs"));
    }
    const double middle = QuantileOf(&found->second, 0.5);
    for (const double each : found->second) {
      if (middle > 0 && each > 0) ratios.push_back(std::log(each / middle));
    }
    return middle;
  };
  for (int stage = 0; stage < run.num_stages; ++stage) {
    GivenCosts::Stage* costs = result.costs.add_stages();
    ASSIGN_OR_RETURN(const double forward,
                     median(stage, RecordedKind::kForward));
    costs->set_forward_seconds(forward);
    if (!is_split) {
      ASSIGN_OR_RETURN(const double backward,
                       median(stage, RecordedKind::kBackward));
      costs->set_backward_seconds(backward);
      continue;
    }
    ASSIGN_OR_RETURN(const double input,
                     median(stage, RecordedKind::kBackwardInput));
    ASSIGN_OR_RETURN(const double weight,
                     median(stage, RecordedKind::kBackwardWeight));
    costs->set_backward_input_seconds(input);
    costs->set_backward_weight_seconds(weight);
  }
  std::vector<double> hops = HopsOf(run);
  if (!hops.empty()) result.costs.set_hop_seconds(QuantileOf(&hops, 0.5));
  if (!ratios.empty()) {
    result.deviation =
        (QuantileOf(&ratios, kAbove) - QuantileOf(&ratios, kBelow)) / 2;
  }
  return result;
}

}  // namespace weir::plan
