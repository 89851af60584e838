// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "results/draw/figures.h"

namespace weir::results {
namespace {

constexpr size_t kMaxKey = 24;  // points that are listed below the plot

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

// A number next to its point.
struct Label {
  size_t point = 0;
  Point at = {};
  Anchor anchor = Anchor::kStart;
  bool in_front = false;
};

double DistanceOf(const Point& point, const Frame& box) {
  const double x = std::max({box.left - point.x, point.x - box.right, 0.0});
  const double y = std::max({box.top - point.y, point.y - box.bottom, 0.0});
  return std::hypot(x, y);
}

bool Touch(const Frame& one, const Frame& other) {
  constexpr double kGap = 0.8;
  return one.left < other.right + kGap && other.left < one.right + kGap &&
         one.top < other.bottom + kGap && other.top < one.bottom + kGap;
}

// Finds room for numbers next to their points.
class LabelPlacer {
 public:
  static constexpr double kSize = 6;

  LabelPlacer(std::vector<Point> dots, const Frame& frame)
      : dots_(std::move(dots)), frame_(frame) {}

  // Sets where the number is and returns true if it has room.
  bool Place(absl::string_view number, Label* label) {
    const Point& dot = dots_[label->point];
    const double width = kBoldWidth * TextWidth(number, kSize);
    for (const auto& [anchor, x, y] : kPlaces) {
      label->at = {dot.x + x, dot.y + y};
      label->anchor = anchor;
      const double left = anchor == Anchor::kStart ? label->at.x
                          : anchor == Anchor::kEnd ? label->at.x - width
                                                   : label->at.x - width / 2;
      const Frame box = {left, label->at.y - kHeight, left + width,
                         label->at.y};
      if (!IsFree(box) || !IsNearest(dot, box)) continue;
      numbers_.push_back(box);
      return true;
    }
    return false;
  }

 private:
  static constexpr double kHeight = 4.5;
  struct Offset {
    Anchor anchor;
    double x, y;  // of the number's base line, from the point
  };
  static constexpr Offset kPlaces[] = {
      {Anchor::kStart, 2.8, -2.2}, {Anchor::kEnd, -2.8, 6.7},
      {Anchor::kEnd, -2.8, -2.2},  {Anchor::kStart, 2.8, 6.7},
      {Anchor::kMiddle, 0, 7.9},   {Anchor::kEnd, -3.4, 2.2},
      {Anchor::kMiddle, 0, -3.4},  {Anchor::kStart, 3.4, 2.2}};

  bool IsFree(const Frame& box) const {
    return box.left >= frame_.left && box.right <= frame_.right &&
           box.top >= frame_.top && box.bottom <= frame_.bottom &&
           std::none_of(numbers_.begin(), numbers_.end(),
                        [&](const Frame& other) { return Touch(box, other); });
  }

  // A number that is nearer to another point would seem to be that point's.
  bool IsNearest(const Point& dot, const Frame& box) const {
    const double distance = DistanceOf(dot, box);
    return std::all_of(dots_.begin(), dots_.end(), [&](const Point& other) {
      return std::hypot(other.x - dot.x, other.y - dot.y) < 0.5 ||
             DistanceOf(other, box) > distance;
    });
  }

