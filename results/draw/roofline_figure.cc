// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "results/draw/figures.h"

namespace weir::results {
namespace {

// Colors of parts, by order of appearance.
constexpr const char* kPartColors[] = {kSkyBlue, kVermilion, kGreen,  kOrange,
                                       kPurple,  kBlue,      kYellow, kGray,
                                       kBlack,   kDarkGray};

double Intensity(const RooflineKernel& kernel) {
  return kernel.flops / kernel.bytes;
}

double Rate(const RooflineKernel& kernel) {
  return kernel.flops / kernel.seconds;
}

}  // namespace

absl::StatusOr<Drawing> RooflineFigure(const RooflineData& data,
                                       const FigureOptions& options) {
  std::vector<RooflineKernel> kernels;
  double all_seconds = 0;
  for (const RooflineKernel& kernel : data.kernels) {
    all_seconds += kernel.seconds * kernel.count;
    if (kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds > 0) {
      kernels.push_back(kernel);
    }
  }
  if (kernels.empty() || data.peaks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.title, ": has no kernel with FLOP, bytes and a time to draw"));
  }
  double x_from = INFINITY, x_to = 0, y_from = INFINITY, y_to = 0;
  for (const RooflineKernel& kernel : kernels) {
    x_from = std::min(x_from, Intensity(kernel));
    x_to = std::max(x_to, Intensity(kernel));
    y_from = std::min(y_from, Rate(kernel));
  }
  for (const RooflineData::Peak& peak : data.peaks) {
    y_to = std::max(y_to, peak.flops_per_second);
    x_to = std::max(x_to,
                    4 * peak.flops_per_second / data.memory_bytes_per_second);
  }
  // The knee of the roof is in the picture.
  for (const RooflineData::Peak& peak : data.peaks) {
    x_from = std::min(x_from,
                      peak.flops_per_second / data.memory_bytes_per_second / 4);
  }
  x_from /= 1.5;
  x_to *= 1.5;
  y_from /= 1.5;
  y_to *= 1.5;
  Drawing drawing(options.width, data.title,
                  "FLOP per second over FLOP per byte of device memory; a dot "
                  "per kernel, its area is the time of such kernels.");
  const AxisUnit rate_unit = FlopsUnit(y_to / 1.5);
  Frame frame;
  frame.top = kOuterMargin + (options.show_title ? 12 : 0);
  frame.bottom = frame.top + std::min(0.65 * options.width, 220.0);
  const Axis y_axis = {
      {y_from, y_to, frame.bottom, frame.top, true}, rate_unit.name, rate_unit};
  frame.left = kOuterMargin + LeftAxisWidth(y_axis, frame.bottom - frame.top);
  frame.right = options.width - kOuterMargin - 8;
  const Axis x_axis = {
      {x_from, x_to, frame.left, frame.right, true}, "FLOP per byte", {1, ""}};
  if (options.show_title) {
    drawing.Text(frame.left, kOuterMargin + 7,
                 FitText(data.title, kFontSize, frame.right - frame.left),
                 {.bold = true});
  }
  DrawLeftAxis(y_axis, frame, &drawing);
  DrawBottomAxis(x_axis, frame, &drawing);
  // The roofs: memory traffic, and arithmetic in each format.
  const double top_rate =
      std::max_element(data.peaks.begin(), data.peaks.end(),
                       [](const auto& a, const auto& b) {
                         return a.flops_per_second < b.flops_per_second;
                       })
          ->flops_per_second;
  const double bandwidth = data.memory_bytes_per_second;
  const double slope_from = std::max(x_from, y_from / bandwidth);
  const double knee = top_rate / bandwidth;
  const Paint roof = {"", kBlack, 1};
  drawing.Line(
      {{x_axis.scale.At(slope_from), y_axis.scale.At(slope_from * bandwidth)},
       {x_axis.scale.At(knee), y_axis.scale.At(top_rate)}},
      roof);
  for (const RooflineData::Peak& peak : data.peaks) {
    const double y = y_axis.scale.At(peak.flops_per_second);
    const double from = std::max(peak.flops_per_second / bandwidth, x_from);
    drawing.Line({{x_axis.scale.At(from), y}, {frame.right, y}}, roof);
    const AxisUnit unit = FlopsUnit(peak.flops_per_second);
    drawing.Text(
        frame.right, y - 3,
        absl::StrCat(peak.format, " ", TickText(peak.flops_per_second, unit),
                     " ", unit.name),
        {.size = 6.5, .anchor = Anchor::kEnd});
  }
  std::map<std::string, size_t> parts;
  for (const RooflineKernel& kernel : kernels) {
    parts.emplace(kernel.part, parts.size());
  }
  const auto color_of = [&](const std::string& part) {
    return kPartColors[std::min(parts.at(part), std::size(kPartColors) - 1)];
  };
  // The largest dots first, so that small ones stay visible.
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) {
                     return a.seconds * a.count > b.seconds * b.count;
                   });
  constexpr double kWholeArea = 900;  // of all time, in square points
  for (const RooflineKernel& kernel : kernels) {
    const double part = kernel.seconds * kernel.count / all_seconds;
    const double radius =
        std::max(std::sqrt(kWholeArea * part / std::numbers::pi), 1.2);
    drawing.Circle(x_axis.scale.At(Intensity(kernel)),
                   y_axis.scale.At(Rate(kernel)), radius,
                   {color_of(kernel.part), kBlack, 0.4});
  }
  std::vector<LegendEntry> entries;
  std::vector<std::pair<size_t, std::string>> ordered;
  for (const auto& [part, index] : parts) ordered.emplace_back(index, part);
  std::sort(ordered.begin(), ordered.end());
  for (const auto& [index, part] : ordered) {
    entries.push_back({absl::StrReplaceAll(part, {{"_", " "}}),
                       {color_of(part), kBlack, 0.4},
                       LegendEntry::Mark::kDot});
  }
  const double right = options.width - kOuterMargin;
  double y = DrawLegend(entries, frame.left,
                        frame.bottom + kBottomAxisHeight + 3, right, &drawing);
  const AxisUnit memory = {1e12, "TB/s"};
  y = DrawParagraph(
      absl::StrCat("area of a dot: time in one microbatch; slope: ",
                   TickText(bandwidth, memory), " ", memory.name,
                   " of device memory"),
      frame.left, y, right, {.color = kDarkGray}, &drawing);
  drawing.set_height(y + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
