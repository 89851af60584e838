// SPDX-License-Identifier: Apache-2.0
// A timeline as lines of text for a terminal.
#ifndef WEIR_RESULTS_DRAW_TERMINAL_TIMELINE_H_
#define WEIR_RESULTS_DRAW_TERMINAL_TIMELINE_H_

#include <string>

#include "results/draw/timeline_rows.h"

namespace weir::results {

struct TerminalStyle {
  int width = 80;       // characters in a line
  bool unicode = true;  // false: ASCII only
  bool color = false;   // with control sequences for 256 colors
};

// Returns a line per rank, a time axis and a legend. A column shows the pass
// that takes most of its time; boxes that are wide enough have the number of
// their microbatch. Without color, passes differ by shade (Unicode) or letter
// (ASCII).
std::string TerminalTimeline(const TimelineRows& rows,
                             const TerminalStyle& style);

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_TERMINAL_TIMELINE_H_
