// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_streams.h"

#include <algorithm>
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
#include "calibrate/profile/figures.h"

namespace weir::calibrate {
namespace {

struct Streams {
  std::vector<StreamSample> samples;
  std::vector<double> seconds;
  std::vector<int> lines;
  bool has[3] = {};  // by StreamKind
};

absl::StatusOr<Streams> ReadStreams(absl::string_view label,
                                    absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn kernels, table.Column("kernel"));
  ASSIGN_OR_RETURN(const CsvColumn bytes, table.Column("bytes"));
  ASSIGN_OR_RETURN(const std::vector<double> sizes, bytes.Numbers(1, 1e15));
  Streams streams;
  ASSIGN_OR_RETURN(streams.seconds, ReadSeconds(table));
  RETURN_IF_ERROR(CheckColumns(table, {"kernel", "bytes", "launches"}));
  std::vector<double> launches(table.num_rows(), 1);
  if (table.HasColumn("launches")) {
    ASSIGN_OR_RETURN(launches, ReadSizes(table, "launches"));
  }
  if (table.num_rows() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ":2: has no rows, expected measured kernels"));
  }
  for (int row = 0; row < table.num_rows(); ++row) {
    StreamSample sample;
    const absl::string_view kernel = kernels.Text(row);
    if (kernel == "norm") {
      sample.kind = StreamKind::kNorm;
    } else if (kernel == "elementwise") {
      sample.kind = StreamKind::kElementwise;
    } else if (kernel != "copy") {
      return kernels.Error(row, "expected copy, elementwise or norm");
    }
    sample.bytes = sizes[row];
    sample.launches = launches[row];
    sample.seconds = streams.seconds[row];
    streams.has[static_cast<int>(sample.kind)] = true;
    streams.samples.push_back(sample);
    streams.lines.push_back(table.rows()[row].line);
  }
  return streams;
}

StreamFigures FiguresOfProfile(const DeviceProfile& profile) {
  const double memory = profile.memory_efficiency().value();
  StreamFigures figures;
  figures.launch_seconds = profile.kernel_seconds().value();
  figures.efficiency[static_cast<int>(StreamKind::kMemory)] = memory;
  figures.efficiency[static_cast<int>(StreamKind::kNorm)] =
      profile.has_norm_efficiency() ? profile.norm_efficiency().value()
                                    : memory;
  figures.efficiency[static_cast<int>(StreamKind::kElementwise)] =
      profile.has_elementwise_efficiency()
          ? profile.elementwise_efficiency().value()
          : memory;
  return figures;
}

absl::StatusOr<std::vector<double>> PredictUnseen(
    double peak, const StreamFigures& start,
    const std::vector<StreamSample>& samples) {
  return CrossValidate(
      RowFolds(static_cast<int>(samples.size()),
               std::min<int>(static_cast<int>(samples.size()), 10)),
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        std::vector<StreamSample> seen;
        for (const int row : fitted) seen.push_back(samples[row]);
        ASSIGN_OR_RETURN(const StreamFit fit, FitStreams(peak, start, seen));
        std::vector<double> seconds;
        for (const int row : left_out) {
          seconds.push_back(SecondsOf(peak, fit.figures, samples[row]));
        }
        return seconds;
      });
}

std::string ErrorLine(const char* what, const ErrorStatistics& errors,
                      const Streams& streams) {
  return absl::StrFormat(
      "%s: %s; worst: %.0f bytes (line %d)\n", what, Describe(errors),
      streams.samples[errors.worst_row].bytes, streams.lines[errors.worst_row]);
}

void SetStreamFigure(double value, const std::string& source, Figure* figure) {
  figure->Clear();
  figure->set_value(value);
  figure->set_kind(Figure::FITTED);
  figure->set_source(source);
}

}  // namespace

bool LooksLikeStreams(absl::string_view text) {
  const auto header = ReadCsv("", text.substr(0, text.find('\n')));
  return header.ok() && header->HasColumn("kernel") &&
         header->HasColumn("bytes");
}

absl::StatusOr<Import> ImportStreams(absl::string_view label,
                                     absl::string_view text,
                                     const DeviceProfile& start,
                                     absl::string_view source) {
  ASSIGN_OR_RETURN(const Streams streams, ReadStreams(label, text));
  const double peak = start.memory_bytes_per_second().value();
  const StreamFigures before = FiguresOfProfile(start);
  ASSIGN_OR_RETURN(const StreamFit fit,
                   FitStreams(peak, before, streams.samples));
  Import import;
  import.profile = start;
  import.report = ErrorLine("fit", fit.errors, streams);
  std::string what = absl::StrFormat(
      "%s: %d memory-bound kernels, mean |error| %.1f %%", source,
      fit.errors.num_rows, 100 * fit.errors.mean_absolute);
  if (streams.samples.size() > 2) {
    ASSIGN_OR_RETURN(const std::vector<double> unseen,
                     PredictUnseen(peak, before, streams.samples));
    const ErrorStatistics errors = SummarizeErrors(unseen, streams.seconds);
    absl::StrAppend(&import.report,
                    ErrorLine("cross-validation (10 folds)", errors, streams));
    absl::StrAppendFormat(&what, ", %.1f %% left out",
                          100 * errors.mean_absolute);
    *import.profile.mutable_memory_residual() =
        ResidualOf(errors.mean_absolute, what);
  }
  DeviceProfile* profile = &import.profile;
  SetStreamFigure(fit.figures.launch_seconds, what,
                  profile->mutable_kernel_seconds());
  const auto set = [&](StreamKind kind, Figure* figure) {
    SetStreamFigure(fit.figures.efficiency[static_cast<int>(kind)], what,
                    figure);
  };
  if (streams.has[static_cast<int>(StreamKind::kMemory)]) {
    set(StreamKind::kMemory, profile->mutable_memory_efficiency());
  }
  if (streams.has[static_cast<int>(StreamKind::kNorm)]) {
    set(StreamKind::kNorm, profile->mutable_norm_efficiency());
  }
  if (streams.has[static_cast<int>(StreamKind::kElementwise)]) {
    set(StreamKind::kElementwise, profile->mutable_elementwise_efficiency());
  }
  return import;
}

}  // namespace weir::calibrate
