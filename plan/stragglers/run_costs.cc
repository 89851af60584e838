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

// Probabilities that a normal variable is below its mean minus, and plus, one
// standard deviation.
constexpr double kBelow = 0.158655, kAbove = 0.841345;

// (stage, kind, replica): the times of all passes.
using SecondsOfPasses =
    std::map<std::tuple<int32_t, RecordedKind, int32_t>, std::vector<double>>;

SecondsOfPasses SecondsOf(const results::RecordedRun& run) {
  SecondsOfPasses seconds;
  if (!run.in_parts) {
    for (const RecordedOperation& o : run.operations) {
      if (results::IsPass(o.kind)) {
        seconds[{o.stage, o.kind, o.replica}].push_back(o.seconds());
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
    seconds[{std::get<0>(key), std::get<1>(key), std::get<3>(key)}].push_back(
        sum);
  }
  return seconds;
}

// Relative differences of times below it are rounding errors.
constexpr double kRoundingError = 1e-9;

// What is known of a kind of pass in a stage.
struct PassTimes {
  double median = 0;
  std::vector<double> by_replica;  // medians
  // Ascending, over the median of the replica; empty: all are 1.
  std::vector<double> factors;
  std::vector<double> ratios;  // over the median of all replicas
};

// Returns InvalidArgument if a replica has no such pass.
absl::StatusOr<PassTimes> TimesOf(const results::RecordedRun& run,
                                  const SecondsOfPasses& seconds, int stage,
                                  RecordedKind kind, bool is_split) {
  PassTimes times;
  std::vector<double> all;
  bool any_other = false;
  for (int replica = 0; replica < run.num_replicas; ++replica) {
    const auto found = seconds.find({stage, kind, replica});
    if (found == seconds.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          run.label, ": stage ", stage, " has no ", results::NameOf(kind),
          " pass",
          run.num_replicas > 1 ? absl::StrCat(" in replica ", replica) : "",
          ", expected ",
          is_split ? "a forward, a backward-input and a backward-weight"
                   : "a forward and a backward",
          " of every stage, for costs"));
    }
    const double median = Median(found->second);
    times.by_replica.push_back(median);
    for (const double each : found->second) {
      all.push_back(each);
      any_other |= std::abs(each - median) > kRoundingError * median;
      times.factors.push_back(median > 0 ? each / median : 1);
    }
  }
  times.median = Median(all);
  if (!any_other) times.factors.clear();
  std::sort(times.factors.begin(), times.factors.end());
  if (times.factors.size() > kMostRecordedFactors) {
    times.factors = MeansOfParts(times.factors, kMostRecordedFactors);
  }
  for (const double each : all) {
    if (all.size() > 1) times.ratios.push_back(each / times.median);
  }
  return times;
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

std::vector<double> MeansOfParts(const std::vector<double>& values, int size) {
  std::vector<double> means;
  const double per_part = static_cast<double>(values.size()) / size;
  const auto value = [&](double at) {
    return std::min(static_cast<size_t>(at), values.size() - 1);
  };
  for (int part = 0; part < size; ++part) {
    const double begin = part * per_part, end = (part + 1) * per_part;
    const size_t first = value(begin), last = value(end);
    // Without rounding if all values are the same.
    if (values[first] == values[last]) {
      means.push_back(values[first]);
      continue;
    }
    double sum = 0;
    for (size_t i = first; i <= last; ++i) {
      const double from = std::max(begin, static_cast<double>(i));
      const double to = std::min(end, static_cast<double>(i + 1));
      sum += values[i] * std::max(to - from, 0.0);
    }
    means.push_back(sum / per_part);
  }
  return means;
}

absl::StatusOr<RunCosts> CostsOfRun(const results::RecordedRun& run) {
  using Stage = GivenCosts::Stage;
  const SecondsOfPasses seconds = SecondsOf(run);
  const bool is_split =
      std::any_of(seconds.begin(), seconds.end(), [](const auto& entry) {
        return std::get<1>(entry.first) == RecordedKind::kBackwardWeight;
      });
  struct Field {
    RecordedKind kind;
    void (Stage::*set_seconds)(double);
    google::protobuf::RepeatedField<double>* (Stage::*factors)();
  };
  std::vector<Field> fields = {{RecordedKind::kForward,
                                &Stage::set_forward_seconds,
                                &Stage::mutable_forward_factors}};
  if (is_split) {
    fields.push_back({RecordedKind::kBackwardInput,
                      &Stage::set_backward_input_seconds,
                      &Stage::mutable_backward_input_factors});
    fields.push_back({RecordedKind::kBackwardWeight,
                      &Stage::set_backward_weight_seconds,
                      &Stage::mutable_backward_weight_factors});
  } else {
    fields.push_back({RecordedKind::kBackward, &Stage::set_backward_seconds,
                      &Stage::mutable_backward_factors});
  }
  RunCosts result;
  if (run.num_replicas > 1) {
    for (int replica = 0; replica < run.num_replicas; ++replica) {
      result.costs.add_replicas();
    }
  }
  std::vector<double> ratios;
  for (int stage = 0; stage < run.num_stages; ++stage) {
    Stage* costs = result.costs.add_stages();
    for (auto& replica : *result.costs.mutable_replicas()) replica.add_stages();
    for (const Field& field : fields) {
      ASSIGN_OR_RETURN(const PassTimes times,
                       TimesOf(run, seconds, stage, field.kind, is_split));
      (costs->*field.set_seconds)(times.median);
      (costs->*field.factors)()->Assign(times.factors.begin(),
                                        times.factors.end());
      for (int r = 0; r < result.costs.replicas_size(); ++r) {
        Stage* own = result.costs.mutable_replicas(r)->mutable_stages(stage);
        (own->*field.set_seconds)(times.by_replica[r]);
      }
      for (const double ratio : times.ratios) {
        if (std::isfinite(ratio) && ratio > 0)
          ratios.push_back(std::log(ratio));
      }
    }
  }
  std::vector<double> hops = HopsOf(run);
  if (!hops.empty()) result.costs.set_hop_seconds(Median(std::move(hops)));
  if (!ratios.empty()) {
    std::sort(ratios.begin(), ratios.end());
    const double deviation =
        (QuantileOfSorted(ratios, kAbove) - QuantileOfSorted(ratios, kBelow)) /
        2;
    result.deviation = deviation > kRoundingError ? deviation : 0;
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
