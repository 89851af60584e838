// SPDX-License-Identifier: Apache-2.0
#include "results/draw/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace weir::results {
namespace {

constexpr double kTickLength = 2.5;
constexpr double kTickGap = 2;  // between a tick and its label

int ChannelOf(absl::string_view color, int channel) {
  const std::string digits(color.substr(1 + 2 * channel, 2));
  return static_cast<int>(std::strtol(digits.c_str(), nullptr, 16));
}

std::vector<double> TicksOf(const Axis& axis, int max_ticks) {
  return axis.scale.logarithmic
             ? LogTicksBetween(axis.scale.from, axis.scale.to)
             : TicksBetween(axis.scale.from / axis.unit.scale,
                            axis.scale.to / axis.unit.scale, max_ticks);
}

// Ticks of linear axes are round in the unit of the axis.
double ValueOfTick(const Axis& axis, double tick) {
  return axis.scale.logarithmic ? tick : tick * axis.unit.scale;
}

int MaxTicks(double length, double step) {
  return std::max(2, static_cast<int>(length / step));
}

Paint GridPaint() { return {"", kLightGray, 0.4}; }

AxisUnit UnitOf(double largest, std::span<const AxisUnit> units) {
  for (const AxisUnit& unit : units) {
    if (largest >= unit.scale) return unit;
  }
  return units.back();
}

}  // namespace

std::string MixColors(absl::string_view color, absl::string_view other,
                      double fraction) {
  std::string mixed = "#";
  for (int channel = 0; channel < 3; ++channel) {
    const double value = (1 - fraction) * ChannelOf(color, channel) +
                         fraction * ChannelOf(other, channel);
    absl::StrAppendFormat(&mixed, "%02x", std::lround(value));
  }
  return mixed;
}

double Scale::At(double value) const {
  const double part = logarithmic ? std::log(value / from) / std::log(to / from)
                                  : (value - from) / (to - from);
  return begin + part * (end - begin);
}

std::vector<double> TicksBetween(double from, double to, int max_ticks) {
  if (!(to > from)) return {from};
  constexpr size_t kFewest = 2;
  constexpr int kUsualSteps = 10;  // have two ticks
  const double tolerance = 1e-9 * (to - from);
  std::vector<double> ticks;
  for (int count = std::max(max_ticks, 1);
       ticks.size() < kFewest && count <= std::max(max_ticks, kUsualSteps);
       ++count) {
    const double least = (to - from) / count;
    const double power = std::pow(10, std::floor(std::log10(least)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (factor * power >= least * (1 - 1e-9)) step = factor * power;
    }
    ticks.clear();
    for (double i = std::ceil((from - tolerance) / step);
         i * step <= to + tolerance; ++i) {
      ticks.push_back(i * step + 0.0);
    }
  }
  return ticks;
}

std::vector<double> LogTicksBetween(double from, double to) {
  std::vector<double> powers, all;
  for (int exponent = static_cast<int>(std::floor(std::log10(from)));
       std::pow(10, exponent) <= to * (1 + 1e-9); ++exponent) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, exponent);
      if (value < from * (1 - 1e-9) || value > to * (1 + 1e-9)) continue;
      all.push_back(value);
      if (factor == 1) powers.push_back(value);
    }
  }
  if (powers.size() >= 2) return powers;
  constexpr size_t kFewest = 3;
  constexpr int kUsual = 5;
  return all.size() < kFewest ? TicksBetween(from, to, kUsual) : all;
}

AxisUnit SecondsUnit(double largest) {
  const AxisUnit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  return UnitOf(largest, units);
}

AxisUnit BytesUnit(double largest) {
  const AxisUnit units[] = {
      {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "bytes"}};
  return UnitOf(largest, units);
}

AxisUnit FlopsUnit(double largest) {
  const AxisUnit units[] = {
      {1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1, "FLOP/s"}};
  return UnitOf(largest, units);
}

std::string TickText(double value, const AxisUnit& unit) {
  return absl::StrFormat("%.6g", value / unit.scale);
}

double LeftAxisWidth(const Axis& axis, double height) {
  double widest = 0;
  for (const double tick : TicksOf(axis, MaxTicks(height, 14))) {
    widest = std::max(
        widest,
        TextWidth(TickText(ValueOfTick(axis, tick), axis.unit), kFontSize));
  }
  return widest + kTickLength + kTickGap + (axis.label.empty() ? 0 : 11);
}

void DrawBottomAxis(const Axis& axis, const Frame& frame, Drawing* drawing) {
  const double width = frame.right - frame.left;
  std::vector<double> ticks = TicksOf(axis, MaxTicks(width, 45));
  if (axis.grid) {
    for (const double tick : ticks) {
      const double x = axis.scale.At(ValueOfTick(axis, tick));
      drawing->Line({{x, frame.top}, {x, frame.bottom}}, GridPaint());
    }
  }
  const Paint line = {"", kDarkGray};
  drawing->Line({{frame.left, frame.bottom}, {frame.right, frame.bottom}},
                line);
  double free_from = -1e9;
  for (const double tick : ticks) {
    const double value = ValueOfTick(axis, tick);
    const double x = axis.scale.At(value);
    drawing->Line({{x, frame.bottom}, {x, frame.bottom + kTickLength}}, line);
    const std::string text = TickText(value, axis.unit);
    const double half = TextWidth(text, kFontSize) / 2;
    if (x - half < free_from) continue;
    // The last label stays inside the picture.
    const bool at_edge = x + half > drawing->width();
    drawing->Text(at_edge ? drawing->width() : x,
                  frame.bottom + kTickLength + kTickGap + 5, text,
                  {.anchor = at_edge ? Anchor::kEnd : Anchor::kMiddle});
    free_from = x + half + 2;
  }
  if (axis.label.empty()) return;
  drawing->Text((frame.left + frame.right) / 2, frame.bottom + 19,
                FitText(axis.label, kFontSize, width + 20),
                {.anchor = Anchor::kMiddle});
}

