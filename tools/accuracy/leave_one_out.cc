// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/leave_one_out.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/accuracy/row_errors.h"
#include "tools/accuracy/source_errors.h"

namespace weir {
namespace {

constexpr double kGrid = 0.005;
constexpr double kLeastSlowdown = -0.3, kMostSlowdown = 0.7;

// Returns the mean over sources of the mean of `value` over their steps.
double MeanOverSources(
    absl::Span<const MeasuredStep> steps,
    const std::function<double(const MeasuredStep&)>& value) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const MeasuredStep& step : steps) {
    if (!step.fitted) continue;
    auto& [sum, count] = sums[step.source];
    sum += value(step);
    ++count;
  }
  double mean = 0;
  for (const auto& [source, sum] : sums) mean += sum.first / sum.second;
  return sums.empty() ? 0 : mean / sums.size();
}

int NumSources(absl::Span<const MeasuredStep> steps) {
  std::map<std::string, int> counts;
  for (const MeasuredStep& step : steps) {
    if (step.fitted) ++counts[step.source];
  }
  return static_cast<int>(counts.size());
}

// Returns the value that a variable with Student's distribution exceeds in one
// of 20 cases. Exact for up to two degrees of freedom, otherwise by an
// expansion (Abramowitz and Stegun 1964, 26.7.5) within 1 %.
double StudentLimit(int degrees) {
  if (degrees == 1) return std::tan(0.45 * std::numbers::pi);
  if (degrees == 2) return 0.9 * std::sqrt(2 / (1 - 0.9 * 0.9));
  const double z = kNineOfTen;
  const double z3 = z * z * z;
  return z + (z3 + z) / (4 * degrees) +
         (5 * z3 * z * z + 16 * z3 + 3 * z) / (96.0 * degrees * degrees);
}

struct ErrorSums {
  int count = 0;
  double sum = 0, sum_of_squares = 0;  // of logarithmic errors
  double variance = 0;                 // sum of the stated variances
  double mean() const { return sum / count; }
};

// Returns the standard deviation of a step of a new source that the prediction
// itself does not state. The errors of a source have a common part, with a
// variance between sources, and a part of their own, with a variance within
// sources. The first is estimated from few sources, so its limits are those of
// Student's distribution, and the mean of a new source differs from the fitted
// slowdown by its own part and by the error of the fit.
double ResidualOf(absl::Span<const MeasuredStep> steps, double log_slowdown) {
  std::map<std::string, ErrorSums> sources;
  for (const MeasuredStep& step : steps) {
    if (!step.fitted || step.deviation < 0) continue;
    ErrorSums& source = sources[step.source];
    const double error = step.ErrorAt(log_slowdown);
    ++source.count;
    source.sum += error;
    source.sum_of_squares += error * error;
    source.variance += step.deviation * step.deviation;
  }
  const int n = static_cast<int>(sources.size());
  if (n < 2) return 0;
  double between = 0, within = 0, stated = 0;
  for (const auto& [name, source] : sources) {
    between += source.mean() * source.mean() / (n - 1);
    stated += source.variance / source.count / n;
    if (source.count == 1) continue;
    within += (source.sum_of_squares - source.sum * source.mean()) /
              (source.count - 1) / n;
  }
  const double limit = StudentLimit(n - 1) / kNineOfTen;
  const double whole = limit * limit * (between * (1 + 1.0 / n) + within);
  return std::sqrt(std::max(whole - stated, 0.0));
}

// "H100" of "H100 500 W".
std::string FirstWord(const std::string& text) {
  return text.substr(0, text.find(' '));
}

bool IsWholeStep(const PublishedSet& set) {
  if (set.source.empty() || set.scenario.empty() || !set.part_of.empty()) {
    return false;
  }
  const auto kind = KindOfQuantity(set.quantity);
  return kind.ok() && *kind == MeasuredKind::kStepTime;
}

