// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/error_statistics.h"
#include "base/status_macros.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/measure/journal.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

constexpr absl::string_view kCsvHeader =
    "kind,name,expected,measured,error,note";

void AddFigures(const DeviceProfile& start, const DeviceProfile& profile,
                std::vector<ReportRow>* rows) {
  DeviceProfile before = start, after = profile;
  std::map<std::string, Figure> known;
  for (const NamedFigure& named : FiguresOf(&before)) {
    known[named.path] = *named.figure;
  }
  for (const NamedFigure& named : FiguresOf(&after)) {
    const Figure& was = known[named.path];
    if (was.source() == named.figure->source()) continue;
    rows->push_back({"figure", named.path, was.value(), named.figure->value(),
                     std::string(NameOf(named.figure->kind()))});
  }
}

std::string StageName(const MeasuredStage& stage) {
  return absl::StrCat(
      stage.model(), " ", stage.has_embedding() ? "embedding + " : "",
      stage.num_blocks(), stage.num_blocks() == 1 ? " block" : " blocks",
      stage.has_head() ? " + head" : "", " mb ", stage.microbatch_size(), " s ",
      stage.sequence_length(), " tp ", stage.tensor_parallel(), " ",
      stage.pass());
}

std::string MemoryName(const MeasuredMemory& memory) {
  return absl::StrCat(
      memory.model(), " ", memory.has_embedding() ? "embedding + " : "",
      memory.num_blocks(), memory.num_blocks() == 1 ? " block" : " blocks",
      memory.has_head() ? " + head" : "", " mb ", memory.microbatch_size(),
      " s ", memory.sequence_length(), " tp ", memory.tensor_parallel(),
      " with ", memory.num_microbatches(), " alive");
}

// NCCL's steps are of one rank: they do not represent communicators between
// GPUs and set no parameter.
void AddMemorySteps(const Calibration& journal, std::vector<ReportRow>* rows) {
  if (!journal.has_memory_steps()) return;
  const MemoryStepResult& steps = journal.memory_steps();
  const std::pair<const char*, double> taken[] = {
      {"context", steps.context_bytes()},
      {"libraries", steps.library_bytes()},
      {"GEMM workspace", steps.workspace_bytes()},
      {"NCCL of one rank, before first use", steps.communicator_bytes()},
      {"NCCL of one rank, by first use", steps.communication_bytes()}};
  for (const auto& [name, bytes] : taken) {
    rows->push_back({"memory_step", name, 0, bytes, ""});
  }
}

void AddMeasured(const DeviceProfile& profile, std::vector<ReportRow>* rows) {
  for (const MeasuredStage& stage : profile.stages()) {
    const double predicted =
        stage.sum_of_kernels_seconds() +
        stage.num_kernels() * profile.kernel_gap_seconds().value();
    rows->push_back(
        {FitsGap(stage) ? "stage_fit" : "stage", StageName(stage), predicted,
         PassSeconds(stage),
         absl::StrFormat("%d kernels, which take %.6g s%s", stage.num_kernels(),
                         stage.sum_of_kernels_seconds(),
                         stage.has_stream_seconds()
                             ? absl::StrFormat("; from a graph %.6g s",
                                               stage.seconds().p50())
                             : "")});
  }
  for (const MeasuredMemory& memory : profile.memory()) {
    rows->push_back({"memory", MemoryName(memory), memory.predicted_bytes(),
                     memory.used_high_bytes(),
                     absl::StrFormat("%.0f bytes rounded, %.0f reserved",
                                     memory.rounded_bytes(),
                                     memory.reserved_high_bytes())});
  }
}

std::string NoteOf(const WorkloadResult& result) {
  std::string note = absl::StrFormat(
      "n %d, interval %.2f %%, %.0f MHz, %.0f W",
      result.seconds().num_samples(), 100 * result.seconds().relative_ci(),
      result.multiprocessor_hertz() / 1e6, result.watts());
  if (!result.algorithm().empty()) {
    absl::StrAppend(&note, ", ", result.algorithm());
  }
  return note;
}

// Rates of copies, in bytes read and written per second, interpolated linearly
// in time between measured sizes; 0 outside the measured range.
class CopyRates {
 public:
  CopyRates(const MeasuringPlan& plan, const Calibration& journal) {
    for (const Workload& workload : plan.workloads) {
      if (workload.kind != Workload::Kind::kCopy) continue;
      const WorkloadResult* result = FindResult(journal, workload.key);
      if (result == nullptr || !result->has_seconds()) continue;
      seconds_[2 * workload.bytes] = result->seconds().p50();
    }
  }

  double At(double bytes) const {
    const auto above = seconds_.lower_bound(bytes);
    if (above == seconds_.end() || above == seconds_.begin()) return 0;
    const auto below = std::prev(above);
    const double part = (bytes - below->first) / (above->first - below->first);
    return bytes / (below->second + part * (above->second - below->second));
  }

 private:
  std::map<double, double> seconds_;  // by bytes
};

