// SPDX-License-Identifier: Apache-2.0
// Prints the contents of results/accuracy/README.md from the rows of every set:
//
//   accuracy_report SETS.csv FOLDER > FOLDER/README.md
//
// FOLDER holds SET.csv as written by "weir validate --format csv" and, if
// parameters were fitted to the set itself, SET_left_out.csv, in which every
// row is predicted by a fit that has not seen it.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "tools/accuracy/memory_errors.h"
#include "tools/accuracy/published_sets.h"
#include "tools/accuracy/row_errors.h"
#include "tools/accuracy/source_errors.h"

namespace weir {
namespace {

std::string Percent(double part) {
  return absl::StrFormat("%.1f %%", 100 * part);
}
std::string Signed(double part) {
  return absl::StrFormat("%+.1f %%", 100 * part);
}

// Escapes text for a Markdown table.
std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}});
}

std::string TargetOf(const PublishedSet& set) {
  double target = 0;
  if (set.target.empty() || !absl::SimpleAtod(set.target, &target)) return "-";
  std::string text = absl::StrFormat("%g %%", 100 * target);
  if (absl::SimpleAtod(set.worst_target, &target)) {
    absl::StrAppend(&text, absl::StrFormat(", worst %g %%", 100 * target));
  }
  return text;
}

bool Meets(const PublishedSet& set, const ErrorStatistics& statistics) {
  double target = 0;
  if (absl::SimpleAtod(set.target, &target) &&
      statistics.mean_absolute > target)
    return false;
  return !absl::SimpleAtod(set.worst_target, &target) ||
         std::abs(statistics.worst) <= target;
}

absl::StatusOr<std::string> RowOf(const PublishedSet& set,
                                  const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", set.name);
  ASSIGN_OR_RETURN(const RowErrors rows,
                   LoadRowErrors(path + ".csv", set.quantity));
  const ErrorStatistics own = rows.Statistics();
  // The error on rows that the fit has not seen counts; a set without a fit has
  // only one error.
  ErrorStatistics counts = own;
  double inside = PartInside(rows, rows);
  std::string left_out = set.fitted.empty() ? "nothing fitted" : "not done";
  if (std::filesystem::exists(path + "_left_out.csv")) {
    ASSIGN_OR_RETURN(const RowErrors unseen,
                     LoadRowErrors(path + "_left_out.csv", set.quantity));
    counts = unseen.Statistics();
    left_out = Percent(counts.mean_absolute);
    inside = PartInside(unseen, rows);
  }
  std::string worst = "-";
  if (own.worst_row >= 0) {
    worst =
        absl::StrCat(Signed(own.worst), ": line ", rows.lines[own.worst_row],
                     ", ", rows.names[own.worst_row]);
  }
  const std::string met = set.target.empty()   ? ""
                          : Meets(set, counts) ? "yes"
                                               : "**no**";
  return absl::StrCat(
      "| ", Cell(set.title), " (`", set.name, "`) | ", TargetOf(set), " | ",
      met, " | ", own.num_rows, " | ", Percent(own.mean_absolute), " | ",
      left_out, " | ", Signed(own.bias), " | ", Percent(own.percentile_90),
      " | ", inside < 0 ? "-" : Percent(inside), " | ", Cell(worst), " |\n");
}

// Returns notes that do not fit in a row of the table.
absl::StatusOr<std::string> NotesOf(const PublishedSet& set,
                                    const std::string& folder) {
  ASSIGN_OR_RETURN(
      const RowErrors rows,
      LoadRowErrors(absl::StrCat(folder, "/", set.name, ".csv"), set.quantity));
  std::string notes;
  if (!rows.skipped.empty()) {
    absl::StrAppend(&notes, "- ", rows.skipped.size(),
                    " runs could not be simulated:\n");
    for (const std::string& line : rows.skipped) {
      absl::StrAppend(&notes, "  - ", Cell(line), "\n");
    }
  }
  if (rows.num_predicted_misfits > 0) {
    absl::StrAppend(&notes, "- ", rows.num_predicted_misfits,
                    " runs fitted in memory, but are predicted not to (they "
                    "count in the table).\n");
  }
  if (rows.num_misfits > 0) {
    absl::StrAppend(&notes, "- ", rows.num_misfits - rows.wrong_misfits.size(),
                    " of ", rows.num_misfits,
                    " runs that did not fit in memory are predicted not to.\n");
  }
  const Order order = CompareOrder(rows);
  if (order.num_pairs > 0 && set.target.empty()) {
    absl::StrAppend(&notes, "- ", order.num_pairs - order.wrong.size(), " of ",
                    order.num_pairs,
                    " pairs of systems are predicted in their measured order");
    absl::StrAppend(&notes, order.wrong.empty() ? ".\n" : ":\n");
    for (const std::string& wrong : order.wrong) {
      absl::StrAppend(&notes, "  - ", Cell(wrong), "\n");
    }
  }
  return notes;
}

