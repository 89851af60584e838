// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/run_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quantiles.h"
#include "base/status_macros.h"
#include "results/import/messages.h"

namespace weir::plan {
namespace {

using results::RecordedKind;
using results::RecordedOperation;

// Parts of a normal distribution below one standard deviation.
constexpr double kBelow = 0.158655, kAbove = 0.841345;

using SecondsOfPasses =
    std::map<std::pair<int32_t, RecordedKind>, std::vector<double>>;

// Returns the times of all passes of a stage and kind.
SecondsOfPasses SecondsOf(const results::RecordedRun& run) {
  SecondsOfPasses seconds;
  if (!run.in_parts) {
    for (const RecordedOperation& o : run.operations) {
      if (results::IsPass(o.kind)) {
        seconds[{o.stage, o.kind}].push_back(o.seconds());
      }
    }
    return seconds;
  }
  // (stage, kind, step, replica, microbatch): the sum of the parts
  std::map<std::tuple<int32_t, RecordedKind, int32_t, int32_t, int32_t>, double>
      passes;
  for (const RecordedOperation& o : run.operations) {
    if (!results::IsPass(o.kind)) continue;
    passes[{o.stage, o.kind, o.step, o.replica, o.microbatch}] += o.seconds();
  }
  for (const auto& [key, sum] : passes) {
    seconds[{std::get<0>(key), std::get<1>(key)}].push_back(sum);
  }
  return seconds;
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
  const SecondsOfPasses seconds = SecondsOf(run);
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
    const double middle = Median(found->second);
    if (found->second.size() < 2) return middle;
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
  if (!hops.empty()) result.costs.set_hop_seconds(Median(std::move(hops)));
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    result.deviation =
        (QuantileOfSorted(ratios, kAbove) - QuantileOfSorted(ratios, kBelow)) /
        2;
  }
  if (std::any_of(run.operations.begin(), run.operations.end(),
                  [](const RecordedOperation& o) {
                    return o.kind == RecordedKind::kDispatch ||
                           o.kind == RecordedKind::kCombine;
                  })) {
    result.left_out =
        "dispatch and combine are left out of the costs: they overlap with "
        "passes";
  }
  return result;
}

}  // namespace weir::plan
