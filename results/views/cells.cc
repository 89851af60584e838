// SPDX-License-Identifier: Apache-2.0
#include "results/views/cells.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/memory_limits.h"
#include "results/summary.h"
#include "results/views/features.h"

namespace weir::results {

std::string ShapeText(const Result& result) {
  const uint64_t num_gpus = NumGpus(result);
  std::string text = absl::StrCat(
      "tensor ", result.tensor_parallel(), " x pipeline ",
      result.pipeline_parallel(),
      ContextOf(result) > 1 ? absl::StrCat(" x context ", ContextOf(result))
                            : "",
      " x data ", result.data_parallel(), " = ", num_gpus,
      num_gpus == 1 ? " GPU, " : " GPUs, ");
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
  const uint32_t expert = ScenarioOf(result).parallelism().expert();
  if (expert > 1) absl::StrAppend(&text, ", expert ", expert);
  if (result.has_expert_tensor_parallel()) {
    absl::StrAppend(&text, ", expert tensor ", result.expert_tensor_parallel());
  }
  if (result.has_data_replicate()) {
    absl::StrAppend(&text, ", shards in ", result.data_replicate(), " groups");
  }
  if (result.has_expert_load()) {
    absl::StrAppend(
        &text, absl::StrFormat(", expert load %.2f", result.expert_load()));
  }
  return text;
}

std::string ShapeTitle(const std::string& name, const Result& result) {
  std::string text = absl::StrCat(
      name.empty() ? "" : absl::StrCat(Ascii(name), ": "), ShapeText(result));
  const TextLayout& layout = CurrentTextLayout();
  const size_t end = text.find(" GPUs, ");
  if (!layout.wide && std::ssize(text) > layout.width &&
      end != std::string::npos) {
    text.replace(end, 7, " GPUs\n");
  }
  return WrapText(absl::StrCat(text, "\n"));
}

std::string DefaultsLine(std::span<const Result> results) {
  const std::string text = DefaultsText(MergeDefaults(results));
  return text.empty() ? ""
                      : WrapText(absl::StrCat("defaults: ", Ascii(text), "\n"));
}

std::string NumberFormatCell(const Result& result) {
  // A result contains the scenario only as text.
  const std::string& scenario = result.provenance().scenario();
  const std::string before = " recipe: \"";
  const size_t field = scenario.find(before);
  if (field == std::string::npos) return "";
  const size_t begin = field + before.size();
  std::string name = scenario.substr(begin, scenario.find('"', begin) - begin);
  const bool is_fp16 = absl::StrContains(scenario, " precision: MIXED_FP16");
  if (name == "bf16" || name == "fp16") return name;
  return absl::StrCat(Ascii(name), is_fp16 ? " (fp16" : " (bf16",
                      " otherwise)");
}

std::string ShapeCell(const Result& result) {
  std::string text = absl::StrCat(
      "tp ", result.tensor_parallel(), ", pp ", result.pipeline_parallel(),
      ContextOf(result) > 1 ? absl::StrCat(", cp ", ContextOf(result)) : "",
      ", dp ", result.data_parallel());
  const uint32_t expert = ScenarioOf(result).parallelism().expert();
  if (expert > 1) absl::StrAppend(&text, ", ep ", expert);
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

std::string IntervalText(const std::string& low, const std::string& high) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(low, absl::MaxSplits(' ', 1));
  const bool one_unit = absl::EndsWith(high, absl::StrCat(" ", sides.second));
  return absl::StrCat(one_unit ? sides.first : absl::string_view(low), " to ",
                      high);
}

std::string TimeIntervalCell(const Result& result) {
  const std::string interval = IntervalCell(result);
  return interval == "-" ? TimeCell(result)
                         : absl::StrCat(TimeCell(result), " (", interval, ")");
}

std::string IntervalCell(const Result& result) {
  if (!result.has_batch_seconds_low() || !result.has_batch_seconds_high()) {
    return "-";
  }
  return IntervalText(FormatSeconds(result.batch_seconds_low()),
                      FormatSeconds(result.batch_seconds_high()));
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

std::optional<double> TokensPerGpu(const Result& result) {
  const double num_gpus = result.ranks_size() > 0
                              ? result.ranks_size()
                              : static_cast<double>(NumGpus(result));
  if (!result.has_tokens_per_second() || !(num_gpus > 0)) return std::nullopt;
  return result.tokens_per_second() / num_gpus;
}

std::string TokensPerGpuCell(const Result& result) {
  const auto tokens = TokensPerGpu(result);
  return tokens.has_value() ? FormatCount(*tokens) : "-";
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

std::string IdleCell(const Result& result) {
  return FormatPercent(result.idle_ratio());
}

std::span<const StepPart> StepParts() {
  using B = StepBreakdown;
  static constexpr StepPart kParts[] = {
      {"compute", "compute_seconds", &B::compute_seconds, true},
      {"tp comm", "tensor_communication_seconds",
       &B::tensor_communication_seconds, true},
      {"ep comm", "expert_communication_seconds",
       &B::expert_communication_seconds, false},
      {"cp comm", "context_communication_seconds",
       &B::context_communication_seconds, false, true},
      {"p2p", "pipeline_transfer_seconds", &B::pipeline_transfer_seconds, true},
      {"dp comm", "data_communication_seconds", &B::data_communication_seconds,
       true},
      {"optimizer", "optimizer_seconds", &B::optimizer_seconds, true},
      {"bubble", "bubble_seconds", &B::bubble_seconds, true},
      {"rollbacks", "rollback_seconds", &B::rollback_seconds, false},
  };
  return kParts;
}

std::string StepPartCell(const Result& result, const StepPart& part) {
  if (!result.has_breakdown() || !(result.batch_seconds() > 0)) return "-";
  return FormatPercent((result.breakdown().*part.seconds)() /
                       result.batch_seconds());
}

std::string PeakCell(const Result& result) {
  return result.peak_memory_bytes() > 0
             ? FormatBytes(result.peak_memory_bytes())
             : "-";
}

std::string MemoryCell(const Result& result) {
  if (!result.has_memory_capacity_bytes()) return PeakCell(result);
  std::string use = FormatBytes(result.peak_memory_bytes());
  if (result.has_peak_memory_bytes_high()) {
    absl::StrAppend(&use, " (",
                    IntervalText(FormatBytes(result.peak_memory_bytes_low()),
                                 FormatBytes(result.peak_memory_bytes_high())),
                    ")");
  }
  absl::StrAppend(&use, " of ", FormatBytes(result.memory_capacity_bytes()));
  if (!FitsMemory(result)) {
    absl::StrAppend(&use, ", ", MemoryExcessText(result));
  }
  const FitVerdict verdict = VerdictOf(result);
  if (verdict == FitVerdict::kMayFit || verdict == FitVerdict::kMayNotFit) {
    absl::StrAppend(&use, ", ", NameOf(verdict));
  }
  return use;
}

std::string ExecutedCell(const Result& result) {
  if (!result.has_replay()) return "";
  const Replay& replay = result.replay();
  if (result.method() == "imported") {
    return replay.num_steps() == 1
               ? "the recorded step"
               : absl::StrCat("one of ", replay.num_steps(), " recorded steps");
  }
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