absl::StatusOr<std::vector<MeasuredStep>> StepsOf(const PublishedSet& set,
                                                  const std::string& folder,
                                                  const std::string& slowed,
                                                  double factor) {
  const std::string file = absl::StrCat("/", set.name, ".csv");
  ASSIGN_OR_RETURN(const RowErrors rows,
                   LoadRowErrors(folder + file, set.quantity));
  ASSIGN_OR_RETURN(const RowErrors slow,
                   LoadRowErrors(slowed + file, set.quantity));
  if (rows.lines != slow.lines) {
    return absl::InvalidArgumentError(
        absl::StrCat(slowed, file, ": has other rows than ", folder, file));
  }
  const double sign = IsRate(set.quantity) ? -1 : 1;
  std::vector<MeasuredStep> steps;
  for (size_t i = 0; i < rows.lines.size(); ++i) {
    MeasuredStep& step = steps.emplace_back();
    step.source = set.source;
    step.program = set.program;
    step.fitted = set.not_fitted.empty();
    step.log_error = sign * std::log(rows.measured[i] / rows.predicted[i]);
    step.elasticity = sign * std::log(slow.predicted[i] / rows.predicted[i]) /
                      std::log(factor);
    if (i < rows.high.size() && rows.low[i] > 0) {
      step.deviation = std::log(rows.high[i] / rows.low[i]) / (2 * kNineOfTen);
    }
  }
  return steps;
}

struct Errors {
  double mean = 0, bias = 0, worst = 0;  // predicted / measured - 1
};

Errors ErrorsOf(absl::Span<const MeasuredStep> steps, double log_slowdown) {
  Errors errors;
  for (const MeasuredStep& step : steps) {
    const double error = std::exp(-step.ErrorAt(log_slowdown)) - 1;
    errors.mean += std::abs(error) / steps.size();
    errors.bias += error / steps.size();
    if (std::abs(error) > std::abs(errors.worst)) errors.worst = error;
  }
  return errors;
}

std::string InsideOf(absl::Span<const MeasuredStep> steps, const StepFit& fit) {
  int num_inside = 0, num_intervals = 0;
  for (const MeasuredStep& step : steps) {
    if (step.deviation < 0) continue;
    ++num_intervals;
    if (IsInside(step, fit)) ++num_inside;
  }
  return num_intervals == 0
             ? "-"
             : absl::StrFormat("%.0f %%", 100.0 * num_inside / num_intervals);
}

}  // namespace

StepFit FitSteps(absl::Span<const MeasuredStep> steps) {
  StepFit fit;
  if (NumSources(steps) < 2) return fit;
  double least = -1;
  for (int i = 0; kLeastSlowdown + i * kGrid < kMostSlowdown; ++i) {
    const double at = kLeastSlowdown + i * kGrid;
    const double error = MeanOverSources(steps, [&](const MeasuredStep& step) {
      return std::abs(step.ErrorAt(at));
    });
    if (least >= 0 && error >= least) continue;
    least = error;
    fit.log_slowdown = at;
  }
  fit.residual = ResidualOf(steps, fit.log_slowdown);
  return fit;
}

bool IsInside(const MeasuredStep& step, const StepFit& fit) {
  return std::abs(step.ErrorAt(fit.log_slowdown)) <=
         kNineOfTen * std::hypot(step.deviation, fit.residual);
}

