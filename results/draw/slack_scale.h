// SPDX-License-Identifier: Apache-2.0
// Colors of passes by their slack, for timelines.
#ifndef WEIR_RESULTS_DRAW_SLACK_SCALE_H_
#define WEIR_RESULTS_DRAW_SLACK_SCALE_H_

#include <span>
#include <string>

#include "results/draw/drawing.h"
#include "results/draw/timeline_rows.h"

namespace weir::results {

// One scale for all runs of a figure, from 0 to their largest slack.
class SlackScale {
 public:
  explicit SlackScale(std::span<const TimelineRows> runs);

  // Returns the color of a pass: without slack that of critical ones, else
  // darker with more slack.
  std::string ColorOf(double slack) const;

  // Returns the color of text on such a pass.
  const char* TextColorOf(double slack) const;

  // Draws the scale with its unit, and the colors of critical passes and of
  // time without a pass, from (left, y) on, in lines that end at `right`.
  // Returns the y below.
  double DrawLegend(double left, double y, double right,
                    Drawing* drawing) const;

 private:
  double PartOf(double slack) const;

  double largest_ = 0;
  bool has_critical_ = false;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_SLACK_SCALE_H_
