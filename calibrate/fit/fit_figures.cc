// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_figures.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr double kOutlier = 0.05;  // in units of the logarithm
// Weight of a change of a parameter by its own size, in units of the logarithm
// of one sample. It only holds parameters that no sample determines.
constexpr double kHoldFigures = 1e-4;
constexpr double kLaunch = 1e-6;  // unit of launch_seconds
constexpr double kRamp = 100;     // unit of ramp_keys
constexpr double kLeastEfficiency = 1e-3;

template <int N>
struct HoldFigures {
  double start[N];

  template <typename T>
  bool operator()(const T* now, T* residuals) const {
    for (int i = 0; i < N; ++i)
      residuals[i] = kHoldFigures * (now[i] - start[i]);
    return true;
  }
};

// launch [us] and the three efficiencies
constexpr int kNumStream = 4;

template <typename T>
T StreamSeconds(double peak, const StreamSample& sample, const T* figures) {
  return sample.launches * kLaunch * figures[0] +
         sample.bytes / (peak * figures[1 + static_cast<int>(sample.kind)]);
}

struct StreamResidual {
  double peak;
  const StreamSample* sample;

  template <typename T>
  bool operator()(const T* figures, T* residual) const {
    using std::log;
    *residual = log(StreamSeconds(peak, *sample, figures) / sample->seconds);
    return true;
  }
};

// Efficiencies of both directions, ramp [100 keys].
constexpr int kNumAttention = 3;

template <typename T>
T AttentionSeconds(double peak, double launch, const AttentionSample& sample,
                   const T* figures) {
  const T flops = sample.flops + sample.flops_per_ramp_key * kRamp * figures[2];
  return sample.launches * launch +
         flops / (peak * sample.relative_efficiency *
                  figures[sample.num_gemms > 2 ? 1 : 0]);
}

struct AttentionResidual {
  double peak, launch;
  const AttentionSample* sample;

  template <typename T>
  bool operator()(const T* figures, T* residual) const {
    using std::log;
    *residual =
        log(AttentionSeconds(peak, launch, *sample, figures) / sample->seconds);
    return true;
  }
};

template <typename Sample>
absl::Status CheckSamples(absl::Span<const Sample> samples,
                          double Sample::*size, const char* what) {
  if (samples.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no ", what, " is measured"));
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!(samples[i].*size > 0 && samples[i].seconds > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " ", i, " has a size or a time that is not positive"));
    }
  }
  return absl::OkStatus();
}

template <int N>
absl::Status SolveFigures(const char* what, ceres::Problem* problem,
                          double* figures) {
  HoldFigures<N>* hold = new HoldFigures<N>;
  std::copy(figures, figures + N, hold->start);
  problem->AddResidualBlock(
      new ceres::AutoDiffCostFunction<HoldFigures<N>, N, N>(hold), nullptr,
      figures);
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.function_tolerance = 1e-14;
  options.parameter_tolerance = 1e-14;
  options.gradient_tolerance = 1e-16;
  options.num_threads = 1;  // fixed order of summation
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, problem, &summary);
  if (summary.IsSolutionUsable()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " cannot be fitted: ", summary.message));
}

}  // namespace

double SecondsOf(double peak_bytes_per_second, const StreamFigures& figures,
                 const StreamSample& sample) {
  const double scaled[kNumStream] = {
      figures.launch_seconds / kLaunch, figures.efficiency[0],
      figures.efficiency[1], figures.efficiency[2]};
  return StreamSeconds<double>(peak_bytes_per_second, sample, scaled);
}

