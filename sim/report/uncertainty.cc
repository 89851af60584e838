// SPDX-License-Identifier: Apache-2.0
#include "sim/report/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "calibrate/pricing/link_seconds.h"
#include "calibrate/profile/figures.h"
#include "sim/report/coverage.h"
#include "sim/report/evidence.h"

namespace weir::sim {
namespace {

constexpr double kDefaultGemmResidual = 0.1;
constexpr double kDefaultCollectiveResidual = 0.1;
constexpr double kDefaultMemoryResidual = 0.15;
constexpr double kDefaultStepResidual = 0.06;

// Error of layers that were measured whole.
constexpr double kGivenError = 0.02;
// A normal variable lies within this many standard deviations of its mean in
// nine cases of ten.
constexpr double kNineOfTen = 1.6448536269514722;

double ValueOr(bool has, const Figure& figure, double value) {
  return has ? figure.value() : value;
}

bool IsMemory(const models::Kernel& kernel) {
  return kernel.kind == models::Kernel::Kind::kMemory;
}

// Returns true if two kernels have the same error factor.
bool ShareResidual(const models::Kernel& a, const models::Kernel& b) {
  if (a.kind != b.kind) return false;
  if (IsMemory(a)) return a.part == b.part;
  return a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k &&
         a.num_gemms == b.num_gemms;
}

class Variations {
 public:
  Variations(const scenarios::ResolvedScenario& scenario, const GpuWork& work)
      : work_(work),
        device_(DeviceOf(scenario, work.device)),
        first_(scenario.device),
        runtime_(scenario.runtime),
        base_(Price()),
        base_seconds_(WorkSeconds(work, base_, base_)),
        kinds_(work, base_) {}

  Uncertainty Run() {
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      const LinkClass* link =
          calibrate::FindLink(first_, work_.calls[i].distance);
      if (link != nullptr) kinds_.SetCall(i, link->figure().kind());
    }
    Uncertainty result;
    if (!(base_seconds_ > 0)) return result;
    result.set_figures(std::sqrt(Figures()));
    result.set_kernels(std::sqrt(Kernels()));
    result.set_collectives(std::sqrt(OfCollectives()));
    result.set_step(ValueOr(runtime_.has_step_residual(),
                            runtime_.step_residual(), kDefaultStepResidual));
    result.set_slower_step(device_.slower_step_residual().value());
    result.set_faster_step(device_.faster_step_residual().value());
    return result;
  }

  // Requires: Run() was called.
  SecondsByEvidence Evidence(double batch_seconds) const {
    return EvidenceOf(work_, base_, kinds_, device_, batch_seconds);
  }

 private:
  WorkPrices Price() const {
    return PriceWork(work_, device_, first_, runtime_);
  }

  // Returns the square of the change of the logarithm.
  double Change(const WorkPrices& prices, double given_factor = 1) const {
    const double change = std::log(
        WorkSeconds(work_, base_, prices, given_factor) / base_seconds_);
    return change * change;
  }

  double Moved(Figure::Kind kind, double error, const WorkPrices& prices) {
    kinds_.Note(kind, error, prices);
    return Change(prices);
  }

  // Returns false for the figures of experts, latent attention and recurrences
  // where the work has none of them.
  bool IsUsed(absl::string_view path) const {
    const auto any_kernel = [&](models::Kernel::Variant variant) {
      return std::any_of(work_.kernels.begin(), work_.kernels.end(),
                         [&](const models::Kernel& kernel) {
                           return kernel.variant == variant;
                         });
    };
    if (absl::StartsWith(path, "collectives.dispatch.") ||
        absl::StartsWith(path, "collectives.combine.")) {
      return std::any_of(
          work_.calls.begin(), work_.calls.end(),
          [](const CollectiveCall& call) { return call.routing.tokens > 0; });
    }
    if (absl::StartsWith(path, "latent_attention.")) {
      return any_kernel(models::Kernel::Variant::kLatent);
    }
    static constexpr std::pair<absl::string_view, models::Kernel::Variant>
        kVariants[] = {
            {"grouped_gemm_time", models::Kernel::Variant::kGrouped},
            {"decay_recurrence_efficiency", models::Kernel::Variant::kDecay},
            {"delta_recurrence_efficiency", models::Kernel::Variant::kDelta},
            {"convolution_efficiency", models::Kernel::Variant::kConvolution}};
    for (const auto& [figure, variant] : kVariants) {
      if (path == figure) return any_kernel(variant);
    }
    return true;
  }

