// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "results/compare/idle_causes.h"
#include "results/draw/figures.h"
#include "results/pipeline_events.h"
#include "results/summary.h"

namespace weir::results {
namespace {

constexpr int kNumParts = kNumIdleCauses + 1;  // the causes, then drain

struct IdlePart {
  const char* name;
  const char* color;
};
constexpr IdlePart kIdleParts[kNumParts] = {
    {"waits for a pass of another rank", kSkyBlue},
    {"transfer waits", kPurple},
    {"transfer", kOrange},
    {"collectives of replicas", kGreen},
    {"copies to the host", kBlue},
    {"other", kGray},
    {"after the last pass", kYellow},
};

struct IdleBar {
  std::string label;
  std::array<double, kNumParts> seconds{};
  double makespan_seconds = 0;

  double total() const {
    double sum = 0;
    for (const double part : seconds) sum += part;
    return sum;
  }
};

IdleBar BarOf(std::string label, const RankIdle& idle, double divisor,
              double makespan_seconds) {
  IdleBar bar;
  bar.label = std::move(label);
  for (int cause = 0; cause < kNumIdleCauses; ++cause) {
    bar.seconds[cause] = idle.of(static_cast<IdleCause>(cause)) / divisor;
  }
  bar.seconds[kNumIdleCauses] = idle.drain_seconds / divisor;
  bar.makespan_seconds = makespan_seconds;
  return bar;
}

absl::Status AddBars(const Result& result, bool one,
                     std::span<const uint32_t> ranks,
                     std::vector<IdleBar>* bars) {
  ASSIGN_OR_RETURN(const PipelineEvents events,
                   PipelineEventsOf(result.schedule(), result));
  const std::vector<RankIdle> idle = FindIdleCauses(events);
  std::vector<bool> shown(idle.size(), ranks.empty());
  for (const uint32_t rank : ranks) {
    if (rank >= idle.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(result.schedule(), ": --ranks has ", rank,
                       ", expected ranks below ", idle.size()));
    }
    shown[rank] = true;
  }
  std::vector<RankIdle> chosen;
  for (size_t rank = 0; rank < idle.size(); ++rank) {
    if (!shown[rank]) continue;
    chosen.push_back(idle[rank]);
    if (one) {
      bars->push_back(BarOf(absl::StrCat("rank ", rank), idle[rank], 1,
                            events.makespan_seconds));
    }
  }
  if (!one) {
    bars->push_back(BarOf(RowName(result), SumOf(chosen),
                          static_cast<double>(chosen.size()),
                          events.makespan_seconds));
  }
  return absl::OkStatus();
}

std::string TotalText(const IdleBar& bar) {
  return absl::StrCat(FormatSeconds(bar.total()), ", ",
                      FormatPercent(bar.total() / bar.makespan_seconds));
}

}  // namespace

absl::StatusOr<Drawing> IdleFigure(std::span<const Result> results,
                                   std::span<const uint32_t> ranks,
                                   const FigureOptions& options) {
  std::vector<IdleBar> bars;
  const bool one = results.size() == 1;
  for (const Result& result : results) {
    RETURN_IF_ERROR(AddBars(result, one, ranks, &bars));
  }
  double most = 0, label_width = 0, total_width = 0;
  for (const IdleBar& bar : bars) {
    if (!(bar.makespan_seconds > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(bar.label, ": takes no time"));
    }
    most = std::max(most, bar.total());
    label_width = std::max(label_width, TextWidth(bar.label, kFontSize));
    total_width = std::max(total_width, TextWidth(TotalText(bar), kFontSize));
  }
  if (most == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(results[0].schedule(), ": has no idle time to draw"));
  }
  const std::string title =
      one ? absl::StrCat(RowName(results[0]), ": idle time by cause")
          : "idle time by cause, mean over the ranks";
  Drawing drawing(options.width, title,
                  "Stacked bars of idle seconds by cause.");
  label_width = std::min(label_width, options.width / 3);
  constexpr double kMaxHeight = 600;
  const double step =
      std::clamp(kMaxHeight / static_cast<double>(bars.size()), 3.0, 12.0);
  Frame frame;
  frame.left = kOuterMargin + label_width + 4;
  frame.right = options.width - kOuterMargin - total_width - 4;
  frame.top = kOuterMargin + (options.show_title ? 12 : 0);
  frame.bottom = frame.top + step * static_cast<double>(bars.size()) + 2;
  DrawTitle(title, frame.left, options, &drawing);
  const AxisUnit unit = SecondsUnit(most);
  const Scale x = {0, most * 1.02, frame.left, frame.right};
  DrawBottomAxis(
      {x, absl::StrCat("idle time per rank (", unit.name, ")"), unit, true},
      frame, &drawing);
  std::array<bool, kNumParts> used{};
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = frame.top + step * static_cast<double>(i) + 1;
    double from = 0;
    for (int part = 0; part < kNumParts; ++part) {
      const double seconds = bars[i].seconds[part];
      if (!(seconds > 0)) continue;
      // Parts that are too short to see are not in the legend.
      used[part] = used[part] || x.At(seconds) - x.At(0) > 0.2;
      drawing.Rectangle(x.At(from), y, x.At(seconds) - x.At(0), step - 2,
                        {kIdleParts[part].color, kWhite, 0.3});
      from += seconds;
    }
    if (step < 7) continue;  // no room for text
    drawing.Text(frame.left - 4, y + step / 2 + 1.5,
                 FitText(bars[i].label, kFontSize, label_width),
                 {.anchor = Anchor::kEnd});
    drawing.Text(x.At(from) + 3, y + step / 2 + 1.5, TotalText(bars[i]));
  }
  std::vector<LegendEntry> entries;
  for (int part = 0; part < kNumParts; ++part) {
    if (used[part]) {
      entries.push_back({kIdleParts[part].name, {kIdleParts[part].color}});
    }
  }
  const double end = DrawLegend(entries, kOuterMargin + 4,
                                frame.bottom + kBottomAxisHeight + 3,
                                options.width - kOuterMargin, &drawing);
  drawing.set_height(end + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
