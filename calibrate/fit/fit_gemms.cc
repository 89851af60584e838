// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_gemms.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/pricing/gemm_terms.h"
#include "calibrate/profile/gemm_model.h"

namespace weir::calibrate {
namespace {

constexpr int kNumFitted = 10;         // all GemmFigures() but sustained_rate
constexpr double kGemmOutlier = 0.05;  // in units of the logarithm
// Residual of a parameter that changes by its own size; the residual of a
// sample is the logarithm of its relative error.
constexpr double kHold = 0.05;
// Another minimum must be lower than the one reached from `start` by this
// factor.
constexpr double kClearlyLower = 0.98;

// Parameters as fractions of their starting values.
using Parts = std::array<double, kNumFitted>;

// The GPU, and the clocks of all samples.
struct Setting {
  GemmMachine machine;
  Clock clock = Clock::kBurst;
  double sustained_rate = 1;
  std::array<double, 3> aligned_rates = {1, 1, 1};
  Parts units;
};

template <typename T>
GemmTerms<T> TermsAt(const Setting& setting, const T* parts) {
  const auto at = [&](int i) { return setting.units[i] * parts[i]; };
  const GemmTerms<T> terms = {at(0),
                              at(1),
                              at(2),
                              at(3),
                              at(4),
                              at(5),
                              at(6),
                              at(7),
                              at(8),
                              at(9),
                              setting.aligned_rates};
  return setting.clock == Clock::kBurst
             ? terms
             : Sustained(terms, setting.sustained_rate);
}

bool HasRate(const GemmModel& model, const GemmFigure& figure) {
  return (model.*figure.get)().value() > 0;
}

bool ShowsAt(Clock clock, const GemmFigure& figure) {
  const absl::string_view name = figure.name;
  return clock == Clock::kBurst ||
         (name != "cache_bytes" && name != "throttling");
}

double Scalar(double x) { return x; }
template <typename T, int N>
double Scalar(const ceres::Jet<T, N>& x) {
  return x.a;
}

// Logarithm of predicted over measured seconds, differentiated for the kernel
// that is fastest at the current parameters.
struct LogResidual {
  const Setting* setting;
  const GemmSample* sample;

  template <typename T>
  bool operator()(const T* parts, T* residual) const {
    using std::log;
    Parts plain;
    for (int i = 0; i < kNumFitted; ++i) plain[i] = Scalar(parts[i]);
    const GemmMachine& machine = setting->machine;
    const GemmChoice choice =
        FastestGemm(machine, TermsAt(*setting, plain.data()), sample->shape);
    *residual =
        log(CandidateSeconds(machine, TermsAt(*setting, parts), sample->shape,
                             choice.tile_m, choice.tile_n, choice.splits) /
            sample->seconds);
    return true;
  }
};

struct Hold {
  double parts[kNumFitted];

  template <typename T>
  bool operator()(const T* now, T* residuals) const {
    for (int i = 0; i < kNumFitted; ++i) {
      residuals[i] = kHold * (now[i] - parts[i]);
    }
    return true;
  }
};

absl::Status Check(absl::Span<const GemmSample> samples) {
  if (samples.empty()) {
    return absl::InvalidArgumentError("no GEMM is measured");
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const GemmSize& shape = samples[i].shape;
    const double least = std::min({shape.batch, shape.m, shape.n, shape.k,
                                   shape.bytes, samples[i].seconds});
    if (!(least > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "GEMM ", i, " has a size or a time that is not positive"));
    }
  }
  return absl::OkStatus();
}

// Minimizes the misfit over `parts` and returns it.
absl::StatusOr<double> Solve(const Setting& setting,
                             absl::Span<const GemmSample> samples,
                             Parts* parts) {
  ceres::Problem problem;
  for (const GemmSample& sample : samples) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<LogResidual, 1, kNumFitted>(
            new LogResidual{&setting, &sample}),
        new ceres::SoftLOneLoss(kGemmOutlier), parts->data());
  }
  Hold hold;
  std::copy(parts->begin(), parts->end(), hold.parts);
  problem.AddResidualBlock(
      new ceres::AutoDiffCostFunction<Hold, kNumFitted, kNumFitted>(
          new Hold(hold)),
      nullptr, parts->data());
  for (int i = 0; i < kNumFitted; ++i) {
    const GemmFigure& figure = GemmFigures()[i];
    problem.SetParameterLowerBound(parts->data(), i,
                                   figure.low / setting.units[i]);
    problem.SetParameterUpperBound(parts->data(), i,
                                   figure.high / setting.units[i]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  options.max_num_iterations = 100;
  options.function_tolerance = 1e-7;
  options.num_threads = 1;  // fixed order of summation
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  if (!summary.IsSolutionUsable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the GEMMs cannot be fitted: ", summary.message));
  }
  return summary.final_cost;
}

struct LocalMinimum {
  GemmModel model;
  double cost = 0;
};

// Returns the model at the local minimum reached from `start`.
absl::StatusOr<LocalMinimum> Descend(const GemmMachine& machine,
                                     const GemmModel& start,
                                     absl::Span<const GemmSample> samples,
                                     Clock clock) {
  Setting setting = {machine,
                     clock,
                     start.sustained_rate().value(),
                     AlignedRatesOf(start),
                     {}};
  Parts parts;
  Parts& units = setting.units;
  for (int i = 0; i < kNumFitted; ++i) {
    const GemmFigure& figure = GemmFigures()[i];
    const double value =
        std::clamp((start.*figure.get)().value(), figure.low, figure.high);
    units[i] = std::max(value, figure.scale);
    parts[i] = value / units[i];
  }
  LocalMinimum valley;
  ASSIGN_OR_RETURN(valley.cost, Solve(setting, samples, &parts));
  valley.model = start;
  for (int i = 0; i < kNumFitted; ++i) {
    if (!ShowsAt(clock, GemmFigures()[i])) continue;
    (valley.model.*GemmFigures()[i].mutate)()->set_value(units[i] * parts[i]);
  }
  return valley;
}

}  // namespace