  // Collectives are those of the first device, kernels those of this one.
  double FiguresOfDevice(DeviceProfile* device, bool collectives) {
    double sum = 0;
    for (const calibrate::NamedFigure& named : calibrate::FiguresOf(device)) {
      const double error = calibrate::RelativeError(*named.figure);
      const double value = named.figure->value();
      if (absl::StartsWith(named.path, "collectives.") != collectives ||
          error == 0 || value == 0 || !IsUsed(named.path)) {
        continue;
      }
      named.figure->set_value(value * std::exp(error));
      sum += Moved(named.figure->kind(), error, Price());
      named.figure->set_value(value);
    }
    return sum;
  }

  double Figures() {
    double sum = FiguresOfDevice(&device_, false);
    if (!work_.calls.empty()) sum += FiguresOfDevice(&first_, true);
    WorkPrices prices = base_;
    for (const calibrate::NamedFigure& named :
         calibrate::FiguresOf(&prices.runtime)) {
      const double error = calibrate::RelativeError(*named.figure);
      const double value = named.figure->value();
      if (error == 0 || value == 0) continue;
      named.figure->set_value(value * std::exp(error));
      sum += Moved(named.figure->kind(), error, prices);
      named.figure->set_value(value);
    }
    return sum + Change(base_, std::exp(kGivenError));
  }

  double Kernels() const {
    const double gemm = ValueOr(device_.has_gemm_residual(),
                                device_.gemm_residual(), kDefaultGemmResidual);
    const double memory =
        ValueOr(device_.has_memory_residual(), device_.memory_residual(),
                kDefaultMemoryResidual);
    const std::vector<models::Kernel>& kernels = work_.kernels;
    std::vector<bool> done(kernels.size(), false);
    double sum = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (done[i]) continue;
      WorkPrices prices = base_;
      const calibrate::KernelPrice& price = base_.kernels[i];
      if (price.basis != calibrate::KernelPrice::Basis::kFigures) {
        // Its own error; between two measured sizes at most that of the
        // formula.
        prices.kernels[i].seconds *=
            std::exp(std::hypot(price.relative_error, gemm * price.distance));
        sum += Change(prices);
        continue;
      }
      for (size_t k = i; k < kernels.size(); ++k) {
        if (base_.kernels[k].basis != calibrate::KernelPrice::Basis::kFigures ||
            !ShareResidual(kernels[i], kernels[k])) {
          continue;
        }
        done[k] = true;
        prices.kernels[k].seconds *=
            std::exp(IsMemory(kernels[i]) ? memory : gemm);
      }
      sum += Change(prices);
    }
    return sum;
  }

  double OfCollectives() const {
    const double residual =
        ValueOr(first_.has_collective_residual(), first_.collective_residual(),
                kDefaultCollectiveResidual);
    double sum = 0;
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      WorkPrices prices = base_;
      const LinkClass* link =
          calibrate::FindLink(first_, work_.calls[i].distance);
      prices.call_seconds[i] *=
          std::exp(link == nullptr
                       ? residual
                       : std::hypot(link->residual(),
                                    calibrate::RelativeError(link->figure())));
      sum += Change(prices);
    }
    return sum;
  }

  const GpuWork& work_;
  DeviceProfile device_, first_;
  const Runtime& runtime_;
  const WorkPrices base_;
  const double base_seconds_;
  WeakestKinds kinds_;
};

}  // namespace

Uncertainty UncertaintyOf(const scenarios::ResolvedScenario& scenario,
                          const GpuWork& work) {
  return Variations(scenario, work).Run();
}

LogErrors TotalLogErrors(const Uncertainty& uncertainty) {
  const double both =
      std::hypot(std::hypot(uncertainty.figures(), uncertainty.kernels()),
                 std::hypot(uncertainty.collectives(), uncertainty.step()),
                 uncertainty.unrecorded());
  return {.faster = std::hypot(both, uncertainty.faster_step()),
          .slower = std::hypot(both, uncertainty.slower_step())};
}

void FillUncertainty(const scenarios::ResolvedScenario& scenario,
                     const GpuWork& work, Result* result) {
  Variations variations(scenario, work);
  *result->mutable_uncertainty() = variations.Run();
  *result->mutable_seconds_by_evidence() =
      variations.Evidence(result->batch_seconds());
  const Unrecorded unrecorded =
      UnrecordedOf(scenario, DeviceOf(scenario, work.device));
  result->mutable_uncertainty()->set_unrecorded(unrecorded.error);
  const LogErrors errors = TotalLogErrors(result->uncertainty());
  result->set_batch_seconds_low(result->batch_seconds() *
                                std::exp(-kNineOfTen * errors.faster));
  result->set_batch_seconds_high(result->batch_seconds() *
                                 std::exp(kNineOfTen * errors.slower));
  WarnOfCoverage(scenario, work, unrecorded, result);
}

}  // namespace weir::sim
