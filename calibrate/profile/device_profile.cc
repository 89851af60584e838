// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/device_profile.h"

#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/profile/check_measured.h"
#include "calibrate/profile/collective_model.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/gemm_model.h"
#include "calibrate/profile/profile_base.h"

namespace weir::calibrate {
namespace {

void CheckGemmModel(absl::string_view path, const GemmModel& model,
                    Problems* problems) {
  for (const GemmFigure& figure : GemmFigures()) {
    CheckFigure(absl::StrCat(path, figure.name), (model.*figure.get)(),
                figure.low, figure.high, problems);
  }
  for (const GemmFigure& figure : AlignmentFigures()) {
    const Figure& rate = (model.*figure.get)();
    if (rate.kind() == Figure::KIND_UNSPECIFIED && rate.value() == 0) continue;
    CheckFigure(absl::StrCat(path, figure.name), rate, figure.low, figure.high,
                problems);
  }
}

void CheckRates(const DeviceProfile& profile, Problems* problems) {
  if (profile.matrix_rates().empty()) {
    problems->Add("matrix_rates", "is empty, expected at least one");
  }
  std::set<std::string> seen;
  for (int i = 0; i < profile.matrix_rates_size(); ++i) {
    const MatrixRate& rate = profile.matrix_rates(i);
    const std::string where = absl::StrCat("matrix_rates[", i, "].");
    if (rate.format().empty()) {
      problems->Add(absl::StrCat(where, "format"),
                    "is empty, expected a name such as \"fp16\"");
    } else if (!seen.insert(rate.format()).second) {
      problems->Add(
          absl::StrCat(where, "format"),
          absl::StrCat("is \"", rate.format(), "\" again, expected it once"));
    }
    CheckFigure(absl::StrCat(where, "peak_flops"), rate.peak_flops(), 1e6, 1e18,
                problems);
    if (rate.has_gemm()) {
      CheckGemmModel(absl::StrCat(where, "gemm."), rate.gemm(), problems);
    }
    if (rate.has_attention_speed()) {
      CheckFigure(absl::StrCat(where, "attention_speed"),
                  rate.attention_speed(), 1e-1, 1e1, problems);
    }
    if (rate.has_gemm_residual()) {
      CheckFigure(absl::StrCat(where, "gemm_residual"), rate.gemm_residual(), 0,
                  3, problems);
    }
  }
}

// Rates without which an exchange has no time.
void CheckExchange(const char* field, bool given, const TokenExchange& exchange,
                   Problems* problems) {
  if (!given) return;
  const std::pair<const char*, bool> required[] = {
      {"multiprocessor_bytes_per_second",
       exchange.has_multiprocessor_bytes_per_second()},
      {"forward_bytes_per_second", exchange.has_forward_bytes_per_second()},
      {"link_efficiency", exchange.has_link_efficiency()},
      {"net_efficiency", exchange.has_net_efficiency()}};
  for (const auto& [name, is_given] : required) {
    if (is_given) continue;
    problems->Add(absl::StrCat("collectives.", field, ".", name),
                  "is missing, expected a rate or fraction with its source");
  }
}

void CheckCollectives(const CollectiveModel& model, Problems* problems) {
  for (const CollectiveFigure& figure : CollectiveFigures()) {
    if (figure.optional && !figure.has(model)) continue;
    CheckFigure(absl::StrCat("collectives.", figure.name), figure.get(model),
                figure.low, figure.high, problems);
  }
  CheckExchange("dispatch", model.has_dispatch(), model.dispatch(), problems);
  CheckExchange("combine", model.has_combine(), model.combine(), problems);
  CheckExchange("hybrid_dispatch", model.has_hybrid_dispatch(),
                model.hybrid_dispatch(), problems);
  CheckExchange("hybrid_combine", model.has_hybrid_combine(),
                model.hybrid_combine(), problems);
}

void CheckLatentAttention(const LatentAttentionSpeed& speed,
                          Problems* problems) {
  CheckFigure("latent_attention.efficiency", speed.efficiency(), 1e-3, 1,
              problems);
  CheckFigure("latent_attention.backward_efficiency",
              speed.backward_efficiency(), 1e-3, 1, problems);
  if (speed.has_ramp_keys()) {
    CheckFigure("latent_attention.ramp_keys", speed.ramp_keys(), 0, 1e5,
                problems);
  }
  if (speed.has_tail()) {
    CheckFigure("latent_attention.tail", speed.tail(), 0, 10, problems);
  }
}

void CheckRangeOf(absl::string_view field, const Range& range,
                  Problems* problems) {
  problems->CheckRange(absl::StrCat(field, ".low"), range.low(), 0, 1e18);
  problems->CheckRange(absl::StrCat(field, ".high"), range.high(), range.low(),
                       1e18);
}

void CheckUncertainty(const DeviceProfile& profile, Problems* problems) {
  const std::pair<const char*, const Figure*> residuals[] = {
      {"gemm_residual", &profile.gemm_residual()},
      {"collective_residual", &profile.collective_residual()},
      {"memory_residual", &profile.memory_residual()},
      {"slower_step_residual", &profile.slower_step_residual()},
      {"faster_step_residual", &profile.faster_step_residual()}};
  for (const auto& [field, figure] : residuals) {
    if (figure->kind() != Figure::KIND_UNSPECIFIED || figure->value() != 0) {
      CheckFigure(field, *figure, 0, 3, problems);
    }
  }
  const Coverage& coverage = profile.coverage();
  CheckRangeOf("coverage.gemm_m", coverage.gemm_m(), problems);
  CheckRangeOf("coverage.gemm_n", coverage.gemm_n(), problems);
  CheckRangeOf("coverage.gemm_k", coverage.gemm_k(), problems);
  CheckRangeOf("coverage.collective_bytes", coverage.collective_bytes(),
               problems);
  CheckRangeOf("coverage.collective_ranks", coverage.collective_ranks(),
               problems);
}

void CheckHeadSizes(const DeviceProfile& profile, Problems* problems) {
  uint32_t last = 0;
  for (int i = 0; i < profile.attention_head_sizes_size(); ++i) {
    const AttentionHeadSize& size = profile.attention_head_sizes(i);
    const std::string path = absl::StrCat("attention_head_sizes[", i, "]");
    if (size.head_size() <= last) {
      problems->Add(
          absl::StrCat(path, ".head_size"),
          absl::StrCat("is ", size.head_size(), ", expected more than ", last));
    }
    last = size.head_size();
    CheckFigure(absl::StrCat(path, ".relative_efficiency"),
                size.relative_efficiency(), 1e-2, 1e2, problems);
  }
}

void CheckLibraries(const DeviceProfile& profile, Problems* problems) {
  for (int i = 0; i < profile.attention_libraries_size(); ++i) {
    const AttentionLibrary& library = profile.attention_libraries(i);
    const std::string path = absl::StrCat("attention_libraries[", i, "]");
    if (library.kernel() == ATTENTION_UNSPECIFIED) {
      problems->Add(absl::StrCat(path, ".kernel"),
                    "is missing, expected a library such as CUDNN");
    }
    CheckFigure(absl::StrCat(path, ".forward"), library.forward(), 1e-2, 1e1,
                problems);
    CheckFigure(absl::StrCat(path, ".backward"), library.backward(), 1e-2, 1e1,
                problems);
  }
}

// A figure of a profile and its limits.
struct FigureLimits {
  const char* field;
  const Figure& figure;
  double low, high;
  bool is_checked = true;  // optional ones only if they are given
};

void CheckLimits(std::initializer_list<FigureLimits> limits,
                 Problems* problems) {
  for (const auto& [field, figure, low, high, is_checked] : limits) {
    if (is_checked) CheckFigure(field, figure, low, high, problems);
  }
}

// Checks the multiprocessors and the memory.
void CheckMachine(const DeviceProfile& profile, Problems* problems) {
  const double memory = profile.memory_bytes().value();
  CheckLimits({{"num_multiprocessors", profile.num_multiprocessors(), 1, 1e5},
               {"memory_bytes_per_second", profile.memory_bytes_per_second(),
                1e3, 1e16},
               {"memory_efficiency", profile.memory_efficiency(), 1e-3, 1},
               {"kernel_seconds", profile.kernel_seconds(), 0, 1},
               {"memory_bytes", profile.memory_bytes(), 1e6, 1e15},
               {"communication_buffer_bytes",
                profile.communication_buffer_bytes(), 0, memory},
               {"reserved_bytes", profile.reserved_bytes(), 0, memory,
                profile.has_reserved_bytes() || !HasReservedParts(profile)},
               {"full_context_bytes", profile.full_context_bytes(), 0, memory,
                profile.has_full_context_bytes()}},
              problems);
}

void CheckAttention(const DeviceProfile& profile, Problems* problems) {
  CheckLimits({{"attention_efficiency", profile.attention_efficiency(), 1e-3, 1,
                profile.has_attention_efficiency()},
               {"attention_backward_efficiency",
                profile.attention_backward_efficiency(), 1e-3, 1,
                profile.has_attention_backward_efficiency()},
               {"attention_ramp_keys", profile.attention_ramp_keys(), 0, 1e5,
                profile.has_attention_ramp_keys()},
               {"host_slowdown", profile.host_slowdown(), 1e-2, 1e2,
                profile.has_host_slowdown()},
               {"attention_tail", profile.attention_tail(), 0, 10,
                profile.has_attention_tail()}},
              problems);
  if (profile.has_latent_attention()) {
    CheckLatentAttention(profile.latent_attention(), problems);
  }
}

// Checks other kernels, the whole step and the link to the host.
void CheckOtherKernels(const DeviceProfile& profile, Problems* problems) {
  CheckLimits(
      {{"grouped_gemm_time", profile.grouped_gemm_time(), 0.1, 10,
        profile.has_grouped_gemm_time()},
       {"decay_recurrence_efficiency", profile.decay_recurrence_efficiency(),
        1e-3, 1, profile.has_decay_recurrence_efficiency()},
       {"delta_recurrence_efficiency", profile.delta_recurrence_efficiency(),
        1e-3, 1, profile.has_delta_recurrence_efficiency()},
       {"convolution_efficiency", profile.convolution_efficiency(), 1e-3, 1,
        profile.has_convolution_efficiency()},
       {"elementwise_efficiency", profile.elementwise_efficiency(), 1e-3, 1,
        profile.has_elementwise_efficiency()},
       {"cast_efficiency", profile.cast_efficiency(), 1e-3, 1,
        profile.has_cast_efficiency()},
       {"norm_efficiency", profile.norm_efficiency(), 1e-3, 1,
        profile.has_norm_efficiency()},
       {"speed_spread", profile.speed_spread(), 0, 0.2,
        profile.has_speed_spread()},
       {"training_slowdown", profile.training_slowdown(), 0.5, 5,
        profile.has_training_slowdown()},
       {"host_bytes_per_second", profile.host_bytes_per_second(), 1e3, 1e16,
        profile.has_host_bytes_per_second()}},
      problems);
}

}  // namespace

absl::StatusOr<DeviceProfile> LoadDeviceProfile(
    const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("calibrate/profile/presets", name_or_path));
  ASSIGN_OR_RETURN(DeviceProfile profile, ResolveBase(asset));
  RETURN_IF_ERROR(ValidateDeviceProfile(asset.label, profile));
  return profile;
}

