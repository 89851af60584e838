// SPDX-License-Identifier: Apache-2.0
// Names and colors of the passes in timelines.
#ifndef WEIR_RESULTS_DRAW_PASS_COLORS_H_
#define WEIR_RESULTS_DRAW_PASS_COLORS_H_

#include <span>

#include "results/draw/chart.h"
#include "results/result.pb.h"

namespace weir::results {

struct PassColor {
  Timeline::Actions::Op op;
  int terminal_color;  // of the 256 colors of terminals
  const char* name;
  const char* color;
  const char* letter;
};
inline constexpr PassColor kPassColors[] = {
    {Timeline::Actions::FORWARD, 74, "F forward", kSkyBlue, "F"},
    {Timeline::Actions::BACKWARD, 214, "B backward", kOrange, "B"},
    {Timeline::Actions::BACKWARD_INPUT, 227, "I backward, input", kYellow, "I"},
    {Timeline::Actions::BACKWARD_WEIGHT, 72, "W backward, weights", "#3DBB97",
     "W"},
    {Timeline::Actions::OPTIMIZER_STEP, 244, "optimizer step", kDarkGray, "S"},
    {Timeline::Actions::OFFLOAD, 175, "offload to the host", kPurple, "O"},
    {Timeline::Actions::RELOAD, 32, "reload from the host", kBlue, "R"},
};

inline const PassColor& ColorOf(Timeline::Actions::Op op) {
  for (const PassColor& color : kPassColors) {
    if (color.op == op) return color;
  }
  return kPassColors[0];
}

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_PASS_COLORS_H_
