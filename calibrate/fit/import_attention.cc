// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_attention.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {
namespace {

constexpr double kMaxAttentionSize = 1e9;
constexpr double kMaxAttentionSeconds = 1e4;

struct MeasuredAttention {
  std::string format, kernel;  // empty: no such column
  std::vector<AttentionSample> samples;
  std::vector<int> lines;
  std::set<double> lengths;
  bool has_forward = false, has_backward = false;
};

// Returns the value of all rows; empty without the column.
absl::StatusOr<std::string> SameInAllRows(const CsvTable& table,
                                          absl::string_view name) {
  if (!table.HasColumn(name) || table.num_rows() == 0) return "";
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  for (int row = 1; row < table.num_rows(); ++row) {
    if (column.Text(row) == column.Text(0)) continue;
    return column.Error(row, absl::StrCat("expected \"", column.Text(0),
                                          "\" as in the previous rows"));
  }
  return column.Text(0);
}

absl::StatusOr<bool> IsBackward(const CsvColumn& pass, int row) {
  if (pass.Text(row) == "forward") return false;
  if (pass.Text(row) == "backward") return true;
  return pass.Error(row, "expected forward or backward");
}

absl::StatusOr<std::vector<double>> Column(const CsvTable& table,
                                           absl::string_view name, double low,
                                           double high) {
  ASSIGN_OR_RETURN(const CsvColumn column, table.Column(name));
  return column.Numbers(low, high);
}

absl::StatusOr<MeasuredAttention> ReadAttention(absl::string_view label,
                                                absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn pass, table.Column("attention_pass"));
  const auto sizes = [&](absl::string_view name) {
    return Column(table, name, 1, kMaxAttentionSize);
  };
  ASSIGN_OR_RETURN(const std::vector<double> batch, sizes("batch"));
  ASSIGN_OR_RETURN(const std::vector<double> heads, sizes("heads"));
  ASSIGN_OR_RETURN(const std::vector<double> length, sizes("sequence_length"));
  ASSIGN_OR_RETURN(const std::vector<double> head_size, sizes("head_size"));
  ASSIGN_OR_RETURN(const std::vector<double> causal,
                   Column(table, "causal", 0, 1));
  ASSIGN_OR_RETURN(const std::vector<double> seconds,
                   Column(table, "seconds", 1e-9, kMaxAttentionSeconds));
  if (table.num_rows() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ":2: has no rows, expected measured attention"));
  }
  MeasuredAttention measured;
  ASSIGN_OR_RETURN(measured.format, SameInAllRows(table, "dtype"));
  ASSIGN_OR_RETURN(measured.kernel, SameInAllRows(table, "kernel"));
  for (int row = 0; row < table.num_rows(); ++row) {
    ASSIGN_OR_RETURN(const bool is_backward, IsBackward(pass, row));
    // Two GEMMs forward, five backward; causal masks skip half of each, as in
    // models/attention.cc.
    AttentionSample sample;
    sample.num_gemms = is_backward ? 5 : 2;
    const double keys = length[row] * (causal[row] > 0.5 ? 0.5 : 1);
    const double queries = batch[row] * heads[row] * length[row];
    sample.flops_per_ramp_key = 2 * sample.num_gemms * queries * head_size[row];
    sample.flops = sample.flops_per_ramp_key * keys;
    sample.seconds = seconds[row];
    measured.samples.push_back(sample);
    measured.lines.push_back(table.rows()[row].line);
    measured.lengths.insert(length[row]);
    (is_backward ? measured.has_backward : measured.has_forward) = true;
  }
  return measured;
}

void SetFitted(double value, const std::string& source, Figure* figure) {
  figure->Clear();
  figure->set_value(value);
  figure->set_kind(Figure::FITTED);
  figure->set_source(source);
}

AttentionFigures AttentionOf(const DeviceProfile& profile) {
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

}  // namespace

bool LooksLikeAttention(absl::string_view text) {
  const auto header = ReadCsv("", text.substr(0, text.find('\n')));
  return header.ok() && header->HasColumn("attention_pass");
}

absl::StatusOr<Import> ImportAttention(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source) {
  ASSIGN_OR_RETURN(MeasuredAttention measured, ReadAttention(label, text));
  if (measured.format.empty()) {
    measured.format = PeakFlops(start, "bf16").ok() ? "bf16" : "fp16";
  }
  ASSIGN_OR_RETURN(const double peak_flops, PeakFlops(start, measured.format));
  ASSIGN_OR_RETURN(const AttentionFit fit,
                   FitAttention(peak_flops, start.kernel_seconds().value(),
                                AttentionOf(start), measured.samples));
  Import import;
  import.profile = start;
  import.report =
      absl::StrFormat("fit: %s; worst: line %d\n", Describe(fit.errors),
                      measured.lines[fit.errors.worst_row]);
  const std::string what = absl::StrFormat(
      "%s: %d runs of attention%s, mean |error| %.1f %%", source,
      fit.errors.num_rows,
      measured.kernel.empty() ? "" : absl::StrCat(" (", measured.kernel, ")"),
      100 * fit.errors.mean_absolute);
  if (measured.has_forward) {
    SetFitted(fit.figures.forward_efficiency, what,
              import.profile.mutable_attention_efficiency());
  }
  if (measured.has_backward) {
    SetFitted(fit.figures.backward_efficiency, what,
              import.profile.mutable_attention_backward_efficiency());
  }
  // One length cannot separate the ramp from the efficiency.
  if (measured.lengths.size() > 1) {
    SetFitted(fit.figures.ramp_keys, what,
              import.profile.mutable_attention_ramp_keys());
  }
  return import;
}

}  // namespace weir::calibrate