absl::StatusOr<std::vector<DeviceFit>> FitDevices(
    absl::Span<const PublishedSet> sets, const std::string& folder,
    const std::string& slowed, double factor) {
  std::vector<DeviceFit> devices;
  std::map<std::string, std::vector<MeasuredStep>> all;
  for (const PublishedSet& set : sets) {
    if (!IsWholeStep(set)) continue;
    ASSIGN_OR_RETURN(std::vector<MeasuredStep> steps,
                     StepsOf(set, folder, slowed, factor));
    const std::string name = FirstWord(set.device);
    std::vector<MeasuredStep>& of_device = all[name];
    if (of_device.empty()) devices.emplace_back().device = name;
    DeviceFit& device =
        *std::find_if(devices.begin(), devices.end(),
                      [&](const DeviceFit& one) { return one.device == name; });
    auto source = std::find_if(
        device.left_out.begin(), device.left_out.end(),
        [&](const LeftOutSource& one) { return one.source == set.source; });
    if (source == device.left_out.end()) {
      source = device.left_out.emplace(source);
      source->device = set.device;
      source->source = set.source;
    }
    if (!absl::StrContains(source->programs, set.program)) {
      absl::StrAppend(&source->programs, source->programs.empty() ? "" : ", ",
                      set.program);
    }
    source->steps.insert(source->steps.end(), steps.begin(), steps.end());
    of_device.insert(of_device.end(), steps.begin(), steps.end());
  }
  for (DeviceFit& device : devices) {
    const std::vector<MeasuredStep>& steps = all[device.device];
    device.num_sources = NumSources(steps);
    device.fit = FitSteps(steps);
    for (LeftOutSource& source : device.left_out) {
      std::vector<MeasuredStep> others;
      std::copy_if(steps.begin(), steps.end(), std::back_inserter(others),
                   [&](const MeasuredStep& step) {
                     return step.source != source.source;
                   });
      source.fit = FitSteps(others);
    }
  }
  return devices;
}

std::string LeaveOneOutTables(absl::Span<const DeviceFit> devices) {
  std::string text = R"(## Sources left out

Every source is predicted with figures that were fitted without it. Errors are those of step times, predicted /
measured - 1: below 0, a step is predicted too fast. "not slowed" are the errors without the fitted slowdown.

| device | source | program | steps | mean abs. error | bias | worst | inside 90 % | not slowed: mean | bias |
|---|---|---|---|---|---|---|---|---|---|
)";
  for (const DeviceFit& device : devices) {
    for (const LeftOutSource& source : device.left_out) {
      if (source.steps.empty()) continue;
      const Errors out = ErrorsOf(source.steps, source.fit.log_slowdown);
      const Errors plain = ErrorsOf(source.steps, 0);
      absl::StrAppendFormat(
          &text,
          "| %s | %s | %s | %d | %.1f %% | %+.1f %% | %+.1f %% | %s | %.1f %% "
          "| %+.1f %% |\n",
          source.device, source.source, source.programs, source.steps.size(),
          100 * out.mean, 100 * out.bias, 100 * out.worst,
          InsideOf(source.steps, source.fit), 100 * plain.mean,
          100 * plain.bias);
    }
  }
  absl::StrAppend(&text, R"(
By device; every source has the same weight. A device with one source has no fit: its source cannot be left out. Sets
marked in the last column of `sets.csv` are predicted, but nothing is fitted to them, and they do not count here.

| device | sources | steps | left out: mean abs. error | bias | inside 90 % | slowdown | residual |
|---|---|---|---|---|---|---|---|
)");
  for (const DeviceFit& device : devices) {
    double mean = 0, bias = 0, inside = 0;
    size_t num_steps = 0;
    for (const LeftOutSource& source : device.left_out) {
      if (source.steps.empty() || !source.steps[0].fitted) continue;
      num_steps += source.steps.size();
      const Errors out = ErrorsOf(source.steps, source.fit.log_slowdown);
      mean += out.mean / device.num_sources;
      bias += out.bias / device.num_sources;
      const auto num_inside = std::count_if(
          source.steps.begin(), source.steps.end(),
          [&](const MeasuredStep& step) { return IsInside(step, source.fit); });
      inside += static_cast<double>(num_inside) / source.steps.size() /
                device.num_sources;
    }
    absl::StrAppendFormat(
        &text,
        "| %s | %d | %d | %.1f %% | %+.1f %% | %.0f %% | %.3f | %.3f |\n",
        device.device, device.num_sources, num_steps, 100 * mean, 100 * bias,
        100 * inside, std::exp(device.fit.log_slowdown), device.fit.residual);
  }
  return text;
}

}  // namespace weir
