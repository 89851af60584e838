// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/fit/import_columns.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/profile/device_profile.h"
#include "models/attention.h"

namespace weir::calibrate {
namespace {

// Larger mean errors, or a longer ramp relative to the longest sequence, mean
// another device or another unit of time.
constexpr double kMaxError = 0.5;
constexpr double kMaxRamp = 10;

// Reads a column that has one of two values; true for the first.
absl::StatusOr<std::vector<bool>> Choice(const CsvTable& table,
                                         absl::string_view name,
                                         absl::string_view yes,
                                         absl::string_view no) {
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  std::vector<bool> chosen;
  for (int row = 0; row < table.num_rows(); ++row) {
    if (column.Text(row) != yes && column.Text(row) != no) {
      return column.Error(row, absl::StrCat("expected ", yes, " or ", no));
    }
    chosen.push_back(column.Text(row) == yes);
  }
  return chosen;
}

struct AttentionShape {
  double sequences, heads, sequence_length, head_size;
  bool causal;
};

models::Kernel KernelOf(const AttentionShape& shape, bool forward) {
  Transformer transformer;
  transformer.set_causal(shape.causal);
  models::WorkSpec spec;
  spec.flash_attention = true;
  models::Shape sizes;
  sizes.sequences = shape.sequences;
  sizes.sequence_length = shape.sequence_length;
  sizes.tokens = shape.sequences * shape.sequence_length;
  sizes.heads = shape.heads;
  sizes.head_size = shape.head_size;
  sizes.query = sizes.key_value = shape.heads * shape.head_size;
  const models::AttentionCore core =
      models::AttentionCoreOf(transformer, spec, sizes);
  return forward ? core.forward[0] : core.backward[0];
}

// Returns the times predicted for each sequence length by a fit to the others.
absl::StatusOr<std::vector<double>> PredictUnseenLengths(
    double peak, double launch, const AttentionFigures& start,
    const std::vector<AttentionSample>& samples,
    const std::vector<int>& lengths) {
  return CrossValidate(
      lengths,
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        std::vector<AttentionSample> rest;
        for (const int row : fitted) rest.push_back(samples[row]);
        ASSIGN_OR_RETURN(const AttentionFit fit,
                         FitAttention(peak, launch, start, rest));
        std::vector<double> seconds;
        for (const int row : left_out) {
          seconds.push_back(SecondsOf(peak, launch, fit.figures, samples[row]));
        }
        return seconds;
      });
}

std::string ErrorLine(const char* what, const ErrorStatistics& errors,
                      const MeasuredAttention& attention) {
  const models::Kernel& worst = attention.kernels[errors.worst_row];
  return absl::StrFormat("%s: %s; worst: %s of %.0f tokens (line %d)\n", what,
                         Describe(errors),
                         worst.num_gemms > 2 ? "backward" : "forward", worst.m,
                         attention.lines[errors.worst_row]);
}

void SetFitted(double value, const std::string& source, Figure* figure) {
  figure->Clear();
  figure->set_value(value);
  figure->set_kind(Figure::FITTED);
  figure->set_source(source);
}

// Returns the most frequent head size.
double UsualHeadSize(const MeasuredAttention& attention) {
  std::map<double, int> counts;
  for (const models::Kernel& kernel : attention.kernels) ++counts[kernel.k];
  return std::max_element(
             counts.begin(), counts.end(),
             [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// Returns the efficiency of heads of each size relative to the usual one, to
// whose samples `usual` was fitted: the mean ratio of predicted to measured
// times without the launch.
std::map<double, double> RelativeEfficiencies(
    double peak, double launch, const AttentionFigures& usual,
    const MeasuredAttention& attention,
    const std::vector<AttentionSample>& samples) {
  std::map<double, std::vector<double>> logarithms;
  for (size_t row = 0; row < samples.size(); ++row) {
    const AttentionSample& sample = samples[row];
    const double launches = sample.launches * launch;
    // At least half of a kernel is work, however short it is.
    logarithms[attention.kernels[row].k].push_back(
        std::log((SecondsOf(peak, launch, usual, sample) - launches) /
                 std::max(sample.seconds - launches, sample.seconds / 2)));
  }
  std::map<double, double> efficiencies;
  for (const auto& [size, values] : logarithms) {
    efficiencies[size] =
        std::exp(std::accumulate(values.begin(), values.end(), 0.0) /
                 static_cast<double>(values.size()));
  }
  efficiencies[UsualHeadSize(attention)] = 1;
  return efficiencies;
}

// Returns the number of kernels that were removed.
int RemoveMeasuredAttention(DeviceProfile* profile) {
  auto* kernels = profile->mutable_kernels();
  const int before = kernels->size();
  kernels->erase(std::remove_if(kernels->begin(), kernels->end(),
                                [](const MeasuredKernel& kernel) {
                                  return kernel.kind() ==
                                         MeasuredKernel::ATTENTION;
                                }),
                 kernels->end());
  return before - kernels->size();
}

// A fit to all head sizes.
struct HeadSizeFit {
  AttentionFit fit;
  std::map<double, double> relative;     // efficiency by head size
  std::vector<AttentionSample> samples;  // of all rows
};

// Fits the usual head size, and if there are others, all with their relative
// efficiencies.
absl::StatusOr<HeadSizeFit> FitHeadSizes(double peak, double launch,
                                         const AttentionFigures& start,
                                         const MeasuredAttention& attention) {
  HeadSizeFit result;
  std::vector<AttentionSample>& samples = result.samples;
  for (size_t row = 0; row < attention.kernels.size(); ++row) {
    samples.push_back(SampleOf(attention.kernels[row], attention.seconds[row]));
  }
  std::vector<AttentionSample> usual;
  const double usual_size = UsualHeadSize(attention);
  for (size_t row = 0; row < samples.size(); ++row) {
    if (attention.kernels[row].k == usual_size) usual.push_back(samples[row]);
  }
  ASSIGN_OR_RETURN(result.fit, FitAttention(peak, launch, start, usual));
  result.relative = RelativeEfficiencies(peak, launch, result.fit.figures,
                                         attention, samples);
  if (result.relative.size() > 1) {
    for (size_t row = 0; row < samples.size(); ++row) {
      samples[row].relative_efficiency =
          result.relative.at(attention.kernels[row].k);
    }
    ASSIGN_OR_RETURN(result.fit, FitAttention(peak, launch, start, samples));
  }
  return result;
}

// Returns the errors of a profile's own figures.
ErrorStatistics ErrorsOfProfile(const DeviceProfile& profile, double peak,
                                const MeasuredAttention& attention) {
  std::vector<double> seconds;
  for (const models::Kernel& kernel : attention.kernels) {
    seconds.push_back(KernelSeconds(profile, peak, kernel));
  }
  return SummarizeErrors(seconds, attention.seconds);
}

// Returns InvalidArgument if the fit has large errors or an implausible ramp.
absl::Status CheckExplained(absl::string_view label, const AttentionFit& fit,
                            double longest, const Import& import) {
  if (fit.errors.mean_absolute > kMaxError ||
      fit.figures.ramp_keys > kMaxRamp * longest) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": no efficiency explains these times: ", import.report, label,
        ": was not measured on ", import.profile.name(),
        ", expected measurements of the profile's device"));
  }
  return absl::OkStatus();
}

// Returns a line with a warning if a row is faster than the peak, else "".
std::string WarnOfFastAttention(const MeasuredAttention& attention,
                                const std::vector<AttentionSample>& samples,
                                double peak) {
  std::vector<double> flops;
  for (const AttentionSample& sample : samples) flops.push_back(sample.flops);
  return WarnAbovePeak(flops, attention.seconds, attention.lines, peak,
                       attention.format);
}

// Sets the figures that the measurements determine. `what` is their source.
void SetAttentionFigures(const MeasuredAttention& attention,
                         const HeadSizeFit& fitted, bool several_lengths,
                         const std::string& what, DeviceProfile* profile) {
  profile->clear_attention_head_sizes();
  profile->clear_attention_libraries();  // the measured one is the one in use
  if (fitted.relative.size() > 1) {
    for (const auto& [size, efficiency] : fitted.relative) {
      AttentionHeadSize* head = profile->add_attention_head_sizes();
      head->set_head_size(static_cast<uint32_t>(size));
      SetFitted(efficiency, what, head->mutable_relative_efficiency());
    }
  }
  bool forward = false, backward = false;
  for (const models::Kernel& kernel : attention.kernels) {
    (kernel.num_gemms > 2 ? backward : forward) = true;
  }
  const AttentionFigures& figures = fitted.fit.figures;
  if (forward) {
    SetFitted(figures.forward_efficiency, what,
              profile->mutable_attention_efficiency());
  }
  if (backward) {
    SetFitted(figures.backward_efficiency, what,
              profile->mutable_attention_backward_efficiency());
  }
  if (several_lengths) {
    SetFitted(figures.ramp_keys, what, profile->mutable_attention_ramp_keys());
  }
}

}  // namespace

