// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/kernel_prices.h"

#include <algorithm>
#include <cmath>

#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/pricing/slowest_gpu.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

// Standard deviation between the medians of two runs of one benchmark, however
// narrow the confidence interval of each.
constexpr double kRepeatError = 0.02;
// Half the width of a normal variable's 95 % interval.
constexpr double kHalfOf95 = 1.959963984540054;
// Elements of the result may be read or written more than once. Kernels whose
// accesses per element differ by less than this are treated as the same.
constexpr double kSameExtra = 0.25;

double FullFlops(const models::Kernel& kernel) {
  return 2 * kernel.num_gemms * kernel.batch * kernel.m * kernel.n * kernel.k;
}

bool IsCausal(const models::Kernel& kernel) {
  return kernel.performed_flops > 0 &&
         kernel.performed_flops < FullFlops(kernel) * (1 - 1e-9);
}

// Returns the bytes per element of the result beyond moving operands and result
// once. For attention, returns the bytes per element of the queries, which
// reflects how many heads share keys.
double ExtraBytes(const models::Kernel& kernel) {
  if (kernel.kind == models::Kernel::Kind::kAttention) {
    return kernel.bytes / (kernel.batch * kernel.m * kernel.k);
  }
  const double elements =
      kernel.batch *
      (kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n);
  const double size = std::exp2(std::floor(std::log2(kernel.bytes / elements)));
  return (kernel.bytes - size * elements) /
         (kernel.batch * kernel.m * kernel.n);
}

}  // namespace

models::Kernel ShapeOf(const MeasuredKernel& measured) {
  models::Kernel kernel;
  kernel.part = models::KernelPartOf(measured.part())
                    .value_or(models::KernelPart::kElementwise);
  kernel.batch = measured.batch();
  kernel.m = measured.m();
  kernel.n = measured.n();
  kernel.k = measured.k();
  kernel.bytes = measured.bytes();
  kernel.performed_flops = measured.performed_flops();
  if (measured.kind() == MeasuredKernel::GEMM) {
    kernel.kind = models::Kernel::Kind::kGemm;
    kernel.flops = FullFlops(kernel);
  } else if (measured.kind() == MeasuredKernel::ATTENTION) {
    kernel.kind = models::Kernel::Kind::kAttention;
    kernel.num_gemms = static_cast<int>(measured.num_gemms());
    kernel.flops = FullFlops(kernel);
    if (kernel.performed_flops == 0) {
      kernel.performed_flops =
          measured.causal() ? kernel.flops / 2 : kernel.flops;
    }
  }
  return kernel;
}

KernelPrices::Key KernelPrices::KeyOf(Along along,
                                      const models::Kernel& kernel) {
  switch (along) {
    case Along::kM:
      return {along, {kernel.batch, kernel.n, kernel.k, 0}};
    case Along::kK:
      return {along, {kernel.batch, kernel.m, kernel.n, 0}};
    case Along::kSequence:
      break;
  }
  // A window of keys does not grow with the sequence.
  const double window = kernel.n == kernel.m ? 0 : kernel.n;
  const double direction = kernel.num_gemms + (IsCausal(kernel) ? 0.5 : 0);
  return {along, {kernel.batch, kernel.k, window, direction}};
}

KernelPrices::Point KernelPrices::PointOf(const MeasuredKernel& measured) {
  Point point;
  point.kernel = ShapeOf(measured);
  point.seconds = measured.seconds().p50();
  point.relative_error =
      std::hypot(kRepeatError, measured.seconds().relative_ci() / kHalfOf95);
  point.throttled = measured.throttled();
  return point;
}

void KernelPrices::AddPoint(Along along, double size, Point point) {
  point.size = size;
  std::vector<Line>& lines = lines_[KeyOf(along, point.kernel)];
  const double extra = ExtraBytes(point.kernel);
  auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& known) {
    return std::abs(known.extra_bytes - extra) < kSameExtra;
  });
  if (line == lines.end()) line = lines.insert(line, {extra, {}});
  const auto at = std::lower_bound(
      line->points.begin(), line->points.end(), size,
      [](const Point& known, double wanted) { return known.size < wanted; });
  if (at == line->points.end() || at->size != size) {
    line->points.insert(at, point);
    return;
  }
  // A variant with another operand layout, which models/ does not distinguish.
  ++at->count;
  at->seconds += (point.seconds - at->seconds) / at->count;
  at->relative_error = std::max(at->relative_error, point.relative_error);
  at->throttled |= point.throttled;
}

KernelPrices::KernelPrices(const DeviceProfile& profile,
                           absl::string_view format, int num_gpus)
    : expected_maximum_(ExpectedMaximum(num_gpus)) {
  for (const MeasuredKernel& measured : profile.kernels()) {
    const Point point = PointOf(measured);
    if (measured.kind() == MeasuredKernel::MEMORY) {
      const std::pair<models::KernelPart, int64_t> key = {
          point.kernel.part, std::llround(measured.bytes())};
      const auto [at, added] = memory_.try_emplace(key, point);
      if (added) continue;
      ++at->second.count;
      at->second.seconds +=
          (point.seconds - at->second.seconds) / at->second.count;
      at->second.throttled |= point.throttled;
    } else if (measured.format() != format) {
      continue;
    } else if (measured.kind() == MeasuredKernel::ATTENTION) {
      AddPoint(Along::kSequence, point.kernel.m, point);
    } else {
      AddPoint(Along::kM, point.kernel.m, point);
      AddPoint(Along::kK, point.kernel.k, point);
    }
  }
}