absl::StatusOr<StreamFit> FitStreams(double peak_bytes_per_second,
                                     const StreamFigures& start,
                                     absl::Span<const StreamSample> samples) {
  const double peak = peak_bytes_per_second;
  RETURN_IF_ERROR(
      CheckSamples(samples, &StreamSample::bytes, "streaming kernel"));
  double figures[kNumStream] = {start.launch_seconds / kLaunch};
  for (int i = 0; i < 3; ++i) {
    figures[1 + i] = std::clamp(start.efficiency[i], kLeastEfficiency, 1.0);
  }
  ceres::Problem problem;
  for (const StreamSample& sample : samples) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<StreamResidual, 1, kNumStream>(
            new StreamResidual{peak, &sample}),
        new ceres::SoftLOneLoss(kOutlier), figures);
  }
  problem.SetParameterLowerBound(figures, 0, 0);
  problem.SetParameterUpperBound(figures, 0, 1e3);
  for (int i = 1; i < kNumStream; ++i) {
    problem.SetParameterLowerBound(figures, i, kLeastEfficiency);
    problem.SetParameterUpperBound(figures, i, 1);
  }
  RETURN_IF_ERROR(
      SolveFigures<kNumStream>("streaming kernels", &problem, figures));
  StreamFit fit;
  fit.figures = {figures[0] * kLaunch, {figures[1], figures[2], figures[3]}};
  std::vector<double> predicted, measured;
  for (const StreamSample& sample : samples) {
    predicted.push_back(SecondsOf(peak, fit.figures, sample));
    measured.push_back(sample.seconds);
  }
  fit.errors = SummarizeErrors(predicted, measured);
  return fit;
}

AttentionSample SampleOf(const models::Kernel& attention, double seconds) {
  AttentionSample sample;
  sample.num_gemms = attention.num_gemms;
  sample.flops = attention.performed_flops > 0 ? attention.performed_flops
                                               : attention.flops;
  sample.flops_per_ramp_key =
      2 * attention.num_gemms * attention.batch * attention.m * attention.k;
  sample.launches = attention.launches;
  sample.seconds = seconds;
  return sample;
}

AttentionFigures AttentionFiguresOf(const DeviceProfile& profile) {
  AttentionFigures figures;
  figures.forward_efficiency = profile.has_attention_efficiency()
                                   ? profile.attention_efficiency().value()
                                   : 0.5;
  figures.backward_efficiency =
      profile.has_attention_backward_efficiency()
          ? profile.attention_backward_efficiency().value()
          : figures.forward_efficiency;
  figures.ramp_keys = profile.attention_ramp_keys().value();
  return figures;
}

double SecondsOf(double peak_flops, double launch_seconds,
                 const AttentionFigures& figures,
                 const AttentionSample& sample) {
  const double scaled[kNumAttention] = {figures.forward_efficiency,
                                        figures.backward_efficiency,
                                        figures.ramp_keys / kRamp};
  return AttentionSeconds<double>(peak_flops, launch_seconds, sample, scaled);
}

absl::StatusOr<AttentionFit> FitAttention(
    double peak_flops, double launch_seconds, const AttentionFigures& start,
    absl::Span<const AttentionSample> samples) {
  RETURN_IF_ERROR(
      CheckSamples(samples, &AttentionSample::flops, "fused attention"));
  double figures[kNumAttention] = {
      std::clamp(start.forward_efficiency, kLeastEfficiency, 1.0),
      std::clamp(start.backward_efficiency, kLeastEfficiency, 1.0),
      start.ramp_keys / kRamp};
  ceres::Problem problem;
  for (const AttentionSample& sample : samples) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<AttentionResidual, 1, kNumAttention>(
            new AttentionResidual{peak_flops, launch_seconds, &sample}),
        new ceres::SoftLOneLoss(kOutlier), figures);
  }
  for (int i = 0; i < 2; ++i) {
    problem.SetParameterLowerBound(figures, i, kLeastEfficiency);
    problem.SetParameterUpperBound(figures, i, 1);
  }
  problem.SetParameterLowerBound(figures, 2, 0);
  problem.SetParameterUpperBound(figures, 2, 1e3);
  RETURN_IF_ERROR(
      SolveFigures<kNumAttention>("fused attention", &problem, figures));
  AttentionFit fit;
  fit.figures = {figures[0], figures[1], figures[2] * kRamp};
  std::vector<double> predicted, measured;
  for (const AttentionSample& sample : samples) {
    predicted.push_back(
        SecondsOf(peak_flops, launch_seconds, fit.figures, sample));
    measured.push_back(sample.seconds);
  }
  fit.errors = SummarizeErrors(predicted, measured);
  return fit;
}

}  // namespace weir::calibrate