// Adds rows that compare weir's own kernels with their bounds.
void AddBounds(const StageOp& op, const WorkloadResult& result,
               const DeviceProfile& start, double peak, const CopyRates& copies,
               std::vector<ReportRow>* rows) {
  if (op.kernels.size() != 1) return;
  const models::Kernel& kernel = op.kernels[0];
  const double seconds = result.seconds().p50();
  if (kernel.kind == models::Kernel::Kind::kMemory &&
      copies.At(kernel.bytes) > 0) {
    rows->push_back({"bandwidth", result.key(), copies.At(kernel.bytes),
                     kernel.bytes / seconds,
                     "bandwidth of a copy of the same size"});
  } else if (kernel.kind == models::Kernel::Kind::kAttention) {
    rows->push_back({"attention", result.key(),
                     KernelSeconds(start, peak, kernel), seconds,
                     start.attention_efficiency().source()});
  }
}

void AddFlags(const WorkloadResult& result, std::vector<ReportRow>* rows) {
  const double n = result.seconds().num_samples();
  if (result.num_power_capped() + result.num_slowed_by_heat() > 0) {
    rows->push_back({"throttled", result.key(), 0, 0,
                     absl::StrFormat("%.0f %% of samples at the power limit, "
                                     "%.0f %% throttled by temperature",
                                     100 * result.num_power_capped() / n,
                                     100 * result.num_slowed_by_heat() / n)});
  }
  if (result.drifted()) {
    rows->push_back(
        {"drifted", result.key(), 1, result.reference_ratio(),
         "time of the reference GEMM relative to its first measurement"});
  }
}

void AddWorkloads(const MeasuringPlan& plan, const Calibration& journal,
                  const DeviceProfile& start, const DeviceProfile& profile,
                  std::vector<ReportRow>* rows) {
  std::map<std::string, const Workload*> planned;
  for (const Workload& workload : plan.workloads) {
    planned[workload.key] = &workload;
  }
  std::set<std::string> of_model;
  for (const PlannedPass& pass : plan.passes) {
    of_model.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  const double peak = PeakFlops(profile, Name(plan.format)).value_or(0);
  const CopyRates copies(plan, journal);
  for (const WorkloadResult& result : journal.workloads()) {
    const auto found = planned.find(result.key());
    if (found == planned.end()) continue;
    const Workload& workload = *found->second;
    if (result.state() == WorkloadResult::REFUSED ||
        result.state() == WorkloadResult::SKIPPED) {
      rows->push_back(
          {result.state() == WorkloadResult::REFUSED ? "refused" : "skipped",
           result.key(), 0, result.relative_error(), result.reason()});
      continue;
    }
    if (workload.kind == Workload::Kind::kOp) {
      rows->push_back(
          {"verify", result.key(), 1e-2, result.relative_error(), ""});
    }
    if (result.state() != WorkloadResult::TIMED) continue;
    const double seconds = result.seconds().p50();
    if (workload.kind == Workload::Kind::kOp && peak > 0) {
      const StageOp& op = OpOf(workload);
      rows->push_back({of_model.count(result.key()) > 0 ? "kernel" : "grid",
                       result.key(), KernelSeconds(profile, peak, op.kernels),
                       seconds, NoteOf(result)});
      AddBounds(op, result, start, peak, copies, rows);
    } else if (workload.kind == Workload::Kind::kCopy) {
      rows->push_back({"copy", result.key(),
                       profile.memory_bytes_per_second().value(),
                       2 * workload.bytes / seconds, NoteOf(result)});
    } else if (workload.kind != Workload::Kind::kPass ||
               (workload.pass == ProgramPass::kOptimizer &&
                workload.active_partitions == 1)) {
      rows->push_back({"other", result.key(), 0, seconds, NoteOf(result)});
    }
    AddFlags(result, rows);
  }
}

void AddShares(const MeasuringPlan& plan, const Calibration& journal,
               std::vector<ReportRow>* rows) {
  for (const PlannedLoad& load : plan.loads) {
    const PlannedPass& pass = plan.passes[load.pass];
    const WorkloadResult* alone = FindResult(journal, pass.key);
    const WorkloadResult* loaded = FindResult(journal, load.key);
    if (alone == nullptr || !alone->has_seconds() || loaded == nullptr ||
        !loaded->has_seconds()) {
      continue;
    }
    const double before = alone->seconds().p50();
    const double after = loaded->seconds().p50();
    rows->push_back(
        {"share", load.key, before, after,
         absl::StrFormat("slowdown %.3f of %s with %d busy partitions",
                         after / before, Name(pass.pass), load.active)});
  }
}

double ErrorOf(const ReportRow& row) {
  return row.expected > 0 ? row.measured / row.expected - 1 : 0;
}

std::string ErrorText(const ReportRow& row) {
  return row.expected > 0 ? absl::StrFormat("%+.1f %%", 100 * ErrorOf(row))
                          : "";
}

std::vector<const ReportRow*> Of(const std::vector<ReportRow>& rows,
                                 absl::string_view kind) {
  std::vector<const ReportRow*> some;
  for (const ReportRow& row : rows) {
    if (row.kind == kind) some.push_back(&row);
  }
  return some;
}

void PrintTable(const std::vector<ReportRow>& all, absl::string_view kind,
                absl::string_view title, absl::string_view expected,
                std::string* text) {
  const auto rows = Of(all, kind);
  if (rows.empty()) return;
  size_t width = title.size();
  for (const ReportRow* row : rows) width = std::max(width, row->name.size());
  absl::StrAppendFormat(text, "%-*s  %12s %12s %9s\n", width, title, expected,
                        "measured", "error");
  for (const ReportRow* row : rows) {
    absl::StrAppendFormat(text, "%-*s  %12.6g %12.6g %9s  %s\n", width,
                          row->name, row->expected, row->measured,
                          ErrorText(*row), row->note);
  }
  absl::StrAppend(text, "\n");
}

void PrintErrors(const std::vector<ReportRow>& all,
                 std::initializer_list<absl::string_view> kinds,
                 absl::string_view title, std::string* text) {
  std::vector<double> expected, measured;
  for (const absl::string_view kind : kinds) {
    for (const ReportRow* row : Of(all, kind)) {
      if (!(row->expected > 0 && row->measured > 0)) continue;
      expected.push_back(row->expected);
      measured.push_back(row->measured);
    }
  }
  if (measured.empty()) return;
  absl::StrAppend(text, title, ": ",
                  Describe(SummarizeErrors(expected, measured)), "\n");
}

void PrintNames(const std::vector<ReportRow>& all, absl::string_view kind,
                std::string* text) {
  for (const ReportRow* row : Of(all, kind)) {
    absl::StrAppend(text, kind, ": ", row->name, ": ", row->note, "\n");
  }
}

}  // namespace