absl::StatusOr<MeasuredAttention> ReadAttention(absl::string_view label,
                                                absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const std::vector<bool> forward,
                   Choice(table, "pass", "forward", "backward"));
  ASSIGN_OR_RETURN(const std::vector<bool> causal,
                   Choice(table, "causal", "yes", "no"));
  ASSIGN_OR_RETURN(const std::vector<double> batch, ReadSizes(table, "batch"));
  ASSIGN_OR_RETURN(const std::vector<double> heads, ReadSizes(table, "heads"));
  ASSIGN_OR_RETURN(const std::vector<double> length,
                   ReadSizes(table, "sequence_length"));
  ASSIGN_OR_RETURN(const std::vector<double> head_size,
                   ReadSizes(table, "head_size"));
  MeasuredAttention attention;
  ASSIGN_OR_RETURN(attention.seconds, ReadSeconds(table));
  RETURN_IF_ERROR(
      CheckColumns(table, {"pass", "batch", "heads", "sequence_length",
                           "head_size", "causal", "dtype", "type", "backend"}));
  ASSIGN_OR_RETURN(attention.format, ReadFormat(table));
  ASSIGN_OR_RETURN(attention.backend, ReadCommonText(table, "backend"));
  if (table.num_rows() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ":2: has no rows, expected measured attention"));
  }
  for (int row = 0; row < table.num_rows(); ++row) {
    attention.kernels.push_back(KernelOf(
        {batch[row], heads[row], length[row], head_size[row], causal[row]},
        forward[row]));
    attention.lines.push_back(table.rows()[row].line);
  }
  return attention;
}

