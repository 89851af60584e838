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

// Returns the kernels that have a position in the plot.
std::vector<RooflineKernel> KernelsToDraw(const RooflineData& data) {
  std::vector<RooflineKernel> kernels;
  for (const RooflineKernel& kernel : data.kernels) {
    if (kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds > 0) {
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

// Returns a plot that shows all kernels and the knee of the roof.
Plot RooflinePlot(const RooflineData& data,
                  const std::vector<RooflineKernel>& kernels,
                  const FigureOptions& options) {
  double x_from = INFINITY, x_to = 0, y_from = INFINITY, y_to = 0;
  for (const RooflineKernel& kernel : kernels) {
    x_from = std::min(x_from, Intensity(kernel));
    x_to = std::max(x_to, Intensity(kernel));
    y_from = std::min(y_from, Rate(kernel));
  }
  for (const RooflineData::Peak& peak : data.peaks) {
    x_from = std::min(x_from,
                      peak.flops_per_second / data.memory_bytes_per_second / 4);
    x_to = std::max(x_to,
                    4 * peak.flops_per_second / data.memory_bytes_per_second);
    y_to = std::max(y_to, peak.flops_per_second);
  }
  x_from /= 1.5;
  x_to *= 1.5;
  y_from /= 1.5;
  y_to *= 1.5;
  const AxisUnit rate_unit = FlopsUnit(y_to / 1.5);
  Plot plot;
  Frame& frame = plot.frame;
  frame.top = kOuterMargin + (options.show_title ? 12 : 0);
  frame.bottom = frame.top + std::min(0.65 * options.width, 220.0);
  plot.y_axis = {
      {y_from, y_to, frame.bottom, frame.top, true}, rate_unit.name, rate_unit};
  frame.left =
      kOuterMargin + LeftAxisWidth(plot.y_axis, frame.bottom - frame.top);
  frame.right = options.width - kOuterMargin - 8;
  plot.x_axis = {
      {x_from, x_to, frame.left, frame.right, true}, "FLOP per byte", {1, ""}};
  return plot;
}

// Draws the roofs: memory traffic, and arithmetic in each format.
void DrawRoofs(const RooflineData& data, const Plot& plot, Drawing* drawing) {
  const double top_rate =
      std::max_element(data.peaks.begin(), data.peaks.end(),
                       [](const auto& a, const auto& b) {
                         return a.flops_per_second < b.flops_per_second;
                       })
          ->flops_per_second;
  const double bandwidth = data.memory_bytes_per_second;
  const double x_from = plot.x_axis.scale.from;
  const double slope_from =
      std::max(x_from, plot.y_axis.scale.from / bandwidth);
  const double knee = top_rate / bandwidth;
  const Paint roof = {"", kBlack, 1};
  drawing->Line(
      {plot.At(slope_from, slope_from * bandwidth), plot.At(knee, top_rate)},
      roof);
  for (const RooflineData::Peak& peak : data.peaks) {
    const double from = std::max(peak.flops_per_second / bandwidth, x_from);
    const Point begin = plot.At(from, peak.flops_per_second);
    drawing->Line({begin, {plot.frame.right, begin.y}}, roof);
    const AxisUnit unit = FlopsUnit(peak.flops_per_second);
    drawing->Text(
        plot.frame.right, begin.y - 3,
        absl::StrCat(peak.format, " ", TickText(peak.flops_per_second, unit),
                     " ", unit.name),
        {.size = 6.5, .anchor = Anchor::kEnd});
  }
}

// The paint of each part, by order of appearance.
class PartPaints {
 public:
  explicit PartPaints(const std::vector<RooflineKernel>& kernels) {
    for (const RooflineKernel& kernel : kernels) {
      parts_.emplace(kernel.part, parts_.size());
    }
  }

  Paint Of(const std::string& part) const {
    return {kPartColors[std::min(parts_.at(part), std::size(kPartColors) - 1)],
            kBlack, 0.4};
  }

  std::vector<LegendEntry> Legend() const {
    std::vector<std::pair<size_t, std::string>> ordered;
    for (const auto& [part, index] : parts_) ordered.emplace_back(index, part);
    std::sort(ordered.begin(), ordered.end());
    std::vector<LegendEntry> entries;
    for (const auto& [index, part] : ordered) {
      entries.push_back({absl::StrReplaceAll(part, {{"_", " "}}), Of(part),
                         LegendEntry::Mark::kDot});
    }
    return entries;
  }

 private:
  std::map<std::string, size_t> parts_;
};

// Draws a dot per kernel, the largest first, so that small ones stay visible.
void DrawKernels(std::vector<RooflineKernel> kernels, double all_seconds,
                 const PartPaints& paints, const Plot& plot, Drawing* drawing) {
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) {
                     return a.seconds * a.count > b.seconds * b.count;
                   });
  constexpr double kWholeArea = 900;  // of all time, in square points
  for (const RooflineKernel& kernel : kernels) {
    const double part = kernel.seconds * kernel.count / all_seconds;
    const double radius =
        std::max(std::sqrt(kWholeArea * part / std::numbers::pi), 1.2);
    const Point center = plot.At(Intensity(kernel), Rate(kernel));
    drawing->Circle(center.x, center.y, radius, paints.Of(kernel.part));
  }
}

}  // namespace

absl::StatusOr<Drawing> RooflineFigure(const RooflineData& data,
                                       const FigureOptions& options) {
  const std::vector<RooflineKernel> kernels = KernelsToDraw(data);
  if (kernels.empty() || data.peaks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.title, ": has no kernel with FLOP, bytes and a time to draw"));
  }
  Drawing drawing(options.width, data.title,
                  "FLOP per second over FLOP per byte of device memory; a dot "
                  "per kernel, its area is the time of such kernels.");
  const Plot plot = RooflinePlot(data, kernels, options);
  DrawAxes(data.title, plot, options, &drawing);
  DrawRoofs(data, plot, &drawing);
  const PartPaints paints(kernels);
  double all_seconds = 0;
  for (const RooflineKernel& kernel : data.kernels) {
    all_seconds += kernel.seconds * kernel.count;
  }
  DrawKernels(kernels, all_seconds, paints, plot, &drawing);
  const double right = options.width - kOuterMargin;
  double y =
      DrawLegend(paints.Legend(), plot.frame.left,
                 plot.frame.bottom + kBottomAxisHeight + 3, right, &drawing);
  const AxisUnit memory = {1e12, "TB/s"};
  y = DrawParagraph(
      absl::StrCat("area of a dot: time in one microbatch; slope: ",
                   TickText(data.memory_bytes_per_second, memory), " ",
                   memory.name, " of device memory"),
      plot.frame.left, y, right, {.color = kDarkGray}, &drawing);
  drawing.set_height(y + kOuterMargin);
  return drawing;
}

}  // namespace weir::results
