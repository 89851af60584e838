// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/kernel_seconds.h"

#include <algorithm>
#include <cmath>

#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {
namespace {

constexpr double k16BitBytes = 2;

// Returns the bytes of one element. kernel.bytes may exceed the operands by
// what an epilogue moves or by a gradient that is accumulated into.
double ElementBytes(const models::Kernel& kernel) {
  const double elements =
      kernel.batch *
      (kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n);
  return kernel.bytes > 0 && elements > 0
             ? std::exp2(std::floor(std::log2(kernel.bytes / elements)))
             : 0;
}

double MemoryEfficiency(const DeviceProfile& profile,
                        const models::Kernel& kernel) {
  const models::KernelPart part = kernel.part;
  if (kernel.variant == models::Kernel::Variant::kConvolution &&
      profile.has_convolution_efficiency()) {
    return profile.convolution_efficiency().value();
  }
  if (part == models::KernelPart::kCast && profile.has_cast_efficiency()) {
    return profile.cast_efficiency().value();
  }
  if (part == models::KernelPart::kPermute &&
      profile.has_permute_efficiency()) {
    return profile.permute_efficiency().value();
  }
  const StreamKind kind = StreamKindOf(part);
  if (kind == StreamKind::kNorm && profile.has_norm_efficiency()) {
    return profile.norm_efficiency().value();
  }
  if (kind == StreamKind::kElementwise &&
      profile.has_elementwise_efficiency()) {
    return profile.elementwise_efficiency().value();
  }
  return profile.memory_efficiency().value();
}

// Returns the efficiency of the recurrence that a GEMM is part of; 0: none, or
// unknown.
double RecurrenceEfficiency(const DeviceProfile& profile,
                            models::Kernel::Variant variant) {
  if (variant == models::Kernel::Variant::kDecay) {
    return profile.decay_recurrence_efficiency().value();
  }
  return variant == models::Kernel::Variant::kDelta
             ? profile.delta_recurrence_efficiency().value()
             : 0;
}

// Returns the efficiency of the library that runs, relative to
// attention_efficiency or attention_backward_efficiency.
double LibraryEfficiency(const DeviceProfile& profile, bool backward) {
  for (const AttentionLibrary& library : profile.attention_libraries()) {
    if (library.kernel() != profile.attention_kernel()) continue;
    return (backward ? library.backward() : library.forward()).value();
  }
  return 1;
}

// Rows of a tile of queries (of keys, in the backward).
constexpr double kTileRows = 128;

// What the time of attention depends on.
struct AttentionFigures {
  double efficiency = 1, ramp_keys = 0, tail = 0;
};

AttentionFigures FiguresOf(const DeviceProfile& profile,
                           const models::Kernel& kernel) {
  const bool backward = kernel.num_gemms > 2;
  if (kernel.variant == models::Kernel::Variant::kLatent &&
      profile.has_latent_attention()) {
    const LatentAttentionSpeed& speed = profile.latent_attention();
    return {
        (backward ? speed.backward_efficiency() : speed.efficiency()).value(),
        speed.ramp_keys().value(), speed.tail().value()};
  }
  const GemmModel& gemm = profile.gemm();
  double efficiency =
      profile.has_attention_efficiency()
          ? profile.attention_efficiency().value()
          : gemm.matrix_rate().value() * gemm.sustained_rate().value();
  if (backward && profile.has_attention_backward_efficiency()) {
    efficiency = profile.attention_backward_efficiency().value();
  }
  efficiency *= HeadSizeEfficiency(profile, kernel.k) *
                LibraryEfficiency(profile, backward);
  return {efficiency, profile.attention_ramp_keys().value(),
          profile.attention_tail().value()};
}

// Returns the speed of attention in the kernel's format relative to 16 bits.
double FormatSpeed(const DeviceProfile& profile, const models::Kernel& kernel) {
  if (kernel.format == OPERAND_16_BIT) return 1;
  const MatrixRate* rate = FindRate(profile, models::Name(kernel.format));
  return rate != nullptr && rate->has_attention_speed()
             ? rate->attention_speed().value()
             : 1;
}

// Returns the time of the work on the keys visible to each query, plus a ramp
// for every tile of queries, plus the tail in which multiprocessors wait for
// the longest tiles (Graham 1969, list scheduling: at most the mean load plus
// the longest job). Efficiency rises with the sequence length, and more slowly
// if a causal mask halves the keys.
double AttentionSeconds(const DeviceProfile& profile, double peak_flops,
                        const models::Kernel& kernel) {
  const AttentionFigures figures = FiguresOf(profile, kernel);
  const double flops =
      kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
  const double ramp_flops = 2 * kernel.num_gemms * kernel.batch * kernel.m *
                            kernel.k * figures.ramp_keys;
  const double rate =
      peak_flops * figures.efficiency * FormatSpeed(profile, kernel);
  const double seconds = (flops + ramp_flops) / rate;
  if (figures.tail == 0) return seconds;
  // The longest tile sees all keys; a causal mask shows half of them on
  // average.
  const double queries = kernel.batch * kernel.m;
  const double unmasked = 2 * kernel.num_gemms * queries * kernel.n * kernel.k;
  const double longest =
      std::max(flops, std::min(2 * flops, unmasked)) + ramp_flops;
  return seconds + figures.tail * kTileRows / queries *
                       profile.num_multiprocessors().value() * longest / rate;
}

}  // namespace