absl::StatusOr<GemmFit> FitGemms(const GemmMachine& machine,
                                 const GemmModel& start,
                                 absl::Span<const GemmSample> samples,
                                 absl::string_view source, Clock clock) {
  RETURN_IF_ERROR(Check(samples));
  ASSIGN_OR_RETURN(LocalMinimum best, Descend(machine, start, samples, clock));
  const double enough = kClearlyLower * best.cost;
  for (const double quantization : {0.1, 0.9}) {
    GemmModel generic = GenericGemms(machine, quantization);
    *generic.mutable_sustained_rate() = start.sustained_rate();
    for (const GemmFigure& figure : AlignmentFigures()) {
      if (!HasRate(start, figure)) continue;
      *(generic.*figure.mutate)() = (start.*figure.get)();
    }
    for (const GemmFigure& figure : GemmFigures()) {
      if (ShowsAt(clock, figure)) continue;
      *(generic.*figure.mutate)() = (start.*figure.get)();
    }
    ASSIGN_OR_RETURN(const LocalMinimum other,
                     Descend(machine, generic, samples, clock));
    if (other.cost < std::min(enough, best.cost)) best = other;
  }
  GemmFit fit;
  fit.model = best.model;
  for (int i = 0; i < kNumFitted; ++i) {
    if (!ShowsAt(clock, GemmFigures()[i])) continue;
    Figure* figure = (fit.model.*GemmFigures()[i].mutate)();
    figure->set_kind(Figure::FITTED);
    figure->set_source(std::string(source));
  }
  std::vector<double> measured;
  for (const GemmSample& sample : samples) {
    measured.push_back(sample.seconds);
  }
  fit.errors = SummarizeErrors(PredictGemms(machine, fit.model, samples, clock),
                               measured);
  return fit;
}

GemmModel GenericGemms(const GemmMachine& machine, double wave_quantization) {
  const double memory = machine.memory_bytes_per_second;
  // A tile of 256 x 128 loads 0.012 bytes per FLOP from the cache.
  const double cache = 0.015 * machine.flops_per_second;
  const double values[] = {
      // in the order of the message
      2.5e-6, 5e-7, 0.9, cache, 1.5, memory, 0.85, 32e6, wave_quantization,
      0.05,   0.9};
  GemmModel model;
  int i = 0;
  for (const GemmFigure& figure : GemmFigures()) {
    Figure* target = (model.*figure.mutate)();
    target->set_value(values[i++]);
    target->set_kind(Figure::ASSUMED);
    target->set_source("typical value for a GPU");
  }
  return model;
}

std::vector<double> PredictGemms(const GemmMachine& machine,
                                 const GemmModel& model,
                                 absl::Span<const GemmSample> samples,
                                 Clock clock) {
  const GemmTerms<double> terms = TermsOf(model, clock);
  std::vector<double> seconds;
  for (const GemmSample& sample : samples) {
    seconds.push_back(FastestGemm(machine, terms, sample.shape).seconds);
  }
  return seconds;
}

absl::StatusOr<std::vector<double>> CrossValidateGemms(
    const GemmMachine& machine, const GemmModel& start,
    absl::Span<const GemmSample> samples, absl::Span<const int> groups,
    Clock clock) {
  const auto pick = [&](absl::Span<const int> rows) {
    std::vector<GemmSample> picked;
    for (int row : rows) picked.push_back(samples[row]);
    return picked;
  };
  return CrossValidate(
      groups,
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        ASSIGN_OR_RETURN(
            const GemmFit fit,
            FitGemms(machine, start, pick(fitted), "cross-validation", clock));
        return PredictGemms(machine, fit.model, pick(left_out), clock);
      });
}

}  // namespace weir::calibrate