const KernelPrices::Line* KernelPrices::Find(
    Along along, const models::Kernel& kernel) const {
  const auto found = lines_.find(KeyOf(along, kernel));
  if (found == lines_.end()) return nullptr;
  const double extra = ExtraBytes(kernel);
  return &*std::min_element(found->second.begin(), found->second.end(),
                            [&](const Line& a, const Line& b) {
                              return std::abs(a.extra_bytes - extra) <
                                     std::abs(b.extra_bytes - extra);
                            });
}

std::optional<KernelPrice> KernelPrices::PriceOn(const Line& line, double size,
                                                 const DeviceProfile& profile,
                                                 double peak_flops,
                                                 const models::Kernel& kernel) {
  const auto above = std::lower_bound(
      line.points.begin(), line.points.end(), size,
      [](const Point& known, double wanted) { return known.size < wanted; });
  if (above == line.points.end()) return {};
  KernelPrice price;
  const bool same =
      std::abs(line.extra_bytes - ExtraBytes(kernel)) < kSameExtra;
  // Measured kernels do not record the layout of their rows.
  const auto predicted = [&](models::Kernel known) {
    known.row_alignment = kernel.row_alignment;
    return KernelSeconds(profile, peak_flops, known);
  };
  if (above->size == size) {
    price.seconds = above->seconds;
    price.basis = KernelPrice::Basis::kMeasured;
    price.relative_error = above->relative_error;
    price.throttled = above->throttled;
    if (same) return price;
    // Same shape with another epilogue: scale its prediction by the same error.
    price.seconds *=
        KernelSeconds(profile, peak_flops, kernel) / predicted(above->kernel);
    price.basis = KernelPrice::Basis::kInterpolated;
    price.distance = 1;
    return price;
  }
  if (above == line.points.begin()) return {};
  const Point& low = *(above - 1);
  const double part =
      std::log(size / low.size) / std::log(above->size / low.size);
  const auto log_ratio = [&](const Point& point) {
    return std::log(point.seconds / predicted(point.kernel));
  };
  price.seconds =
      KernelSeconds(profile, peak_flops, kernel) *
      std::exp((1 - part) * log_ratio(low) + part * log_ratio(*above));
  price.basis = KernelPrice::Basis::kInterpolated;
  price.relative_error = std::max(low.relative_error, above->relative_error);
  price.distance = same ? 2 * std::min(part, 1 - part) : 1;
  price.throttled = low.throttled || above->throttled;
  return price;
}

KernelPrice KernelPrices::Price(const DeviceProfile& profile, double peak_flops,
                                const models::Kernel& kernel) const {
  KernelPrice price = MedianPrice(profile, peak_flops, kernel);
  if (profile.has_relative_speed()) price.seconds /= profile.relative_speed();
  // Replays run on the very GPU that was measured, the way it was measured.
  if (profile.purpose() == DeviceProfile::REPLAYS) return price;
  if (profile.has_training_slowdown()) {
    price.seconds *= profile.training_slowdown().value();
  }
  // The memory clock is the same on all GPUs.
  if (kernel.kind != models::Kernel::Kind::kMemory) {
    price.seconds *= 1 + profile.speed_spread().value() * expected_maximum_;
  }
  return price;
}

KernelPrice KernelPrices::MedianPrice(const DeviceProfile& profile,
                                      double peak_flops,
                                      const models::Kernel& kernel) const {
  KernelPrice figures;
  if (!memory_.empty() && kernel.kind == models::Kernel::Kind::kMemory) {
    const auto found = memory_.find({kernel.part, std::llround(kernel.bytes)});
    if (found != memory_.end()) {
      const Point& point = found->second;
      return {point.seconds,
              KernelPrice::Basis::kMeasured,
              point.relative_error,
              0,
              false,
              point.throttled};
    }
  } else if (!lines_.empty() && kernel.format == OPERAND_16_BIT &&
             kernel.kind != models::Kernel::Kind::kMemory) {
    const bool gemm = kernel.kind == models::Kernel::Kind::kGemm;
    for (Along along : {Along::kM, Along::kK, Along::kSequence}) {
      if (gemm == (along == Along::kSequence)) continue;
      const Line* line = Find(along, kernel);
      if (line == nullptr) continue;
      const double size = along == Along::kK ? kernel.k : kernel.m;
      const auto price = PriceOn(*line, size, profile, peak_flops, kernel);
      if (price.has_value()) return *price;
      figures.outside = true;
    }
  }
  figures.seconds = KernelSeconds(profile, peak_flops, kernel);
  return figures;
}

}  // namespace weir::calibrate