double HeadSizeEfficiency(const DeviceProfile& profile, double head_size) {
  const auto& sizes = profile.attention_head_sizes();
  if (sizes.empty()) return 1;
  const auto above =
      std::lower_bound(sizes.begin(), sizes.end(), head_size,
                       [](const AttentionHeadSize& known, double wanted) {
                         return known.head_size() < wanted;
                       });
  if (above == sizes.end()) {
    return sizes.rbegin()->relative_efficiency().value();
  }
  const double high = above->relative_efficiency().value();
  if (above == sizes.begin()) return high;
  // Interpolates the time of a score, which grows by the same for every element
  // of a head.
  const AttentionHeadSize& below = *(above - 1);
  const double low = below.relative_efficiency().value();
  const double part = (head_size - below.head_size()) /
                      (above->head_size() - below.head_size());
  return head_size / ((1 - part) * below.head_size() / low +
                      part * above->head_size() / high);
}

StreamKind StreamKindOf(models::KernelPart part) {
  switch (part) {
    case models::KernelPart::kNorm:
      return StreamKind::kNorm;
    case models::KernelPart::kElementwise:
    case models::KernelPart::kSoftmax:
      return StreamKind::kElementwise;
    case models::KernelPart::kAttentionGemm:
    case models::KernelPart::kProjectionGemm:
    case models::KernelPart::kFeedForwardGemm:
    case models::KernelPart::kVocabularyGemm:
    case models::KernelPart::kAttentionCore:
    case models::KernelPart::kLoss:
    case models::KernelPart::kEmbedding:
    case models::KernelPart::kOptimizer:
    case models::KernelPart::kRouter:
    case models::KernelPart::kPermute:
    case models::KernelPart::kRecurrence:
    case models::KernelPart::kCast:
      break;
  }
  return StreamKind::kMemory;
}

GemmSize ShapeOf(const models::Kernel& kernel) {
  if (kernel.format != OPERAND_16_BIT) {
    GemmSize size = {kernel.batch,
                     kernel.m,
                     kernel.n,
                     kernel.k,
                     models::OperandBytes(kernel.format),
                     kernel.bytes};
    size.result_bytes = k16BitBytes;
    if (kernel.row_alignment > 0) {
      size.alignment_bytes = kernel.row_alignment * size.element_bytes;
    }
    return size;
  }
  GemmSize size = {kernel.batch,         kernel.m,    kernel.n, kernel.k,
                   ElementBytes(kernel), kernel.bytes};
  if (kernel.row_alignment > 0) {
    size.alignment_bytes = kernel.row_alignment * size.element_bytes;
  }
  return size;
}

double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const models::Kernel& kernel) {
  if (kernel.kind == models::Kernel::Kind::kGemm) {
    const double recurrence = RecurrenceEfficiency(profile, kernel.variant);
    if (recurrence > 0) return kernel.flops / (peak_flops * recurrence);
    const double grouped =
        kernel.variant == models::Kernel::Variant::kGrouped &&
                profile.has_grouped_gemm_time()
            ? profile.grouped_gemm_time().value()
            : 1;
    const MatrixRate* rate =
        kernel.format == OPERAND_16_BIT
            ? nullptr
            : FindRate(profile, models::Name(kernel.format));
    return grouped * (rate != nullptr
                          ? GemmSeconds(profile, *rate, ShapeOf(kernel),
                                        Clock::kSustained)
                          : GemmSeconds(profile, peak_flops, ShapeOf(kernel),
                                        Clock::kSustained));
  }
  const double memory_seconds =
      kernel.bytes / (profile.memory_bytes_per_second().value() *
                      MemoryEfficiency(profile, kernel));
  const double arithmetic_seconds =
      kernel.kind == models::Kernel::Kind::kAttention
          ? AttentionSeconds(profile, peak_flops, kernel)
          : 0;
  return kernel.launches * profile.kernel_seconds().value() +
         std::max(memory_seconds, arithmetic_seconds);
}

double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const std::vector<models::Kernel>& kernels) {
  double seconds = 0;
  for (const models::Kernel& kernel : kernels) {
    seconds += KernelSeconds(profile, peak_flops, kernel);
  }
  return seconds;
}

}  // namespace weir::calibrate
