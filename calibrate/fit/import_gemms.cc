// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_gemms.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/import_columns.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/gemm_model.h"
#include "models/quantization.h"

namespace weir::calibrate {
namespace {

constexpr int kNumGemmFolds = 10;
constexpr double k16BitBytes = 2;

// Returns the rate of a recipe's format in a profile that has it, or null for
// other formats, whose GEMMs are DeviceProfile.gemm.
MatrixRate* RateOf(absl::string_view format, DeviceProfile* profile) {
  if (models::OperandFormatNamed(format) == OPERAND_16_BIT) return nullptr;
  for (MatrixRate& rate : *profile->mutable_matrix_rates()) {
    if (format == rate.format()) return &rate;
  }
  return nullptr;
}

std::string Percent(const char* what, const ErrorStatistics& errors,
                    const MeasuredGemms& gemms) {
  const GemmSize& worst = gemms.samples[errors.worst_row].shape;
  return absl::StrFormat("%s: %s; worst: m=%.0f, n=%.0f, k=%.0f (line %d)\n",
                         what, Describe(errors), worst.m, worst.n, worst.k,
                         gemms.lines[errors.worst_row]);
}

std::vector<double> SecondsOf(const std::vector<GemmSample>& samples) {
  std::vector<double> seconds;
  for (const GemmSample& sample : samples) seconds.push_back(sample.seconds);
  return seconds;
}

std::string Warning(const MeasuredGemms& gemms, double peak_flops) {
  std::vector<double> flops;
  for (const GemmSample& sample : gemms.samples) {
    const GemmSize& shape = sample.shape;
    flops.push_back(2 * shape.batch * shape.m * shape.n * shape.k);
  }
  return WarnAbovePeak(flops, SecondsOf(gemms.samples), gemms.lines, peak_flops,
                       gemms.format);
}

void SetCoverage(const MeasuredGemms& gemms, Coverage* coverage) {
  coverage->clear_gemm_m();
  coverage->clear_gemm_n();
  coverage->clear_gemm_k();
  coverage->clear_batched_gemms();
  for (const GemmSample& sample : gemms.samples) {
    Include(sample.shape.m, coverage->mutable_gemm_m());
    Include(sample.shape.n, coverage->mutable_gemm_n());
    Include(sample.shape.k, coverage->mutable_gemm_k());
    if (sample.shape.batch > 1) coverage->set_batched_gemms(true);
  }
}

}  // namespace

absl::StatusOr<MeasuredGemms> ReadGemms(absl::string_view label,
                                        absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const std::vector<double> m, ReadSizes(table, "m"));
  ASSIGN_OR_RETURN(const std::vector<double> n, ReadSizes(table, "n"));
  ASSIGN_OR_RETURN(const std::vector<double> k, ReadSizes(table, "k"));
  ASSIGN_OR_RETURN(const std::vector<double> seconds, ReadSeconds(table));
  RETURN_IF_ERROR(
      CheckColumns(table, {"m", "n", "k", "batch", "dtype", "type"}));
  std::vector<double> batch(m.size(), 1);
  if (table.HasColumn("batch")) {
    ASSIGN_OR_RETURN(batch, ReadSizes(table, "batch"));
  }
  MeasuredGemms gemms;
  ASSIGN_OR_RETURN(gemms.format, ReadFormat(table));
  if (table.num_rows() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ":2: has no rows, expected measured GEMMs"));
  }
  double element_bytes = gemms.format == "fp32" ? 4 : 2;
  const OperandFormat format = models::OperandFormatNamed(gemms.format);
  if (format != OPERAND_16_BIT) element_bytes = models::OperandBytes(format);
  for (int row = 0; row < table.num_rows(); ++row) {
    GemmSize shape = MakeGemmSize(m[row], n[row], k[row], element_bytes);
    if (format != OPERAND_16_BIT) {
      shape.result_bytes = k16BitBytes;
      shape.bytes = element_bytes * (m[row] + n[row]) * k[row] +
                    shape.result_bytes * m[row] * n[row];
    }
    shape.batch = batch[row];
    shape.bytes *= batch[row];
    gemms.samples.push_back({shape, seconds[row]});
    gemms.lines.push_back(table.rows()[row].line);
  }
  return gemms;
}

