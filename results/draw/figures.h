// SPDX-License-Identifier: Apache-2.0
// The figures that "weir draw" makes (docs/figures.md). Every function returns
// InvalidArgument for data that it cannot show.
#ifndef WEIR_RESULTS_DRAW_FIGURES_H_
#define WEIR_RESULTS_DRAW_FIGURES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/draw/chart.h"
#include "results/draw/drawing.h"
#include "results/draw/timeline_rows.h"
#include "results/result.pb.h"

namespace weir::results {

// Draws timelines of one or several runs below each other, on one time axis: a
// box per pass with its microbatch, colors by kind of pass. Runs with several
// weight versions also show the version that each pass reads, if it fits. If
// the first run has slack, all have, and colors show it.
// Refuses more than 20000 boxes, and runs whose units of time differ.
absl::StatusOr<Drawing> TimelineFigure(std::span<const TimelineRows> runs,
                                       const FigureOptions& options);

// Draws memory over time for each rank of replica 0, tensor rank 0, by class if
// the result has that. Of more than eight ranks, eight are shown: the one with
// the highest peak, and others at even distances; or those of `ranks`.
absl::StatusOr<Drawing> MemoryFigure(const Result& result,
                                     std::span<const uint32_t> ranks,
                                     const FigureOptions& options);

// Draws a bar per rank, or for several results the mean over the ranks of each:
// idle seconds by cause (results/compare/idle_causes.h).
absl::StatusOr<Drawing> IdleFigure(std::span<const Result> results,
                                   std::span<const uint32_t> ranks,
                                   const FigureOptions& options);

// A plan, a point of a sweep, or a schedule.
struct ParetoPoint {
  std::string label;
  double seconds = 0;  // of a step
  double value = 0;    // to be minimized too
  bool fits = true;    // in memory
};
struct ParetoData {
  std::string title;
  std::string value_label;  // "peak memory", "cost per step"
  AxisUnit value_unit;
  std::vector<ParetoPoint> points;
};
// Returns the indices of the points that fit and that no other such point beats
// in both values, by seconds. Of equal points, the first.
std::vector<size_t> ParetoFront(std::span<const ParetoPoint> points);
absl::StatusOr<Drawing> ParetoFigure(const ParetoData& data,
                                     const FigureOptions& options);

// A table of one value over two fields.
struct HeatmapData {
  std::string title;
  std::string row_field, column_field;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::optional<double>>> cells;  // [row][column]
  std::function<std::string(double)> text;                // of a cell
  bool more_is_better = false;
};
absl::StatusOr<Drawing> HeatmapFigure(const HeatmapData& data,
                                      const FigureOptions& options);

// Kernels of a step on one device, and the device's limits (Williams et al.,
// 2009).
struct RooflineKernel {
  std::string part;                          // "feed_forward_gemm"
  double flops = 0, bytes = 0, seconds = 0;  // of one kernel
  double count = 0;                          // in one microbatch
};
struct RooflineData {
  std::string title;
  struct Peak {
    std::string format;  // "bf16"
    double flops_per_second = 0;
  };
  std::vector<Peak> peaks;
  double memory_bytes_per_second = 0;
  std::vector<RooflineKernel> kernels;
};
// Draws a dot per kernel with FLOP: its rate over its FLOP per byte. The area
// of a dot is proportional to the time of its kernels.
absl::StatusOr<Drawing> RooflineFigure(const RooflineData& data,
                                       const FigureOptions& options);

struct Curve {
  std::string name;
  std::vector<Point> points;
};
struct CurvesPanel {
  std::string x_label, y_label;
  std::vector<Curve> curves;
};
// Draws panels of lines side by side, with a common legend: curve i of each
// panel has the same name.
absl::StatusOr<Drawing> CurvesFigure(const std::string& title,
                                     std::span<const CurvesPanel> panels,
                                     const FigureOptions& options);

// A measured value and its prediction.
struct MeasuredValue {
  double measured = 0, predicted = 0;
};
struct ErrorsData {
  std::string title;
  std::vector<MeasuredValue> values;
  // A column of measured runs, which names the unit: "step_ms". Empty: values
  // have several quantities.
  std::string quantity;
};
// Draws the distribution of the relative error, and predicted over measured
// values. Requires two positive values.
absl::StatusOr<Drawing> ErrorsFigure(const ErrorsData& data,
                                     const FigureOptions& options);

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_FIGURES_H_
