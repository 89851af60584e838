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

namespace weir {
namespace {

constexpr int kNumFitted = 10;     // all ProductFigures() but sustained_rate
constexpr double kOutlier = 0.05;  // in units of the logarithm
// Weight of a change of a parameter by its own size, in units of the logarithm
// of one sample.
constexpr double kHold = 0.05;
// Another minimum must be lower than the one reached from `start` by this
// factor.
constexpr double kClearlyLower = 0.98;

// Parameters as fractions of their starting values.
using Parts = std::array<double, kNumFitted>;

// The GPU, and the clocks of all samples.
struct Setting {
  ProductMachine machine;
  Clock clock = Clock::kBurst;
  double sustained_rate = 1;
  Parts units;
};

template <typename T>
ProductTerms<T> TermsAt(const Setting& setting, const T* parts) {
  const auto at = [&](int i) { return setting.units[i] * parts[i]; };
  const ProductTerms<T> terms = {at(0), at(1), at(2), at(3), at(4),
                                 at(5), at(6), at(7), at(8), at(9)};
  return setting.clock == Clock::kBurst
             ? terms
             : Sustained(terms, setting.sustained_rate);
}

bool ShowsAt(Clock clock, const ProductFigure& figure) {
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
struct Misfit {
  const Setting* setting;
  const ProductSample* sample;

  template <typename T>
  bool operator()(const T* parts, T* residual) const {
    using std::log;
    Parts plain;
    for (int i = 0; i < kNumFitted; ++i) plain[i] = Scalar(parts[i]);
    const ProductMachine& machine = setting->machine;
    const ProductChoice choice =
        FastestProduct(machine, TermsAt(*setting, plain.data()), sample->shape);
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

absl::Status Check(absl::Span<const ProductSample> samples) {
  if (samples.empty()) {
    return absl::InvalidArgumentError("no product is measured");
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    const ProductShape& shape = samples[i].shape;
    const double least = std::min({shape.batch, shape.m, shape.n, shape.k,
                                   shape.bytes, samples[i].seconds});
    if (!(least > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "product ", i, " has a size or a time that is not above 0"));
    }
  }
  return absl::OkStatus();
}

// Minimizes the misfit over `parts` and returns it.
absl::StatusOr<double> Solve(const Setting& setting,
                             absl::Span<const ProductSample> samples,
                             Parts* parts) {
  ceres::Problem problem;
  for (const ProductSample& sample : samples) {
    problem.AddResidualBlock(
        new ceres::AutoDiffCostFunction<Misfit, 1, kNumFitted>(
            new Misfit{&setting, &sample}),
        new ceres::SoftLOneLoss(kOutlier), parts->data());
  }
  Hold hold;
  std::copy(parts->begin(), parts->end(), hold.parts);
  problem.AddResidualBlock(
      new ceres::AutoDiffCostFunction<Hold, kNumFitted, kNumFitted>(
          new Hold(hold)),
      nullptr, parts->data());
  for (int i = 0; i < kNumFitted; ++i) {
    const ProductFigure& figure = ProductFigures()[i];
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
        absl::StrCat("the products cannot be fitted: ", summary.message));
  }
  return summary.final_cost;
}

struct Valley {
  ProductModel model;
  double cost = 0;
};

// Returns the model at the local minimum reached from `start`.
absl::StatusOr<Valley> Descend(const ProductMachine& machine,
                               const ProductModel& start,
                               absl::Span<const ProductSample> samples,
                               Clock clock) {
  Setting setting = {machine, clock, start.sustained_rate().value(), {}};
  Parts parts;
  Parts& units = setting.units;
  for (int i = 0; i < kNumFitted; ++i) {
    const ProductFigure& figure = ProductFigures()[i];
    const double value =
        std::clamp((start.*figure.get)().value(), figure.low, figure.high);
    units[i] = std::max(value, figure.scale);
    parts[i] = value / units[i];
  }
  Valley valley;
  ASSIGN_OR_RETURN(valley.cost, Solve(setting, samples, &parts));
  valley.model = start;
  for (int i = 0; i < kNumFitted; ++i) {
    if (!ShowsAt(clock, ProductFigures()[i])) continue;
    (valley.model.*ProductFigures()[i].mutate)()->set_value(units[i] *
                                                            parts[i]);
  }
  return valley;
}

}  // namespace

absl::StatusOr<ProductFit> FitProducts(const ProductMachine& machine,
                                       const ProductModel& start,
                                       absl::Span<const ProductSample> samples,
                                       absl::string_view source, Clock clock) {
  RETURN_IF_ERROR(Check(samples));
  ASSIGN_OR_RETURN(Valley best, Descend(machine, start, samples, clock));
  const double enough = kClearlyLower * best.cost;
  for (const double quantization : {0.1, 0.9}) {
    ProductModel generic = GenericProducts(machine, quantization);
    *generic.mutable_sustained_rate() = start.sustained_rate();
    for (const ProductFigure& figure : ProductFigures()) {
      if (ShowsAt(clock, figure)) continue;
      *(generic.*figure.mutate)() = (start.*figure.get)();
    }
    ASSIGN_OR_RETURN(const Valley other,
                     Descend(machine, generic, samples, clock));
    if (other.cost < std::min(enough, best.cost)) best = other;
  }
  ProductFit fit;
  fit.model = best.model;
  for (int i = 0; i < kNumFitted; ++i) {
    if (!ShowsAt(clock, ProductFigures()[i])) continue;
    Figure* figure = (fit.model.*ProductFigures()[i].mutate)();
    figure->set_kind(Figure::FITTED);
    figure->set_source(std::string(source));
  }
  std::vector<double> measured;
  for (const ProductSample& sample : samples) {
    measured.push_back(sample.seconds);
  }
  fit.errors = SummarizeErrors(
      PredictProducts(machine, fit.model, samples, clock), measured);
  return fit;
}

ProductModel GenericProducts(const ProductMachine& machine,
                             double wave_quantization) {
  const double memory = machine.memory_bytes_per_second;
  // A tile of 256 x 128 loads 0.012 bytes per FLOP from the cache.
  const double cache = 0.015 * machine.flops_per_second;
  const double values[] = {
      // in the order of the message
      2.5e-6, 5e-7, 0.9, cache, 1.5, memory, 0.85, 32e6, wave_quantization,
      0.05,   0.9};
  ProductModel model;
  int i = 0;
  for (const ProductFigure& figure : ProductFigures()) {
    Figure* target = (model.*figure.mutate)();
    target->set_value(values[i++]);
    target->set_kind(Figure::ASSUMED);
    target->set_source("a middling GPU");
  }
  return model;
}

std::vector<double> PredictProducts(const ProductMachine& machine,
                                    const ProductModel& model,
                                    absl::Span<const ProductSample> samples,
                                    Clock clock) {
  const ProductTerms<double> terms = TermsOf(model, clock);
  std::vector<double> seconds;
  for (const ProductSample& sample : samples) {
    seconds.push_back(FastestProduct(machine, terms, sample.shape).seconds);
  }
  return seconds;
}

absl::StatusOr<std::vector<double>> CrossValidateProducts(
    const ProductMachine& machine, const ProductModel& start,
    absl::Span<const ProductSample> samples, absl::Span<const int> groups,
    Clock clock) {
  const auto pick = [&](absl::Span<const int> rows) {
    std::vector<ProductSample> picked;
    for (int row : rows) picked.push_back(samples[row]);
    return picked;
  };
  return CrossValidate(
      groups,
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        ASSIGN_OR_RETURN(const ProductFit fit,
                         FitProducts(machine, start, pick(fitted),
                                     "cross-validation", clock));
        return PredictProducts(machine, fit.model, pick(left_out), clock);
      });
}

}  // namespace weir