std::vector<ReportRow> MakeReport(const MeasuringPlan& plan,
                                  const Calibration& journal,
                                  const DeviceProfile& start,
                                  const DeviceProfile& profile) {
  std::vector<ReportRow> rows;
  AddFigures(start, profile, &rows);
  AddMeasured(profile, &rows);
  AddMemorySteps(journal, &rows);
  AddShares(plan, journal, &rows);
  AddWorkloads(plan, journal, start, profile, &rows);
  return rows;
}

std::string PrintReport(const std::vector<ReportRow>& rows) {
  std::string text;
  PrintTable(rows, "figure", "parameter", "start", &text);
  PrintTable(rows, "stage", "pass of a stage, s", "kernels", &text);
  PrintTable(rows, "stage_fit", "pass used to fit the gap, s", "kernels",
             &text);
  PrintTable(rows, "share", "pass with other partitions busy, s", "alone",
             &text);
  PrintTable(rows, "memory", "memory of a stage, bytes", "buffers", &text);
  PrintTable(rows, "memory_step", "memory taken, bytes", "", &text);
  PrintErrors(rows, {"stage"}, "stages predicted from kernels and gaps", &text);
  PrintErrors(rows, {"kernel", "grid"}, "kernels predicted from the parameters",
              &text);
  double worst = 0;
  for (const ReportRow* row : Of(rows, "verify")) {
    worst = std::max(worst, row->measured);
  }
  absl::StrAppendFormat(&text,
                        "%d operations correct, relative error at most %.2g\n",
                        Of(rows, "verify").size(), worst);
  const size_t throttled = Of(rows, "throttled").size();
  if (throttled > 0) {
    absl::StrAppendFormat(
        &text,
        "%d workloads were throttled by the power limit or by temperature\n",
        throttled);
  }
  PrintNames(rows, "drifted", &text);
  PrintNames(rows, "skipped", &text);
  PrintNames(rows, "refused", &text);
  return text;
}

absl::StatusOr<std::vector<ReportRow>> ReadReportCsv(absl::string_view label,
                                                     absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn kind, table.Column("kind"));
  ASSIGN_OR_RETURN(const CsvColumn name, table.Column("name"));
  ASSIGN_OR_RETURN(const CsvColumn expected, table.Column("expected"));
  ASSIGN_OR_RETURN(const CsvColumn measured, table.Column("measured"));
  ASSIGN_OR_RETURN(const CsvColumn note, table.Column("note"));
  std::vector<ReportRow> rows;
  for (int i = 0; i < table.num_rows(); ++i) {
    ReportRow row = {kind.Text(i), name.Text(i), 0, 0, note.Text(i)};
    // The error of a wrong operation may be NaN.
    for (const auto& [column, value] :
         {std::pair(expected, &row.expected), {measured, &row.measured}}) {
      if (!absl::SimpleAtod(column.Text(i), value)) {
        return column.Error(i, "expected a number");
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool IsReportHeader(absl::string_view line) { return line == kCsvHeader; }

std::string PrintReportCsv(const std::vector<ReportRow>& rows) {
  std::string text = absl::StrCat(kCsvHeader, "\n");
  for (const ReportRow& row : rows) {
    absl::StrAppendFormat(&text, "%s,%s,%.9g,%.9g,%.6f,%s\n", row.kind,
                          CsvField(row.name), row.expected, row.measured,
                          ErrorOf(row), CsvField(row.note));
  }
  return text;
}

}  // namespace weir::calibrate