bool LooksLikeAttention(absl::string_view text) {
  const auto header = ReadCsv("", text.substr(0, text.find('\n')));
  return header.ok() && header->HasColumn("pass") &&
         header->HasColumn("heads") && header->HasColumn("sequence_length");
}

absl::StatusOr<Import> ImportAttention(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source) {
  ASSIGN_OR_RETURN(const MeasuredAttention attention,
                   ReadAttention(label, text));
  ASSIGN_OR_RETURN(const GemmMachine machine,
                   MachineOf(start, attention.format));
  const double peak = machine.flops_per_second;
  const double launch = start.kernel_seconds().value();
  const AttentionFigures before = AttentionFiguresOf(start);
  ASSIGN_OR_RETURN(const HeadSizeFit fitted,
                   FitHeadSizes(peak, launch, before, attention));
  const ErrorStatistics& fit_errors = fitted.fit.errors;
  Import import;
  import.profile = start;
  import.report = absl::StrCat(
      ErrorLine("fit", fit_errors, attention),
      ErrorLine("before the fit", ErrorsOfProfile(start, peak, attention),
                attention));
  std::vector<double> lengths;
  for (const models::Kernel& kernel : attention.kernels) {
    lengths.push_back(kernel.m);
  }
  RETURN_IF_ERROR(CheckExplained(
      label, fitted.fit, *std::max_element(lengths.begin(), lengths.end()),
      import));
  absl::StrAppend(&import.report,
                  WarnOfFastAttention(attention, fitted.samples, peak));
  std::string what = absl::StrFormat(
      "%s%s%s: %d runs of fused attention, mean |error| %.1f %%", source,
      attention.backend.empty() ? "" : ", ", attention.backend,
      fit_errors.num_rows, 100 * fit_errors.mean_absolute);
  const std::vector<int> groups = GroupsOf(lengths);
  const int num_lengths = *std::max_element(groups.begin(), groups.end()) + 1;
  if (num_lengths > 2) {
    ASSIGN_OR_RETURN(
        const std::vector<double> unseen,
        PredictUnseenLengths(peak, launch, before, fitted.samples, groups));
    const ErrorStatistics errors = SummarizeErrors(unseen, attention.seconds);
    absl::StrAppend(&import.report,
                    ErrorLine("cross-validation (a sequence length left out)",
                              errors, attention));
    absl::StrAppendFormat(&what, ", %.1f %% with their length left out",
                          100 * errors.mean_absolute);
  }
  SetAttentionFigures(attention, fitted, num_lengths > 1, what,
                      &import.profile);
  if (const int removed = RemoveMeasuredAttention(&import.profile);
      removed > 0) {
    absl::StrAppendFormat(&import.report,
                          "removed %d measured kernels of fused attention, "
                          "which would take precedence\n",
                          removed);
  }
  return import;
}

}  // namespace weir::calibrate