void DrawLeftAxis(const Axis& axis, const Frame& frame, Drawing* drawing) {
  const double height = frame.bottom - frame.top;
  const std::vector<double> ticks = TicksOf(axis, MaxTicks(height, 14));
  if (axis.grid) {
    for (const double tick : ticks) {
      const double y = axis.scale.At(ValueOfTick(axis, tick));
      drawing->Line({{frame.left, y}, {frame.right, y}}, GridPaint());
    }
  }
  const Paint line = {"", kDarkGray};
  drawing->Line({{frame.left, frame.top}, {frame.left, frame.bottom}}, line);
  for (const double tick : ticks) {
    const double value = ValueOfTick(axis, tick);
    const double y = axis.scale.At(value);
    drawing->Line({{frame.left - kTickLength, y}, {frame.left, y}}, line);
    drawing->Text(frame.left - kTickLength - kTickGap, y + 2.5,
                  TickText(value, axis.unit), {.anchor = Anchor::kEnd});
  }
  if (axis.label.empty()) return;
  drawing->Text(frame.left - LeftAxisWidth(axis, height) + 7,
                (frame.top + frame.bottom) / 2,
                FitText(axis.label, kFontSize, height + 20),
                {.anchor = Anchor::kMiddle, .vertical = true});
}

double DrawLegend(std::span<const LegendEntry> entries, double x, double y,
                  double right, Drawing* drawing) {
  constexpr double kMark = 7, kMarkGap = 3, kEntryGap = 9;
  double at = x, line = y;
  for (const LegendEntry& entry : entries) {
    const double mark =
        entry.mark == LegendEntry::Mark::kText ? 0 : kMark + kMarkGap;
    const std::string text = FitText(entry.text, kFontSize, right - x - mark);
    const double width = mark + TextWidth(text, kFontSize);
    if (at > x && at + width > right) {
      at = x;
      line += kLineStep;
    }
    const double middle = line + 4.5;
    switch (entry.mark) {
      case LegendEntry::Mark::kBox:
        drawing->Rectangle(at, line + 1, kMark, kMark, entry.paint);
        break;
      case LegendEntry::Mark::kLine:
        drawing->Line({{at, middle}, {at + kMark, middle}}, entry.paint);
        break;
      case LegendEntry::Mark::kDot:
        drawing->Circle(at + kMark / 2, middle, 2.2, entry.paint);
        break;
      case LegendEntry::Mark::kText:
        break;
    }
    drawing->Text(at + mark, line + 7, text);
    at += width + kEntryGap;
  }
  return line + kLineStep;
}

double DrawColorScale(absl::string_view low, absl::string_view high,
                      absl::string_view from, absl::string_view to, double x,
                      double y, Drawing* drawing) {
  constexpr double kStepWidth = 3;
  drawing->Text(x, y + 7, low);
  x += TextWidth(low, kFontSize) + 4;
  for (int i = 0; i < kColorSteps; ++i) {
    drawing->Rectangle(
        x, y + 1, kStepWidth, 7,
        {MixColors(from, to, static_cast<double>(i) / (kColorSteps - 1))});
    x += kStepWidth;
  }
  drawing->Text(x + 4, y + 7, high);
  return x + TextWidth(high, kFontSize) + 14;
}

double DrawParagraph(absl::string_view text, double x, double y, double right,
                     const TextStyle& style, Drawing* drawing) {
  const double room = (right - x) / (style.bold ? kBoldWidth : 1);
  std::string line;
  const auto flush = [&] {
    if (line.empty()) return;
    drawing->Text(x, y + 7, FitText(line, style.size, room), style);
    y += kLineStep;
    line.clear();
  };
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::string longer =
        line.empty() ? std::string(word) : absl::StrCat(line, " ", word);
    if (!line.empty() && TextWidth(longer, style.size) > room) {
      flush();
      line = std::string(word);
    } else {
      line = longer;
    }
  }
  flush();
  return y;
}

void DrawTitle(absl::string_view title, double left,
               const FigureOptions& options, Drawing* drawing) {
  if (!options.show_title) return;
  const double right = options.width - kOuterMargin;
  const double width = kBoldWidth * TextWidth(title, kFontSize);
  if (left + width > right) left = kOuterMargin;
  drawing->Text(left, kOuterMargin + 7,
                FitText(title, kFontSize, (right - left) / kBoldWidth),
                {.bold = true});
}

void DrawAxes(absl::string_view title, const Plot& plot,
              const FigureOptions& options, Drawing* drawing) {
  const Frame& frame = plot.frame;
  DrawTitle(title, frame.left, options, drawing);
  DrawLeftAxis(plot.y_axis, frame, drawing);
  DrawBottomAxis(plot.x_axis, frame, drawing);
}

}  // namespace weir::results
