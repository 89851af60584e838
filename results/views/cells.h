// SPDX-License-Identifier: Apache-2.0
// Table cells of a result; "-" if the result does not contain the value. All
// text is printable ASCII.
#ifndef WEIR_RESULTS_VIEWS_CELLS_H_
#define WEIR_RESULTS_VIEWS_CELLS_H_

#include <optional>
#include <span>
#include <string>

#include "results/result.pb.h"

namespace weir::results {

// Returns "tensor 8 x pipeline 8 x data 4 = 256 GPUs, batch 512 = 4 x 128
// microbatches of 1, sequence 2048, expert 8", without the parts that the
// result does not contain.
std::string ShapeText(const Result& result);

// Returns "name: " and ShapeText as a title with a line end: the batch is on a
// second line if the layout is too narrow for one.
std::string ShapeTitle(const std::string& name, const Result& result);

// Returns the same for a column: "tp 8, pp 8, dp 4, batch 512".
std::string ShapeCell(const Result& result);

// Returns "9.10 to 10.6 s" for two formatted quantities.
std::string IntervalText(const std::string& low, const std::string& high);
std::string TimeCell(const Result& result);  // "9.84 s", "~9.84 s"
// Returns "9.84 s (9.10 to 10.6 s)", without the interval if there is none.
std::string TimeIntervalCell(const Result& result);
// Returns the fractions of the time by evidence, "62 % measured, 30 % fitted, 8
// % assumed"; empty if the result does not contain them.
std::string EvidenceCell(const Result& result);
// Returns "fp8-current (bf16 otherwise)", the recipe of the scenario; empty if
// it has none.
std::string NumberFormatCell(const Result& result);
std::string SamplesCell(const Result& result);
std::string TokensCell(const Result& result);
std::string TokensPerGpuCell(const Result& result);
// Returns "3.94 to 5.76 s", the interval of the time.
std::string IntervalCell(const Result& result);
// Return the model FLOPs utilization, and the TFLOP/s of a GPU, by the result's
// formula, and headers that name the formula: "MFU (palm)".
std::string UtilizationCell(const Result& result);
std::string TeraflopsCell(const Result& result);
std::string UtilizationHeader(const Result& result);
std::string TeraflopsHeader(const Result& result);
std::optional<double> TokensPerGpu(const Result& result);
std::string IdleCell(const Result& result);

// A part of StepBreakdown.
struct StepPart {
  const char* name;  // "compute", "tp comm"
  const char* json_name;
  double (StepBreakdown::*seconds)() const;
  bool always_shown;          // in tables also if it takes no time
  bool only_context = false;  // absent without context parallelism
};
// Returns all parts; they add up to batch_seconds.
std::span<const StepPart> StepParts();
// Returns the part's fraction of the time.
std::string StepPartCell(const Result& result, const StepPart& part);

// Returns the peak, "15.2 GiB".
std::string PeakCell(const Result& result);
// Returns "13.2 GiB (12.1 to 14.6 GiB) of 15.8 GiB". If the peak is larger than
// the memory, "1.40 GiB over the limit" follows; if only one end of the
// interval is, "may fit" or "may not fit".
std::string MemoryCell(const Result& result);

// Returns "replayed on NVIDIA H200, each pass by itself" (without the second
// part for concurrent replays); empty for a simulated result.
std::string ExecutedCell(const Result& result);

// Returns true if the time is only approximate: without flush, no period was
// found.
bool IsApproximate(const Result& result);

// Returns "1.40 GiB over the limit", or "does not fit" if the excess is
// unknown.
std::string MemoryExcessText(const Result& result);

}  // namespace weir::results

#endif  // WEIR_RESULTS_VIEWS_CELLS_H_
