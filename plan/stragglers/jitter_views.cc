// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "plan/stragglers/jitter.h"

namespace weir::plan {
namespace {

using nlohmann::json;

std::vector<double> Differences(const NamedJitter& a, const NamedJitter& b) {
  std::vector<double> differences;
  for (size_t i = 0; i < a.samples.size(); ++i) {
    differences.push_back(a.samples[i] - b.samples[i]);
  }
  return differences;
}

}  // namespace

std::string JitterTable(std::span<const NamedJitter> all) {
  TextTable table;
  table.header = {"schedule", "no jitter", "mean", "increase",
                  "median",   "95 %",      "99 %"};
  if (all.size() > 1) table.header.push_back("than the first");
  std::string notes;
  for (const NamedJitter& named : all) {
    const JitterStatistics of = StatisticsOf(named.samples);
    std::vector<std::string> row = {
        named.label,
        FormatSeconds(named.batch_seconds),
        FormatSeconds(of.mean),
        absl::StrFormat("%+.2f %%",
                        named.batch_seconds > 0
                            ? 100 * (of.mean / named.batch_seconds - 1)
                            : 0),
        FormatSeconds(of.median),
        FormatSeconds(of.percentile_95),
        FormatSeconds(of.percentile_99)};
    if (&named != &all[0]) {
      const JitterStatistics than = StatisticsOf(Differences(named, all[0]));
      const double first = StatisticsOf(all[0].samples).mean;
      row.push_back(first > 0
                        ? absl::StrFormat("%+.2f %% +- %.2f %%",
                                          100 * than.mean / first,
                                          100 * than.standard_error / first)
                        : "");
    }
    table.rows.push_back(std::move(row));
    if (named.simulated_batches > 1) {
      const std::string of =
          named.num_batches == 1
              ? "that of one of them"
              : absl::StrCat("the mean over ", named.num_batches, " of them");
      absl::StrAppend(&notes, "\n", named.label, ": ", named.simulated_batches,
                      " batches were simulated; a step time is ", of,
                      named.num_batches < named.simulated_batches
                          ? ", in the steady state without jitter\n"
                          : "\n");
    }
    if (!named.is_exact) {
      absl::StrAppend(&notes, "\n", named.label,
                      ": transfers share links or slow passes down; they keep "
                      "their simulated durations\n");
    }
  }
  return absl::StrCat(PrintTable(table), notes);
}

std::string JitterJson(const JitterRequest& request,
                       std::span<const NamedJitter> all) {
  json sources = json::array(), schedules = json::array();
  for (const JitterSource& source : request.sources) {
    sources.push_back(source.text);
  }
  for (const NamedJitter& named : all) {
    const JitterStatistics of = StatisticsOf(named.samples);
    schedules.push_back({{"schedule", named.schedule},
                         {"batch_seconds", named.batch_seconds},
                         {"simulated_batches", named.simulated_batches},
                         {"num_batches", named.num_batches},
                         {"makespan_seconds", named.makespan_seconds},
                         {"is_exact", named.is_exact},
                         {"mean_seconds", of.mean},
                         {"standard_error_seconds", of.standard_error},
                         {"median_seconds", of.median},
                         {"percentile_95_seconds", of.percentile_95},
                         {"percentile_99_seconds", of.percentile_99},
                         {"largest_seconds", of.largest},
                         {"samples_seconds", named.samples}});
  }
  return DumpJson(json{{"sources", std::move(sources)},
                       {"seed", request.seed},
                       {"num_samples", request.num_samples},
                       {"schedules", std::move(schedules)}});
}

}  // namespace weir::plan
