// SPDX-License-Identifier: Apache-2.0
// "draw".
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/add_option.h"
#include "cli/options/import_options.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"
#include "plan/sweep/sweep_views.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<uint32_t>> ParseDrawnRanks(const std::string& text) {
  std::vector<uint32_t> ranks;
  for (absl::string_view one : absl::StrSplit(text, ',')) {
    uint32_t rank = 0;
    if (!absl::SimpleAtoi(one, &rank)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is ", EscapeLine(text), ", expected ranks such as 0,3,7"));
    }
    ranks.push_back(rank);
  }
  return ranks;
}

// The smallest picture holds some text, the largest is a poster.
absl::StatusOr<double> ParseMillimeters(const std::string& text) {
  const auto width = ParsePositive(text);
  if (width.ok() && *width >= 40 && *width <= 2000) return *width;
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text), ", expected millimeters from 40 to 2000"));
}

}  // namespace

void AddDrawCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  DrawFlags* draw = &flags->draw;
  CLI::App* command = AddWeirCommand(
      app, "draw",
      "Draws figures for papers: timelines, memory, slack, idle time, plans, "
      "sweeps.",
      {"draw zb-v --pp 4 --microbatches 8 -o zb-v.svg",
       "draw out/compare.pb --result gpipe --kind memory --columns 1 -o "
       "memory.svg",
       "draw pipedream-2bw-gpt-2.2b --schedule 1f1b --kind roofline -o "
       "roofline.svg"},
      RunDraw, line);
  AddText(command, "INPUT", "",
          "schedule (name or file), scenario (preset or file), file written by "
          "--out, folder of a sweep, or output of plan --format json or "
          "validate --format csv; empty: a scenario of flags",
          &flags->scenario.scenario);
  AddText(command, "-o,--output", "FILE",
          "picture to write: .svg; .pdf and .png need rsvg-convert",
          &flags->output.picture)
      ->required()
      ->group("Figure");
  command->option_defaults()->group("Figure");
  using Kind = DrawFlags::Kind;
  AddChoice<Kind>(command, "--kind", "what is drawn",
                  {{"timeline", Kind::kTimeline},
                   {"memory", Kind::kMemory},
                   {"slack", Kind::kSlack},
                   {"idle", Kind::kIdle},
                   {"pareto", Kind::kPareto},
                   {"heatmap", Kind::kHeatmap},
                   {"roofline", Kind::kRoofline},
                   {"errors", Kind::kErrors}},
                  &draw->kind)
      ->default_str(
          "timeline; heatmap of a sweep, pareto of plans, errors of "
          "a validation");
  AddChoice<bool>(command, "--columns",
                  "width of the figure in columns of a paper: 85 or 178 mm",
                  {{"1", true}, {"2", false}}, &draw->one_column)
      ->default_str("2");
  AddOption(command, "--width", "MM", "width of the figure in millimeters",
            ParseMillimeters, &draw->width_millimeters)
      ->default_str("that of --columns");
  AddSwitch(command, "--title", "write a title above the figure", &draw->title)
      ->default_str("true");
  AddOption(command, "--ranks", "R,R,...",
            "pipeline ranks in timelines, memory, slack and idle time",
            ParseDrawnRanks, &draw->ranks)
      ->join(',')
      ->default_str("all; eight for memory");
  AddChoice<bool>(command, "--against",
                  "pareto: what plans trade for step time; cost is the price "
                  "per sample, or GPU seconds",
                  {{"memory", false}, {"cost", true}}, &draw->against_cost)
      ->default_str("memory");
  AddText(command, "--fields", "ROWS,COLUMNS",
          "heatmap: two fields of the sweep, as in tp,pp", &draw->fields)
      ->join(',')
      ->default_str("the first two");
  AddOption(
      command, "--metric", "METRIC",
      absl::StrCat("heatmap: ", absl::StrJoin(plan::PivotMetrics(), ", ")),
      plan::ParsePivotMetric, &draw->metric)
      ->default_str(draw->metric);
  AddText(command, "--result", "NAME",
          "draw only this schedule or name of the saved result",
          &flags->result);
  AddImports(command, &flags->scenario);
  AddScenario(command, /*several=*/true, &flags->scenario);
  AddForce(command, &flags->output.force);
}

}  // namespace weir::cli
