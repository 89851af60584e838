// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "results/draw/figures.h"

namespace weir::results {
namespace {

constexpr size_t kMaxCells = 10000;
// Dark is better, as in reports.
constexpr char kWorstColor[] = "#f7fbff", kBestColor[] = "#08306b";

struct CellRange {
  double low = INFINITY, high = -INFINITY;
  bool more_is_better = false;

  double best() const { return more_is_better ? high : low; }
  double worst() const { return more_is_better ? low : high; }
  // Returns the position of a value between the worst and the best.
  double PartOf(double value) const {
    return high > low ? (value - worst()) / (best() - worst()) : 0.5;
  }
};

CellRange RangeOf(const HeatmapData& data) {
  CellRange range = {.more_is_better = data.more_is_better};
  for (const auto& row : data.cells) {
    for (const std::optional<double>& cell : row) {
      if (!cell.has_value()) continue;
      range.low = std::min(range.low, *cell);
      range.high = std::max(range.high, *cell);
    }
  }
  return range;
}

double WidestOf(const std::vector<std::string>& texts) {
  double widest = 0;
  for (const std::string& text : texts) {
    widest = std::max(widest, TextWidth(text, kFontSize));
  }
  return widest;
}

// Returns the size in which all numbers fit into their cells; 0: none, since
// numbers of some cells only would be confusing.
double NumberSize(const HeatmapData& data, double width, double height) {
  if (height < 8) return 0;
  double widest = 0;  // in text of size 1
  for (const auto& row : data.cells) {
    for (const std::optional<double>& cell : row) {
      if (!cell.has_value()) continue;
      widest = std::max(widest, TextWidth(data.text(*cell), 1));
    }
  }
  for (const double size : {6.5, 6.0, 5.5, 5.0}) {
    if (size * widest <= width - 1) return size;
  }
  return 0;
}

}  // namespace

absl::StatusOr<Drawing> HeatmapFigure(const HeatmapData& data,
                                      const FigureOptions& options) {
  const size_t num_cells = data.rows.size() * data.columns.size();
  const CellRange range = RangeOf(data);
  if (num_cells == 0 || range.low > range.high) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.title, ": has no value of ", data.row_field, " and ",
        data.column_field, " to draw, expected points that are done and fit"));
  }
  if (num_cells > kMaxCells) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.title, ": has ", num_cells,
                     " cells, expected at most ", kMaxCells));
  }
  Drawing drawing(options.width, data.title,
                  absl::StrCat("Rows are values of ", data.row_field,
                               ", columns values of ", data.column_field, "."));
  const double label =
      std::min(std::max(WidestOf(data.rows), 10.0), options.width / 3);
  const double left = kOuterMargin + 11 + label + 4;
  const double top = kOuterMargin + (options.show_title ? 12 : 0) + 21;
  const auto num_columns = static_cast<double>(data.columns.size());
  const double width =
      std::min((options.width - kOuterMargin - left) / num_columns, 60.0);
  const double height =
      std::clamp(600.0 / static_cast<double>(data.rows.size()), 3.0, 16.0);
  DrawTitle(data.title, kOuterMargin, options, &drawing);
  const double grid_width = width * num_columns;
  const double grid_height = height * static_cast<double>(data.rows.size());
  drawing.Text(left + grid_width / 2, top - 13,
               FitText(data.column_field, kFontSize,
                       std::max(grid_width, options.width - left - 4)),
               {.anchor = Anchor::kMiddle});
  drawing.Text(kOuterMargin + 7, top + grid_height / 2,
               FitText(data.row_field, kFontSize, std::max(grid_height, 60.0)),
               {.anchor = Anchor::kMiddle, .vertical = true});
  for (size_t column = 0; column < data.columns.size() && width >= 5;
       ++column) {
    drawing.Text(left + width * (static_cast<double>(column) + 0.5), top - 4,
                 FitText(data.columns[column], kFontSize, width),
                 {.anchor = Anchor::kMiddle});
  }
  const double number_size = NumberSize(data, width, height);
  std::vector<Point> best_cells;
  for (size_t row = 0; row < data.rows.size(); ++row) {
    const double y = top + height * static_cast<double>(row);
    if (height >= 7) {
      drawing.Text(left - 4, y + height / 2 + 2.5,
                   FitText(data.rows[row], kFontSize, label),
                   {.anchor = Anchor::kEnd});
    }
    for (size_t column = 0; column < data.columns.size(); ++column) {
      const double x = left + width * static_cast<double>(column);
      const std::optional<double>& cell = data.cells[row][column];
      if (!cell.has_value()) {
        drawing.Rectangle(x, y, width, height, {kLightGray, kWhite, 0.5});
        drawing.Line({{x + 1, y + height - 1}, {x + width - 1, y + 1}},
                     {"", kGray, 0.5});
        continue;
      }
      const double part = range.PartOf(*cell);
      drawing.Rectangle(
          x, y, width, height,
          {MixColors(kWorstColor, kBestColor, part), kWhite, 0.5});
      if (*cell == range.best()) best_cells.push_back({x, y});
      if (number_size == 0) continue;
      drawing.Text(x + width / 2, y + height / 2 + 0.37 * number_size,
                   data.text(*cell),
                   {.size = number_size,
                    .anchor = Anchor::kMiddle,
                    .color = part > 0.55 ? kWhite : kBlack});
    }
  }
  for (const Point& at : best_cells) {
    drawing.Rectangle(at.x, at.y, width, height, {"", kVermilion, 1.4});
  }
  const double y = top + grid_height + 6;
  const double x =
      DrawColorScale(data.text(range.worst()), data.text(range.best()),
                     kWorstColor, kBestColor, kOuterMargin + 4, y, &drawing);
  const LegendEntry entries[] = {{"best", {"", kVermilion, 1.2}},
                                 {"no point that fits", {kLightGray}}};
  const double right = options.width - kOuterMargin;
  const bool same_line = right - x > 120;
  const double end = DrawLegend(entries, same_line ? x : kOuterMargin + 4,
                                same_line ? y : y + kLineStep, right, &drawing);
  drawing.set_height(end + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
