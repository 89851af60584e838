// SPDX-License-Identifier: Apache-2.0
#include "results/flops.h"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "results/summary.h"

namespace weir::results {
namespace {

constexpr std::array<std::pair<absl::string_view, FlopsFormula>, 8>
    kFlopsFormulas = {{{"model", FlopsFormula::kModel},
                       {"model-causal", FlopsFormula::kModelCausal},
                       {"megatron", FlopsFormula::kMegatron},
                       {"palm", FlopsFormula::kPalm},
                       {"palm-causal", FlopsFormula::kPalmCausal},
                       {"hardware", FlopsFormula::kHardware},
                       {"megatron96", FlopsFormula::kMegatron96},
                       {"model72", FlopsFormula::kModel72}}};

constexpr size_t kNumReported = 6;

absl::StatusOr<FlopsFormula> ParseFormula(
    absl::string_view text,
    std::span<const std::pair<absl::string_view, FlopsFormula>> formulas) {
  std::string names;
  for (const auto& [name, formula] : formulas) {
    if (name == text) return formula;
    absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("is \"", text, "\", expected one of: ", names));
}

}  // namespace

absl::StatusOr<FlopsFormula> ParseFlopsFormula(absl::string_view text) {
  return ParseFormula(text, kFlopsFormulas);
}

absl::StatusOr<FlopsFormula> ParseReportedFormula(absl::string_view text) {
  return ParseFormula(text, std::span(kFlopsFormulas).first(kNumReported));
}

absl::string_view NameOf(FlopsFormula formula) {
  for (const auto& [name, known] : kFlopsFormulas) {
    if (known == formula) return name;
  }
  return "";
}

double MegatronFlops(double sequences, double sequence_length,
                     double num_layers, double hidden_size,
                     double vocabulary_size, int passes) {
  const double h = hidden_size;
  const double tokens = sequences * sequence_length;
  // The logits are not recomputed.
  const int logit_passes = passes == 1 ? 1 : 3;
  return 24 * passes * tokens * num_layers * h * h *
             (1 + sequence_length / (6 * h)) +
         2 * logit_passes * tokens * h * vocabulary_size;
}

std::optional<double> FlopsOfBatch(const Result& result, FlopsFormula formula) {
  const FlopCounts& counts = result.flops_per_batch();
  const auto some = [](bool has, double flops) {
    return has ? std::optional(flops) : std::nullopt;
  };
  switch (formula) {
    case FlopsFormula::kModel:
      return some(counts.has_model(), counts.model());
    case FlopsFormula::kModelCausal:
      return some(counts.has_model_causal(), counts.model_causal());
    case FlopsFormula::kMegatron:
      return some(counts.has_megatron(), counts.megatron());
    case FlopsFormula::kPalm:
      return some(counts.has_palm(), counts.palm());
    case FlopsFormula::kPalmCausal:
      return some(counts.has_palm_causal(), counts.palm_causal());
    case FlopsFormula::kHardware:
      return some(counts.has_hardware(), counts.hardware());
    case FlopsFormula::kNone:
    case FlopsFormula::kMegatron96:
    case FlopsFormula::kModel72:
      break;
  }
  return {};
}

std::optional<double> FlopsPerGpu(const Result& result, FlopsFormula formula) {
  const std::optional<double> flops = FlopsOfBatch(result, formula);
  if (!flops.has_value() || !(result.batch_seconds() > 0)) return {};
  return *flops /
         (result.batch_seconds() * static_cast<double>(NumGpus(result)));
}

std::optional<double> UtilizationOf(const Result& result,
                                    FlopsFormula formula) {
  if (!result.has_model_flops_utilization()) return {};
  const double of_model = result.model_flops_utilization();
  if (formula == FlopsFormula::kModel) return of_model;
  const auto flops = FlopsOfBatch(result, formula);
  const auto model = FlopsOfBatch(result, FlopsFormula::kModel);
  if (!flops.has_value() || !(model.value_or(0) > 0)) return {};
  return of_model * *flops / *model;
}

FlopsFormula FormulaOf(const Result& result) {
  if (result.flops_formula().empty()) return FlopsFormula::kModel;
  return ParseFlopsFormula(result.flops_formula())
      .value_or(FlopsFormula::kModel);
}

}  // namespace weir::results