constexpr absl::string_view kHead =
    R"(# Accuracy of weir's predictions on published measurements

Written by `tools/reproduce`; do not edit. The command writes to `out/accuracy/`: this page as `README.md`, its first
tables as `left_out.md` and `by_source.md`, the prediction of every run as `SET.csv`, and plots as `SET.svg` and
`errors.svg` (all sets). To update this page, copy it from there.

[results/published/](../published/README.md) has the measurements; `sets/` has, for each set, the scenario and every
assumption with its reason. To add a set, add a line to `sets/sets.csv`. The GEMMs and the complete table of vTrain's
single node are too large for this repository: `tools/reproduce` needs them in the folder `$WEIR_DATA`, and otherwise
leaves these four sets out. [published_2.md](published_2.md) has the errors of 652
published figures of 2021 to 2026, also with experts, FP8 and context parallelism.

A source is a paper, a recipe collection or a blog. Users plan runs that nobody has measured, so the accuracy on sources
that were left out of every fit is the one that matters, and comes first. Fitted to whole steps are one slowdown of
kernels for each device, and a residual of intervals; before the comparison, the launch times of the host in
Megatron-DeepSpeed (to vTrain's single node). Kernels and collectives are fitted to microbenchmarks.

)";

constexpr absl::string_view kBySourceHead =
    R"(
## With the profiles' figures

The same sources, and sources of memory, predicted with the figures of the profiles. "fitted" says whether a parameter
other than the slowdown was fitted to whole steps of the source.

- Errors are those of the step time (throughputs are inverted) or of memory: predicted / measured - 1. Below 0, a run is
  predicted too fast or a GPU too empty.
- "inside 90 %" is the percentage of rows whose measured value lies in the interval that should contain 90 % of them.
- "fit verdicts" counts the runs, including those that ran out of memory, for which weir predicts correctly whether they
  fit.
- "stage times": the times of the stages were measured, and weir predicts only the schedule.

)";

constexpr absl::string_view kSetsHead =
    R"(
## By set

- Errors are relative to the measured quantity: predicted / measured - 1. Above 0, a time or memory is predicted too
  large, or a throughput too high.
- "left out" is the mean absolute error on rows that were left out of the fit (cross-validation). "nothing fitted": no
  model parameter but the slowdown was fitted to rows of the set. "not done": parameters were fitted to the set without
  cross-validation; the table of left-out sources is the better guide. For vTrain's single node only the launch time of
  the host is fitted again without the rows; the other launch times have seen all rows.
- "inside 90 %" is the fraction of rows (left-out rows if there are any) whose measured value lies in the interval that
  should contain 90 % of them.

| set | target | met | rows | mean abs. error | left out | bias | 90th percentile | inside 90 % | worst |
|---|---|---|---|---|---|---|---|---|---|
)";

absl::StatusOr<std::string> Report(const std::string& sets_path,
                                   const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<PublishedSet> sets,
                   LoadPublishedSets(sets_path, folder));
  ASSIGN_OR_RETURN(const std::vector<SourceErrors> sources,
                   ErrorsBySource(sets, folder));
  // Written only if all sets were predicted.
  const absl::StatusOr<std::string> left_out =
      ReadFile(folder + "/left_out.md");
  ASSIGN_OR_RETURN(const std::vector<MemorySource> memory,
                   MemorySources(sets, folder));
  ASSIGN_OR_RETURN(const std::vector<SourceVerdicts> verdicts,
                   VerdictsBySource(sets, folder));
  std::string out = absl::StrCat(kHead, left_out.value_or(""), "\n",
                                 MemoryTables(memory, verdicts), kBySourceHead,
                                 SourceErrorsTable(sources), kSetsHead);
  for (const PublishedSet& set : sets) {
    ASSIGN_OR_RETURN(const std::string row, RowOf(set, folder));
    absl::StrAppend(&out, row);
  }
  for (const PublishedSet& set : sets) {
    ASSIGN_OR_RETURN(const std::string notes, NotesOf(set, folder));
    if (notes.empty()) continue;
    absl::StrAppend(&out, "\n### ", set.title, "\n\n", notes);
  }
  return out;
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SETS.csv FOLDER\n", argv[0]);
    return 2;
  }
  const absl::StatusOr<std::string> report = Report(argv[1], argv[2]);
  if (!report.ok()) {
    std::fprintf(stderr, "error: %s\n",
                 std::string(report.status().message()).c_str());
    return 2;
  }
  std::fwrite(report->data(), 1, report->size(), stdout);
  return 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
