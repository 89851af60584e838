// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "results/draw/figures.h"

namespace weir::results {
namespace {

constexpr size_t kMaxKey = 24;  // front points that are listed below the plot

// Extends a range of values so that no dot is on the frame.
std::pair<double, double> PaddedRange(double from, double to) {
  const double pad = to > from ? 0.08 * (to - from) : 0.1 * std::abs(to);
  return {std::max(from - pad, 0.0), to + std::max(pad, 1e-12)};
}

Plot ParetoPlot(const ParetoData& data, const FigureOptions& options) {
  double low_x = INFINITY, high_x = 0, low_y = INFINITY, high_y = 0;
  for (const ParetoPoint& point : data.points) {
    low_x = std::min(low_x, point.seconds);
    high_x = std::max(high_x, point.seconds);
    low_y = std::min(low_y, point.value);
    high_y = std::max(high_y, point.value);
  }
  const auto [x_from, x_to] = PaddedRange(low_x, high_x);
  const auto [y_from, y_to] = PaddedRange(low_y, high_y);
  const AxisUnit seconds = SecondsUnit(x_to);
  Plot plot;
  Frame& frame = plot.frame;
  frame.top = kOuterMargin + (options.show_title ? 12 : 0);
  frame.bottom = frame.top + std::min(0.6 * options.width, 200.0);
  plot.y_axis = {
      {y_from, y_to, frame.bottom, frame.top},
      absl::StrCat(data.value_label, " (", data.value_unit.name, ")"),
      data.value_unit};
  if (data.value_unit.name.empty()) plot.y_axis.label = data.value_label;
  frame.left =
      kOuterMargin + LeftAxisWidth(plot.y_axis, frame.bottom - frame.top);
  frame.right = options.width - kOuterMargin - 8;
  plot.x_axis = {{x_from, x_to, frame.left, frame.right},
                 absl::StrCat("step time (", seconds.name, ")"),
                 seconds};
  return plot;
}

struct ParetoPaints {
  Paint best = {kVermilion, kWhite, 0.3}, line = {"", kVermilion, 1};
  Paint other = {kGray, kWhite, 0.3}, misfit = {"", kGray, 0.7};
};

// Draws the number of a point next to it, if possible where it covers no other
// point.
void DrawNumber(absl::string_view number, Point here,
                std::span<const Point> points, Drawing* drawing) {
  constexpr double kSize = 6, kHeight = 4.5, kAside = 3.5, kDot = 1.9;
  constexpr Point kPlaces[] = {{1, -3}, {-1, 7.5}, {-1, -3}, {1, 7.5}};
  const double width = kBoldWidth * TextWidth(number, kSize);
  const auto is_free = [&](Point place) {
    const double near = here.x + place.x * kAside;
    const double left = place.x > 0 ? near : near - width;
    const double right = left + width;
    const double bottom = here.y + place.y;
    return std::none_of(points.begin(), points.end(), [&](Point point) {
      return point.x > left - kDot && point.x < right + kDot &&
             point.y > bottom - kHeight - kDot && point.y < bottom + kDot;
    });
  };
  const Point* place =
      std::find_if(std::begin(kPlaces), std::end(kPlaces), is_free);
  if (place == std::end(kPlaces)) place = kPlaces;
  drawing->Text(here.x + place->x * kAside, here.y + place->y, number,
                {.size = kSize,
                 .anchor = place->x > 0 ? Anchor::kStart : Anchor::kEnd,
                 .bold = true});
}

// Draws all points, then the line along the front and its numbered points.
void DrawPoints(const ParetoData& data, const std::vector<size_t>& front,
                const ParetoPaints& paints, const Plot& plot,
                Drawing* drawing) {
  const auto at = [&](const ParetoPoint& point) {
    return plot.At(point.seconds, point.value);
  };
  std::vector<Point> places;
  for (const ParetoPoint& point : data.points) {
    places.push_back(at(point));
    drawing->Circle(places.back().x, places.back().y, 1.9,
                    point.fits ? paints.other : paints.misfit);
  }
  std::vector<Point> steps;
  for (const size_t i : front) {
    const Point here = at(data.points[i]);
    if (!steps.empty()) steps.push_back({here.x, steps.back().y});
    steps.push_back(here);
  }
  if (steps.size() > 1) drawing->Line(steps, paints.line);
  for (size_t k = 0; k < front.size(); ++k) {
    const Point here = at(data.points[front[k]]);
    drawing->Circle(here.x, here.y, 2.4, paints.best);
    if (k >= kMaxKey) continue;
    DrawNumber(absl::StrCat(k + 1), here, places, drawing);
  }
}

std::vector<LegendEntry> ParetoLegend(const ParetoData& data, size_t front_size,
                                      const ParetoPaints& paints) {
  const bool has_misfit =
      std::any_of(data.points.begin(), data.points.end(),
                  [](const ParetoPoint& point) { return !point.fits; });
  std::vector<LegendEntry> entries = {
      {"Pareto front", paints.best, LegendEntry::Mark::kDot}};
  if (front_size + (has_misfit ? 1 : 0) < data.points.size()) {
    entries.push_back({"dominated", paints.other, LegendEntry::Mark::kDot});
  }
  if (has_misfit) {
    entries.push_back(
        {"exceeds the memory", paints.misfit, LegendEntry::Mark::kDot});
  }
  return entries;
}

// Draws what the numbers of points mean, from (left, y) on, in as many columns
// as fit. Returns the y below the last line.
double DrawKey(const ParetoData& data, const std::vector<size_t>& front,
               double left, double y, double right, Drawing* drawing) {
  const size_t num_listed = std::min(front.size(), kMaxKey);
  const double room = right - left;
  const double columns = room >= 400 ? 2 : 1;
  const auto per_column =
      static_cast<size_t>(std::ceil(static_cast<double>(num_listed) / columns));
  for (size_t k = 0; k < num_listed; ++k) {
    const size_t column = k / per_column;
    const double x = left + static_cast<double>(column) * (room / columns);
    const double base = y + static_cast<double>(k % per_column) * kLineStep + 7;
    drawing->Text(x + 8, base, absl::StrCat(k + 1),
                  {.anchor = Anchor::kEnd, .bold = true});
    drawing->Text(
        x + 11, base,
        FitText(data.points[front[k]].label, kFontSize, room / columns - 14));
  }
  y += static_cast<double>(per_column) * kLineStep;
  if (front.size() > kMaxKey) {
    drawing->Text(left, y + 7,
                  absl::StrCat("and ", front.size() - kMaxKey, " more"));
    y += kLineStep;
  }
  return y;
}

}  // namespace

std::vector<size_t> ParetoFront(std::span<const ParetoPoint> points) {
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].fits) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(points[a].seconds, points[a].value) <
           std::pair(points[b].seconds, points[b].value);
  });
  std::vector<size_t> front;
  for (const size_t i : order) {
    if (front.empty() || points[i].value < points[front.back()].value) {
      front.push_back(i);
    }
  }
  return front;
}

absl::StatusOr<Drawing> ParetoFigure(const ParetoData& data,
                                     const FigureOptions& options) {
  if (data.points.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.title, ": has no point to draw"));
  }
  const std::vector<size_t> front = ParetoFront(data.points);
  Drawing drawing(options.width, data.title,
                  "Step time against another quantity; a dot per plan, a line "
                  "along the plans that no other beats in both.");
  const Plot plot = ParetoPlot(data, options);
  DrawAxes(data.title, plot, options, &drawing);
  const ParetoPaints paints;
  DrawPoints(data, front, paints, plot, &drawing);
  const double right = options.width - kOuterMargin;
  double y =
      DrawLegend(ParetoLegend(data, front.size(), paints), plot.frame.left,
                 plot.frame.bottom + kBottomAxisHeight + 3, right, &drawing);
  y = DrawKey(data, front, plot.frame.left, y, right, &drawing);
  drawing.set_height(y + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