absl::Status ValidateDeviceProfile(absl::string_view label,
                                   const DeviceProfile& profile) {
  Problems problems(label);
  if (profile.name().empty()) {
    problems.Add("name", "is empty, expected the name of the device");
  }
  CheckRates(profile, &problems);
  CheckMachine(profile, &problems);
  CheckGemmModel("gemm.", profile.gemm(), &problems);
  CheckHeadSizes(profile, &problems);
  CheckLibraries(profile, &problems);
  CheckAttention(profile, &problems);
  CheckOtherKernels(profile, &problems);
  if (profile.has_collectives()) {
    CheckCollectives(profile.collectives(), &problems);
  }
  CheckUncertainty(profile, &problems);
  CheckMeasured(profile, &problems);
  return problems.ToStatus();
}

bool HasReservedParts(const DeviceProfile& profile) {
  return profile.has_context_bytes() || profile.has_library_bytes() ||
         profile.has_workspace_bytes();
}

bool HasMeasuredCommunicators(const DeviceProfile& profile) {
  const CommunicatorMemory& memory = profile.collectives().memory();
  for (const Figure* figure :
       {&memory.once_bytes(), &memory.num_channels(),
        &memory.num_pair_channels(), &memory.ll_buffer_bytes(),
        &memory.ll128_buffer_bytes(), &memory.simple_buffer_bytes()}) {
    if (figure->kind() != Figure::MEASURED) return false;
  }
  return true;
}

double ReservedBytes(const DeviceProfile& profile) {
  return HasReservedParts(profile) ? profile.context_bytes().value() +
                                         profile.library_bytes().value() +
                                         profile.workspace_bytes().value()
                                   : profile.reserved_bytes().value();
}

const MatrixRate* FindRate(const DeviceProfile& profile,
                           absl::string_view format) {
  for (const MatrixRate& rate : profile.matrix_rates()) {
    if (format == rate.format()) return &rate;
  }
  return nullptr;
}

absl::StatusOr<double> PeakFlops(const DeviceProfile& profile,
                                 absl::string_view format) {
  std::vector<std::string> known;
  for (const MatrixRate& rate : profile.matrix_rates()) {
    if (format == rate.format()) return rate.peak_flops().value();
    known.push_back(rate.format());
  }
  return absl::InvalidArgumentError(
      absl::StrCat(profile.name(), ": has no rate for number format \"", format,
                   "\", expected one of: ", absl::StrJoin(known, ", ")));
}

}  // namespace weir::calibrate
