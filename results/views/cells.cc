// SPDX-License-Identifier: Apache-2.0
#include "results/views/cells.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/summary.h"

namespace weir::results {

std::string ShapeText(const Result& result) {
  const uint64_t num_gpus = uint64_t{result.tensor_parallel()} *
                            result.pipeline_parallel() * result.data_parallel();
  std::string text = absl::StrCat(
      "tensor ", result.tensor_parallel(), " x pipeline ",
      result.pipeline_parallel(), " x data ", result.data_parallel(), " = ",
      num_gpus, num_gpus == 1 ? " GPU, " : " GPUs, ");
  if (result.global_batch_size() > 0) {
    absl::StrAppend(&text, "batch ", result.global_batch_size(), " = ");
    if (result.data_parallel() > 1) {
      absl::StrAppend(&text, result.data_parallel(), " x ");
    }
  }
  absl::StrAppend(&text, result.num_microbatches(), " microbatches");
  if (result.microbatch_size() > 0) {
    absl::StrAppend(&text, " of ", result.microbatch_size());
  }
  if (result.sequence_length() > 0) {
    absl::StrAppend(&text, ", sequence ", result.sequence_length());
  }
  return text;
}

std::string ShapeCell(const Result& result) {
  std::string text =
      absl::StrCat("tp ", result.tensor_parallel(), ", pp ",
                   result.pipeline_parallel(), ", dp ", result.data_parallel());
  if (result.global_batch_size() > 0) {
    absl::StrAppend(&text, ", batch ", result.global_batch_size());
  } else {
    absl::StrAppend(&text, ", ", result.num_microbatches(), " microbatches");
  }
  return text;
}

bool IsApproximate(const Result& result) {
  // Only schedules without flush are simulated for several batches.
  return result.num_batches() > 1 && !result.steady_state();
}

std::string TimeCell(const Result& result) {
  return absl::StrCat(IsApproximate(result) ? "~" : "",
                      FormatSeconds(result.batch_seconds()));
}

std::string TimeIntervalCell(const Result& result) {
  if (!result.has_batch_seconds_low() || !result.has_batch_seconds_high()) {
    return TimeCell(result);
  }
  const std::string low = FormatSeconds(result.batch_seconds_low());
  const std::string high = FormatSeconds(result.batch_seconds_high());
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(low, absl::MaxSplits(' ', 1));
  const bool one_unit = absl::EndsWith(high, absl::StrCat(" ", sides.second));
  return absl::StrCat(TimeCell(result), " (",
                      one_unit ? sides.first : absl::string_view(low), " to ",
                      high, ")");
}

std::string EvidenceCell(const Result& result) {
  if (!result.has_seconds_by_evidence() || !(result.batch_seconds() > 0)) {
    return "";
  }
  const SecondsByEvidence& by = result.seconds_by_evidence();
  const std::pair<const char*, double> kinds[] = {
      {"measured", by.measured()}, {"interpolated", by.interpolated()},
      {"fitted", by.fitted()},     {"datasheet", by.datasheet()},
      {"assumed", by.assumed()},   {"given", by.given()}};
  std::string text;
  for (const auto& [name, seconds] : kinds) {
    const double percent = 100 * seconds / result.batch_seconds();
    if (percent < 0.5) continue;
    absl::StrAppendFormat(&text, "%s%.0f %% %s", text.empty() ? "" : ", ",
                          percent, name);
  }
  return text;
}

std::string SamplesCell(const Result& result) {
  return result.has_samples_per_second()
             ? FormatCount(result.samples_per_second())
             : "-";
}

std::string TokensCell(const Result& result) {
  return result.has_tokens_per_second()
             ? FormatCount(result.tokens_per_second())
             : "-";
}

std::string UtilizationCell(const Result& result) {
  const auto utilization = UtilizationOf(result, FormulaOf(result));
  return utilization.has_value() ? FormatPercent(*utilization) : "-";
}

std::string TeraflopsCell(const Result& result) {
  const auto flops = FlopsPerGpu(result, FormulaOf(result));
  return flops.has_value() ? FormatCount(*flops / 1e12) : "-";
}

std::string UtilizationHeader(const Result& result) {
  return absl::StrCat("MFU (", NameOf(FormulaOf(result)), ")");
}

std::string TeraflopsHeader(const Result& result) {
  return absl::StrCat("TFLOP/s/GPU (", NameOf(FormulaOf(result)), ")");
}

std::string BubbleCell(const Result& result) {
  return FormatPercent(result.bubble_ratio());
}

std::string ExposedCell(const Result& result) {
  return FormatPercent(result.exposed_communication_ratio());
}

std::string MemoryCell(const Result& result) {
  if (!result.has_memory_capacity_bytes()) {
    return result.peak_memory_bytes() > 0
               ? FormatBytes(result.peak_memory_bytes())
               : "-";
  }
  const std::string use =
      absl::StrCat(FormatBytes(result.peak_memory_bytes()), " of ",
                   FormatBytes(result.memory_capacity_bytes()));
  return FitsMemory(result) ? use
                            : absl::StrCat(use, ", ", MemoryExcessText(result));
}

std::string ExecutedCell(const Result& result) {
  if (!result.has_replay()) return "";
  const Replay& replay = result.replay();
  return absl::StrCat(
      "replayed on ",
      replay.device().empty() ? "an unnamed device" : Ascii(replay.device()),
      replay.serial() ? ", each pass by itself" : "");
}

std::string MemoryExcessText(const Result& result) {
  const double missing_bytes = MissingBytes(result);
  return missing_bytes > 0
             ? absl::StrCat(FormatBytes(missing_bytes), " over the limit")
             : "does not fit";
}

}  // namespace weir::results
