// SPDX-License-Identifier: Apache-2.0
#include "results/draw/slack_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"
#include "results/draw/chart.h"

namespace weir::results {
namespace {

// Dark is more, as in the table of slack in reports. The palest differs from
// the background of rows.
constexpr char kLeastColor[] = "#c6dbef", kMostColor[] = "#08306b";

}  // namespace

SlackScale::SlackScale(std::span<const TimelineRows> runs) {
  for (const TimelineRows& run : runs) {
    for (const TimelineRow& row : run.rows) {
      for (const TimelineBox& box : row.boxes) {
        largest_ = std::max(largest_, box.slack);
        has_critical_ |= box.slack == 0;
      }
    }
  }
}

double SlackScale::PartOf(double slack) const {
  // Few colors make small files.
  constexpr double kLast = kColorSteps - 1;
  return largest_ > 0 ? std::round(kLast * slack / largest_) / kLast : 0;
}

std::string SlackScale::ColorOf(double slack) const {
  return slack > 0 ? MixColors(kLeastColor, kMostColor, PartOf(slack))
                   : kVermilion;
}

const char* SlackScale::TextColorOf(double slack) const {
  return slack > 0 && PartOf(slack) > 0.55 ? kWhite : kBlack;
}

double SlackScale::DrawLegend(double left, double y, double right,
                              Drawing* drawing) const {
  double x = left;
  if (largest_ > 0) {
    x = DrawColorScale("slack: 0", FormatSeconds(largest_), kLeastColor,
                       kMostColor, left, y, drawing);
  }
  std::vector<LegendEntry> entries;
  if (has_critical_) {
    entries.push_back({"critical: no slack", {kVermilion}});
  }
  entries.push_back({"no pass", {kLightGray}});
  constexpr double kRoom = 120;
  if (right - x < kRoom) {
    x = left;
    y += kLineStep;
  }
  return results::DrawLegend(entries, x, y, right, drawing);
}

}  // namespace weir::results