absl::StatusOr<GemmMachine> MachineOf(const DeviceProfile& profile,
                                      std::string format) {
  if (format.empty()) {
    format = PeakFlops(profile, "bf16").ok() ? "bf16" : "fp16";
  }
  GemmMachine machine;
  ASSIGN_OR_RETURN(machine.flops_per_second, PeakFlops(profile, format));
  machine.num_multiprocessors = profile.num_multiprocessors().value();
  machine.memory_bytes_per_second = profile.memory_bytes_per_second().value();
  return machine;
}

std::vector<int> WeightShapes(const std::vector<GemmSample>& samples) {
  std::vector<std::pair<double, double>> keys;
  for (const GemmSample& sample : samples) {
    keys.emplace_back(sample.shape.n, sample.shape.k);
  }
  return GroupsOf(keys);
}

bool LooksLikeGemms(absl::string_view text) {
  const auto header = ReadCsv("", text.substr(0, text.find('\n')));
  return header.ok() && header->HasColumn("m") && header->HasColumn("n") &&
         header->HasColumn("k");
}

absl::StatusOr<Import> ImportGemms(absl::string_view label,
                                   absl::string_view text,
                                   const DeviceProfile& start,
                                   absl::string_view source) {
  ASSIGN_OR_RETURN(const MeasuredGemms gemms, ReadGemms(label, text));
  ASSIGN_OR_RETURN(const GemmMachine machine, MachineOf(start, gemms.format));
  Import import;
  import.profile = start;
  MatrixRate* rate = RateOf(gemms.format, &import.profile);
  const GemmModel first =
      rate != nullptr && rate->has_gemm() ? rate->gemm() : start.gemm();
  ASSIGN_OR_RETURN(GemmFit fit,
                   FitGemms(machine, first, gemms.samples, source));
  std::vector<int> folds = WeightShapes(gemms.samples);
  const bool one_shape = *std::max_element(folds.begin(), folds.end()) == 0;
  for (int& fold : folds) fold %= kNumGemmFolds;
  const std::vector<double> measured = SecondsOf(gemms.samples);
  if (rate == nullptr) import.profile.clear_gemms_of();
  import.report = Percent("fit", fit.errors, gemms);
  absl::StrAppend(
      &import.report, Warning(gemms, machine.flops_per_second),
      Percent("before the fit",
              SummarizeErrors(PredictGemms(machine, first, gemms.samples),
                              measured),
              gemms));
  std::string what =
      absl::StrFormat("%s: %d GEMMs, mean |error| %.1f %%", source,
                      fit.errors.num_rows, 100 * fit.errors.mean_absolute);
  if (one_shape) {
    absl::StrAppend(
        &import.report,
        "warning: all rows have the same (n, k), so the fit cannot be "
        "cross-validated: gemm_residual is left as in the profile\n");
  } else {
    ASSIGN_OR_RETURN(const std::vector<double> unseen,
                     CrossValidateGemms(machine, first, gemms.samples, folds));
    const ErrorStatistics errors = SummarizeErrors(unseen, measured);
    absl::StrAppend(
        &import.report,
        Percent("cross-validation (10 folds by n, k)", errors, gemms));
    absl::StrAppendFormat(&what, ", %.1f %% with their (n, k) left out",
                          100 * errors.mean_absolute);
    *(rate != nullptr ? rate->mutable_gemm_residual()
                      : import.profile.mutable_gemm_residual()) =
        ResidualOf(errors.mean_absolute, what);
  }
  for (const GemmFigure& figure : GemmFigures()) {
    Figure* fitted = (fit.model.*figure.mutate)();
    if (fitted->kind() == Figure::FITTED && fitted->source() == source) {
      fitted->set_source(what);
    }
  }
  if (rate != nullptr) {
    *rate->mutable_gemm() = fit.model;
    return import;
  }
  *import.profile.mutable_gemm() = fit.model;
  SetCoverage(gemms, import.profile.mutable_coverage());
  return import;
}

}  // namespace weir::calibrate
