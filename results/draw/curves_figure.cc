// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "results/draw/figures.h"

namespace weir::results {
namespace {

struct CurveStyle {
  const char* color;
  const char* dashes;
};
// Curves differ in color and in their dashes.
constexpr CurveStyle kCurveStyles[] = {
    {kBlue, ""},         {kVermilion, "4 1.5"},
    {kGreen, "1.5 1.5"}, {kPurple, "5 1.5 1 1.5"},
    {kOrange, "3 1"},    {kSkyBlue, "6 2"},
    {kBlack, "1 1"},     {kGray, ""}};

Paint PaintOfCurve(size_t index) {
  const CurveStyle& style = kCurveStyles[index % std::size(kCurveStyles)];
  return {"", style.color, 1.1, style.dashes};
}

struct PlotRange {
  double x_from = INFINITY, x_to = -INFINITY;
  double y_from = INFINITY, y_to = -INFINITY;

  void Add(const Point& point) {
    x_from = std::min(x_from, point.x);
    x_to = std::max(x_to, point.x);
    y_from = std::min(y_from, point.y);
    y_to = std::max(y_to, point.y);
  }
  bool is_empty() const { return x_from > x_to; }
  // Makes both lengths positive.
  void Pad() {
    if (!(x_to > x_from)) x_to = x_from + 1;
    const double pad = y_to > y_from ? 0.05 * (y_to - y_from) : 0.5;
    y_from -= pad;
    y_to += pad;
  }
};

PlotRange RangeOfPanel(const CurvesPanel& panel) {
  PlotRange range;
  for (const Curve& curve : panel.curves) {
    for (const Point& point : curve.points) {
      if (std::isfinite(point.x) && std::isfinite(point.y)) range.Add(point);
    }
  }
  return range;
}

void DrawCurves(const CurvesPanel& panel, const PlotRange& range, Frame frame,
                Drawing* drawing) {
  const Axis y_axis = {{range.y_from, range.y_to, frame.bottom, frame.top},
                       panel.y_label,
                       {1, ""}};
  frame.left += LeftAxisWidth(y_axis, frame.bottom - frame.top);
  const Axis x_axis = {{range.x_from, range.x_to, frame.left, frame.right},
                       panel.x_label,
                       {1, ""}};
  DrawLeftAxis(y_axis, frame, drawing);
  DrawBottomAxis(x_axis, frame, drawing);
  for (size_t i = 0; i < panel.curves.size(); ++i) {
    std::vector<Point> line;
    for (const Point& point : panel.curves[i].points) {
      // A curve ends where the loss is not a number any more.
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) break;
      line.push_back({x_axis.scale.At(point.x), y_axis.scale.At(point.y)});
    }
    if (line.size() > 1) drawing->Line(std::move(line), PaintOfCurve(i));
  }
}

// Draws the part of values up to each value.
CurvesPanel DistributionOf(std::span<const MeasuredValue> values) {
  std::vector<double> errors;
  for (const MeasuredValue& value : values) {
    errors.push_back(100 * (value.predicted / value.measured - 1));
  }
  std::sort(errors.begin(), errors.end());
  Curve curve;
  const auto count = static_cast<double>(errors.size());
  for (size_t i = 0; i < errors.size(); ++i) {
    curve.points.push_back({errors[i], static_cast<double>(i) / count});
    curve.points.push_back({errors[i], static_cast<double>(i + 1) / count});
  }
  return {"error (%)", "part of the values up to it", {std::move(curve)}};
}

void DrawScatter(const ErrorsData& data, Frame frame, Drawing* drawing) {
  double from = INFINITY, to = 0;
  for (const MeasuredValue& value : data.values) {
    from = std::min({from, value.measured, value.predicted});
    to = std::max({to, value.measured, value.predicted});
  }
  from /= 1.3;
  to *= 1.3;
  const std::string unit =
      data.quantity.empty() ? "" : absl::StrCat(" ", data.quantity);
  const Axis y_axis = {{from, to, frame.bottom, frame.top, true},
                       absl::StrCat("predicted", unit),
                       {1, ""}};
  frame.left += LeftAxisWidth(y_axis, frame.bottom - frame.top);
  const Axis x_axis = {{from, to, frame.left, frame.right, true},
                       absl::StrCat("measured", unit),
                       {1, ""}};
  DrawLeftAxis(y_axis, frame, drawing);
  DrawBottomAxis(x_axis, frame, drawing);
  drawing->Line({{frame.left, frame.bottom}, {frame.right, frame.top}},
                {"", kGray, 0.8});
  for (const MeasuredValue& value : data.values) {
    drawing->Circle(x_axis.scale.At(value.measured),
                    y_axis.scale.At(value.predicted), 1, {kBlue});
  }
}

constexpr double kPlotHeight = 120, kPlotGap = 10;

// Returns the frames of panels side by side.
std::vector<Frame> FramesOf(size_t num_panels, const FigureOptions& options) {
  const auto count = static_cast<double>(num_panels);
  const double width =
      (options.width - 2 * kOuterMargin - 8 - kPlotGap * (count - 1)) / count;
  std::vector<Frame> frames;
  for (size_t i = 0; i < num_panels; ++i) {
    Frame frame;
    frame.left = kOuterMargin + static_cast<double>(i) * (width + kPlotGap);
    frame.right = frame.left + width;
    frame.top = kOuterMargin + (options.show_title ? 12 : 0);
    frame.bottom = frame.top + kPlotHeight;
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace

absl::StatusOr<Drawing> CurvesFigure(const std::string& title,
                                     std::span<const CurvesPanel> panels,
                                     const FigureOptions& options) {
  Drawing drawing(options.width, title, "Lines over a common legend.");
  DrawTitle(title, kOuterMargin + 4, options, &drawing);
  const std::vector<Frame> frames = FramesOf(panels.size(), options);
  for (size_t i = 0; i < panels.size(); ++i) {
    PlotRange range = RangeOfPanel(panels[i]);
    if (range.is_empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(title, ": panel ", i + 1,
                       " has no finite value, expected at least one"));
    }
    range.Pad();
    DrawCurves(panels[i], range, frames[i], &drawing);
  }
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < panels[0].curves.size(); ++i) {
    // A longer name would leave no room for others.
    entries.push_back({FitText(panels[0].curves[i].name, kFontSize, 220),
                       PaintOfCurve(i), LegendEntry::Mark::kLine});
  }
  const double end = DrawLegend(entries, kOuterMargin + 4,
                                frames[0].bottom + kBottomAxisHeight + 3,
                                options.width - kOuterMargin, &drawing);
  drawing.set_height(end + kOuterMargin);
  return drawing;
}

absl::StatusOr<Drawing> ErrorsFigure(const ErrorsData& data,
                                     const FigureOptions& options) {
  for (const MeasuredValue& value : data.values) {
    if (value.measured > 0 && value.predicted > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        data.title, ": has a measured value of ", value.measured,
        " with the prediction ", value.predicted, ", expected both above 0"));
  }
  if (data.values.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(data.title, ": has ", data.values.size(),
                     " predicted values, expected at least 2"));
  }
  Drawing drawing(options.width, data.title,
                  "Left: distribution of the relative error. Right: predicted "
                  "over measured values, with logarithmic axes.");
  DrawTitle(data.title, kOuterMargin + 4, options, &drawing);
  const std::vector<Frame> frames = FramesOf(2, options);
  const CurvesPanel distribution = DistributionOf(data.values);
  PlotRange range = RangeOfPanel(distribution);
  range.Pad();
  const double margin = 0.03 * (range.x_to - range.x_from);
  range.x_from -= margin;
  range.x_to += margin;
  range.y_from = 0;
  range.y_to = 1;
  DrawCurves(distribution, range, frames[0], &drawing);
  DrawScatter(data, frames[1], &drawing);
  drawing.set_height(frames[0].bottom + kBottomAxisHeight + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
