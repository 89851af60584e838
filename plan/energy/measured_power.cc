// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/measured_power.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::plan {
namespace {

using schedules::Op;

// Returns the measured point of a pass; absent if it was not measured at all.
absl::StatusOr<std::optional<ClockPoint>> PointAt(const ClockProfile& profile,
                                                  int stage, Op op,
                                                  double megahertz) {
  const auto found = profile.passes.find({stage, op});
  if (found == profile.passes.end()) return std::nullopt;
  if (megahertz == 0) return found->second.back();
  for (const ClockPoint& point : found->second) {
    if (point.megahertz == megahertz) return point;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--clock is ", megahertz, ", but stage ", stage,
      " was not measured at it, expected one of ", found->second.size(),
      " clocks from ", found->second.front().megahertz, " to ",
      found->second.back().megahertz, " MHz"));
}

class PassPowers {
 public:
  explicit PassPowers(const MeasuredPower& power) : power_(power) {}

  // Returns the watts of a pass.
  absl::StatusOr<double> WattsOf(int stage, Op op) {
    const auto known = watts_.find({stage, op});
    if (known != watts_.end()) return known->second;
    ASSIGN_OR_RETURN(const double watts, Measured(stage, op));
    return watts_[{stage, op}] = watts;
  }

 private:
  absl::StatusOr<double> Measured(int stage, Op op) const {
    ASSIGN_OR_RETURN(const std::optional<ClockPoint> own,
                     PointAt(power_.profile, stage, op, power_.megahertz));
    if (own.has_value()) return own->joules / own->seconds;
    double joules = 0, seconds = 0;
    for (const Op part :
         {Op::kBackward, Op::kBackwardInput, Op::kBackwardWeight}) {
      if (op == Op::kForward) break;
      ASSIGN_OR_RETURN(const std::optional<ClockPoint> other,
                       PointAt(power_.profile, stage, part, power_.megahertz));
      if (!other.has_value()) continue;
      joules += other->joules;
      seconds += other->seconds;
    }
    if (seconds > 0) return joules / seconds;
    return absl::InvalidArgumentError(
        absl::StrCat("--energy: the run has a pass of stage ", stage,
                     ", expected the stages of the profile, 0 to ",
                     power_.profile.num_stages - 1));
  }

  const MeasuredPower& power_;
  std::map<std::pair<int, Op>, double> watts_;
};

std::optional<Op> OpOf(Timeline::Actions::Op op) {
  switch (op) {
    case Timeline::Actions::FORWARD:
      return Op::kForward;
    case Timeline::Actions::BACKWARD:
      return Op::kBackward;
    case Timeline::Actions::BACKWARD_INPUT:
      return Op::kBackwardInput;
    case Timeline::Actions::BACKWARD_WEIGHT:
      return Op::kBackwardWeight;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<StepEnergy> EnergyOfPasses(const Result& result,
                                          const MeasuredPower& power,
                                          const EnergyPrices& prices) {
  const Timeline::Actions& actions = result.timeline().actions();
  if (actions.gpu().empty() || result.ranks_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--energy: ", result.name(),
                     " has no timeline, expected a simulated result with one"));
  }
  if (result.num_batches() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--energy: ", result.schedule(), " was simulated for ",
        result.num_batches(),
        " batches, expected a schedule with a flush for measured passes"));
  }
  PassPowers powers(power);
  StepEnergy energy;
  double busy_seconds = 0;
  for (int i = 0; i < actions.gpu_size(); ++i) {
    const std::optional<Op> op = OpOf(actions.op(i));
    if (!op.has_value()) continue;
    const double seconds = actions.end_seconds(i) - actions.start_seconds(i);
    ASSIGN_OR_RETURN(const double watts, powers.WattsOf(actions.stage(i), *op));
    energy.compute_joules += watts * seconds;
    busy_seconds += seconds;
  }
  const double gpu_seconds = result.ranks_size() * result.batch_seconds();
  energy.waiting_joules =
      power.blocking_watts * std::max(gpu_seconds - busy_seconds, 0.0);
  energy.watts_per_gpu = energy.joules() / gpu_seconds;
  FillRunEnergy(result, prices, &energy);
  return energy;
}

absl::StatusOr<GivenCosts> CostsAtClock(const ClockProfile& profile,
                                        double megahertz) {
  GivenCosts costs;
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    GivenCosts::Stage* own = costs.add_stages();
    const auto set = [&](Op op, auto setter) -> absl::Status {
      ASSIGN_OR_RETURN(const std::optional<ClockPoint> point,
                       PointAt(profile, stage, op, megahertz));
      if (point.has_value()) (own->*setter)(point->seconds);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(set(Op::kForward, &GivenCosts::Stage::set_forward_seconds));
    RETURN_IF_ERROR(
        set(Op::kBackward, &GivenCosts::Stage::set_backward_seconds));
    if (own->has_backward_seconds()) continue;
    RETURN_IF_ERROR(set(Op::kBackwardInput,
                        &GivenCosts::Stage::set_backward_input_seconds));
    RETURN_IF_ERROR(set(Op::kBackwardWeight,
                        &GivenCosts::Stage::set_backward_weight_seconds));
  }
  return costs;
}

}  // namespace weir::plan
