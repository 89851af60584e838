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
  const char* name;
  const char* color;
  int terminal_color;  // of the 256 colors of terminals
  const char* letter;
};
inline constexpr PassColor kPassColors[] = {
    {Timeline::Actions::FORWARD, "F forward", kSkyBlue, 74, "F"},
    {Timeline::Actions::BACKWARD, "B backward", kOrange, 214, "B"},
    {Timeline::Actions::BACKWARD_INPUT, "I backward, input", kYellow, 227, "I"},
    {Timeline::Actions::BACKWARD_WEIGHT, "W backward, weights", "#3DBB97", 72,
     "W"},
    {Timeline::Actions::OPTIMIZER_STEP, "optimizer step", kDarkGray, 244, "S"},
    {Timeline::Actions::OFFLOAD, "offload to the host", kPurple, 175, "O"},
    {Timeline::Actions::RELOAD, "reload from the host", kBlue, 32, "R"},
};

inline const PassColor& ColorOf(Timeline::Actions::Op op) {
  for (const PassColor& color : kPassColors) {
    if (color.op == op) return color;
  }
  return kPassColors[0];
}

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_PASS_COLORS_H_
