// SPDX-License-Identifier: Apache-2.0
// Parts that several figures share: colors, axes, legends.
#ifndef WEIR_RESULTS_DRAW_CHART_H_
#define WEIR_RESULTS_DRAW_CHART_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/draw/drawing.h"

namespace weir::results {

// The palette of Okabe and Ito ("Color Universal Design", 2008), for all kinds
// of color vision.
inline constexpr char kBlack[] = "#000000";
inline constexpr char kOrange[] = "#E69F00";
inline constexpr char kSkyBlue[] = "#56B4E9";
inline constexpr char kGreen[] = "#009E73";
inline constexpr char kYellow[] = "#F0E442";
inline constexpr char kBlue[] = "#0072B2";
inline constexpr char kVermilion[] = "#D55E00";
inline constexpr char kPurple[] = "#CC79A7";
inline constexpr char kGray[] = "#999999";
inline constexpr char kLightGray[] = "#E6E6E6";
inline constexpr char kDarkGray[] = "#444444";
inline constexpr char kWhite[] = "#ffffff";

// Returns the color mixed with a fraction of another, from 0 to 1.
std::string MixColors(absl::string_view color, absl::string_view other,
                      double fraction);

// Points.
inline constexpr double kFontSize = 7;
inline constexpr double kLineStep = 9;  // between lines of text
inline constexpr double kOuterMargin = 3;

// Maps values to positions, linearly or by their logarithm.
struct Scale {
  double from = 0, to = 1;    // values
  double begin = 0, end = 1;  // positions
  bool logarithmic = false;   // requires positive values

  double At(double value) const;
};

// Returns at most `max_ticks` round values in [from, to].
std::vector<double> TicksBetween(double from, double to, int max_ticks);
// Returns the powers of ten in [from, to], 1, 2 and 5 times them if these would
// be fewer than two, or other round values if these would be fewer than three.
std::vector<double> LogTicksBetween(double from, double to);

// A unit in which an axis shows values.
struct AxisUnit {
  double scale = 1;  // of one unit
  std::string name;
};
AxisUnit SecondsUnit(double largest);  // s, ms, us
AxisUnit BytesUnit(double largest);    // GiB, MiB, KiB, bytes
AxisUnit FlopsUnit(double largest);    // PFLOP/s, TFLOP/s, GFLOP/s, FLOP/s
// Returns the value in the unit, without trailing zeros.
std::string TickText(double value, const AxisUnit& unit);

// An axis below or on the left of a plot.
struct Axis {
  Scale scale;
  std::string label;
  AxisUnit unit;
  bool grid = true;  // lines across the plot
};

// The frame of a plot, in points.
struct Frame {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// A plot with two axes.
struct Plot {
  Frame frame;
  Axis x_axis, y_axis;

  // Returns the position of a pair of values.
  Point At(double x, double y) const {
    return {x_axis.scale.At(x), y_axis.scale.At(y)};
  }
};

// Returns the width of the labels of a vertical axis.
double LeftAxisWidth(const Axis& axis, double height);
inline constexpr double kBottomAxisHeight = 22;  // with its label

// Draw ticks, grid and label.
void DrawBottomAxis(const Axis& axis, const Frame& frame, Drawing* drawing);
void DrawLeftAxis(const Axis& axis, const Frame& frame, Drawing* drawing);

struct LegendEntry {
  enum class Mark { kBox, kLine, kDot, kText };
  std::string text;
  Paint paint;
  Mark mark = Mark::kBox;
};

// Draws entries from (x, y) on, in lines that end at `right`. Returns the
// y below the last line.
double DrawLegend(std::span<const LegendEntry> entries, double x, double y,
                  double right, Drawing* drawing);

// Colors of a scale in a legend.
inline constexpr int kColorSteps = 20;

// Draws the scale from one color to another between two texts, as high as a
// line. Returns the x on its right.
double DrawColorScale(absl::string_view low, absl::string_view high,
                      absl::string_view from, absl::string_view to, double x,
                      double y, Drawing* drawing);

// Draws text in lines that end at `right`. Returns the y below the last line.
double DrawParagraph(absl::string_view text, double x, double y, double right,
                     const TextStyle& style, Drawing* drawing);

// Widths of figures for one column and for two columns of a paper.
inline constexpr double kPointsPerMillimeter = 72 / 25.4;
inline constexpr double kOneColumnWidth = 85 * kPointsPerMillimeter;
inline constexpr double kTwoColumnsWidth = 178 * kPointsPerMillimeter;

// What all figures have in common.
struct FigureOptions {
  double width = 504;  // points
  bool show_title = true;
};

// How much wider bold text is, at most, in common sans-serif fonts.
inline constexpr double kBoldWidth = 1.15;

// Draws the title of a figure, if figures have one: from `left` on, or from the
// left margin if it needs that room.
void DrawTitle(absl::string_view title, double left,
               const FigureOptions& options, Drawing* drawing);

// Draws the axes of a plot, and the title above it if figures have one.
void DrawAxes(absl::string_view title, const Plot& plot,
              const FigureOptions& options, Drawing* drawing);

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_CHART_H_