  const std::vector<Point> dots_;
  const Frame frame_;
  std::vector<Frame> numbers_;
};

// Returns the points to number: the front, then all others if they are few.
std::vector<size_t> PointsToNumber(const ParetoData& data,
                                   const std::vector<size_t>& front) {
  std::vector<size_t> order = front;
  if (data.points.size() > kMaxKey) return order;
  for (size_t i = 0; i < data.points.size(); ++i) {
    if (std::find(front.begin(), front.end(), i) == front.end()) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin() + static_cast<ptrdiff_t>(front.size()),
                   order.end(), [&](size_t a, size_t b) {
                     return data.points[a].seconds < data.points[b].seconds;
                   });
  return order;
}

// Returns the labels of points that have room for one, label i has number
// i + 1.
std::vector<Label> PlaceLabels(const std::vector<size_t>& order,
                               size_t front_size, std::vector<Point> dots,
                               const Frame& frame) {
  LabelPlacer placer(std::move(dots), frame);
  std::vector<Label> labels;
  for (size_t k = 0; k < order.size() && labels.size() < kMaxKey; ++k) {
    Label label = {.point = order[k], .in_front = k < front_size};
    if (placer.Place(absl::StrCat(labels.size() + 1), &label)) {
      labels.push_back(label);
    }
  }
  return labels;
}

TextStyle NumberStyle(const Label& label, double size, Anchor anchor) {
  return {.size = size,
          .anchor = anchor,
          .color = label.in_front ? kBlack : kDarkGray,
          .bold = true};
}

std::vector<Point> PlacesOf(const ParetoData& data, const Plot& plot) {
  std::vector<Point> places;
  for (const ParetoPoint& point : data.points) {
    places.push_back(plot.At(point.seconds, point.value));
  }
  return places;
}

// Draws all points, then the line along the front and its points.
void DrawPoints(const ParetoData& data, const std::vector<size_t>& front,
                const ParetoPaints& paints, const std::vector<Point>& places,
                Drawing* drawing) {
  for (size_t i = 0; i < places.size(); ++i) {
    drawing->Circle(places[i].x, places[i].y, 1.9,
                    data.points[i].fits ? paints.other : paints.misfit);
  }
  std::vector<Point> steps;
  for (const size_t i : front) {
    if (!steps.empty()) steps.push_back({places[i].x, steps.back().y});
    steps.push_back(places[i]);
  }
  if (steps.size() > 1) drawing->Line(steps, paints.line);
  for (const size_t i : front) {
    drawing->Circle(places[i].x, places[i].y, 2.4, paints.best);
  }
}

void DrawNumbers(const std::vector<Label>& labels, Drawing* drawing) {
  for (size_t k = 0; k < labels.size(); ++k) {
    drawing->Text(labels[k].at.x, labels[k].at.y, absl::StrCat(k + 1),
                  NumberStyle(labels[k], LabelPlacer::kSize, labels[k].anchor));
  }
}

std::vector<LegendEntry> ParetoLegend(const ParetoData& data, size_t front_size,
                                      const ParetoPaints& paints) {
  const auto num_fit = static_cast<size_t>(
      std::count_if(data.points.begin(), data.points.end(),
                    [](const ParetoPoint& point) { return point.fits; }));
  std::vector<LegendEntry> entries = {
      {"Pareto front", paints.best, LegendEntry::Mark::kDot}};
  if (front_size < num_fit) {
    entries.push_back({"dominated", paints.other, LegendEntry::Mark::kDot});
  }
  if (num_fit < data.points.size()) {
    entries.push_back(
        {"exceeds the memory", paints.misfit, LegendEntry::Mark::kDot});
  }
  return entries;
}

// Draws what the numbers of points mean, from (left, y) on, in as many columns
// as fit. Returns the y below the last line.
double DrawKey(const ParetoData& data, const std::vector<Label>& labels,
               size_t num_others, double left, double y, double right,
               Drawing* drawing) {
  const size_t columns = right - left >= 400 ? 2 : 1;
  const double width = (right - left) / static_cast<double>(columns);
  const size_t per_column = (labels.size() + columns - 1) / columns;
  double line = y, bottom = y;
  for (size_t k = 0; k < labels.size(); ++k) {
    if (k % per_column == 0) line = y;
    const size_t column = k / per_column;
    const double x = left + static_cast<double>(column) * width;
    drawing->Text(x + 8, line + 7, absl::StrCat(k + 1),
                  NumberStyle(labels[k], kFontSize, Anchor::kEnd));
    const double end = DrawParagraph(data.points[labels[k].point].label, x + 11,
                                     line, x + width - 3, {}, drawing);
    line = std::max(end, line + kLineStep);
    bottom = std::max(bottom, line);
  }
  if (num_others == 0) return bottom;
  drawing->Text(left, bottom + 7, absl::StrCat("and ", num_others, " more"));
  return bottom + kLineStep;
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
  const std::vector<Point> places = PlacesOf(data, plot);
  DrawPoints(data, front, paints, places, &drawing);
  const std::vector<size_t> order = PointsToNumber(data, front);
  const std::vector<Label> labels =
      PlaceLabels(order, front.size(), places, plot.frame);
  DrawNumbers(labels, &drawing);
  const double right = options.width - kOuterMargin;
  double y =
      DrawLegend(ParetoLegend(data, front.size(), paints), plot.frame.left,
                 plot.frame.bottom + kBottomAxisHeight + 3, right, &drawing);
  y = DrawKey(data, labels, order.size() - labels.size(), plot.frame.left, y,
              right, &drawing);
  drawing.set_height(y + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
