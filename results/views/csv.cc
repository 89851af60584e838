// SPDX-License-Identifier: Apache-2.0
// Comma-separated values with quotes as in RFC 4180; lines end in "\n". Missing
// numbers are empty fields.
#include "base/csv.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "results/flops.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/views.h"

namespace weir::results {
namespace {

// Replaces control characters, which could move a terminal's cursor, by '?'.
std::string Quoted(absl::string_view text) { return CsvField(text); }

// Fields with names, so that a value cannot end up under another header.
class Line {
 public:
  void Add(absl::string_view name, absl::string_view value) {
    Append(name, &header_);
    Append(value, &values_);
  }
  void Add(absl::string_view name, double value) {
    Add(name, ShortestNumber(value));
  }
  void Add(absl::string_view name, uint32_t value) {
    Add(name, absl::StrCat(value));
  }
  void Add(absl::string_view name, bool exists, double value) {
    Add(name, exists ? ShortestNumber(value) : "");
  }

  const std::string& header() const { return header_; }
  const std::string& values() const { return values_; }

 private:
  void Append(absl::string_view field, std::string* line) {
    absl::StrAppend(line, num_fields_++ < 2 ? "" : ",", Quoted(field));
  }

  int num_fields_ = 0;
  std::string header_, values_;
};

std::string Print(const Line& empty, const std::vector<Line>& lines) {
  std::string out = absl::StrCat(empty.header(), "\n");
  for (const Line& line : lines) absl::StrAppend(&out, line.values(), "\n");
  return out;
}

// Returns all memory classes of any rank, in order of appearance.
std::vector<std::string> ClassNames(const Result& result) {
  std::vector<std::string> names;
  for (const RankResult& rank : result.ranks()) {
    for (const MemoryClass& memory : rank.peak_memory_classes()) {
      if (std::find(names.begin(), names.end(), memory.name()) == names.end()) {
        names.push_back(memory.name());
      }
    }
  }
  return names;
}

Line RankLine(const RankResult& rank, const std::vector<std::string>& classes) {
  Line line;
  line.Add("rank", rank.rank());
  line.Add("replica", rank.replica());
  line.Add("tensor_rank", rank.tensor_rank());
  line.Add("gpu", rank.gpu());
  line.Add("busy_seconds", rank.busy_seconds());
  line.Add("idle_seconds", rank.idle_seconds());
  line.Add("span_seconds", rank.span_seconds());
  line.Add("exposed_communication_seconds",
           rank.exposed_communication_seconds());
  line.Add("peak_memory_bytes", rank.peak_memory_bytes());
  line.Add("peak_memory_at_seconds", rank.peak_memory_at_seconds());
  line.Add("peak_activation_microbatches", rank.peak_activation_microbatches());
  line.Add("weight_versions", rank.weight_versions());
  line.Add("staleness_updates", rank.staleness_updates());
  for (const std::string& name : classes) {
    double bytes = 0;
    for (const MemoryClass& memory : rank.peak_memory_classes()) {
      if (memory.name() == name) bytes += memory.bytes();
    }
    line.Add(absl::StrCat(name, "_bytes"), bytes);
  }
  return line;
}

// `context`: with the columns of context parallelism.
Line ResultLine(const Result& result, bool context) {
  Line line;
  line.Add("name", result.name());
  line.Add("schedule", result.schedule());
  line.Add("method", result.method());
  line.Add("tensor_parallel", result.tensor_parallel());
  line.Add("pipeline_parallel", result.pipeline_parallel());
  line.Add("data_parallel", result.data_parallel());
  if (context) line.Add("context_parallel", ContextOf(result));
  line.Add("chunks", result.chunks());
  line.Add("microbatch_size", result.microbatch_size());
  line.Add("global_batch_size", result.global_batch_size());
  line.Add("sequence_length", result.sequence_length());
  line.Add("num_microbatches", result.num_microbatches());
  line.Add("num_batches", result.num_batches());
  line.Add("makespan_seconds", result.makespan_seconds());
  line.Add("batch_seconds", result.batch_seconds());
  line.Add("batch_seconds_low", result.has_batch_seconds_low(),
           result.batch_seconds_low());
  line.Add("batch_seconds_high", result.has_batch_seconds_high(),
           result.batch_seconds_high());
  line.Add("samples_per_second", result.has_samples_per_second(),
           result.samples_per_second());
  line.Add("tokens_per_second", result.has_tokens_per_second(),
           result.tokens_per_second());
  const auto tokens = TokensPerGpu(result);
  line.Add("tokens_per_second_per_gpu", tokens.has_value(), tokens.value_or(0));
  const auto flops = FlopsPerGpu(result, FormulaOf(result));
  line.Add("flops_per_second_per_gpu", flops.has_value(), flops.value_or(0));
  line.Add("model_flops_utilization", result.has_model_flops_utilization(),
           result.model_flops_utilization());
  for (const StepPart& part : StepParts()) {
    if (part.only_context && !context) continue;
    line.Add(part.json_name, result.has_breakdown(),
             (result.breakdown().*part.seconds)());
  }
  line.Add("idle_ratio", result.idle_ratio());
  line.Add("span_seconds", result.has_span_seconds(), result.span_seconds());
  line.Add("span_idle_ratio", result.has_span_idle_ratio(),
           result.span_idle_ratio());
  line.Add("exposed_communication_ratio", result.exposed_communication_ratio());
  line.Add("steady_state",
           absl::string_view(result.steady_state() ? "true" : "false"));
  line.Add("weight_versions", result.weight_versions());
  line.Add("staleness_updates", result.staleness_updates());
  line.Add("peak_memory_bytes", result.peak_memory_bytes());
  line.Add("peak_memory_bytes_low", result.has_peak_memory_bytes_low(),
           result.peak_memory_bytes_low());
  line.Add("peak_memory_bytes_high", result.has_peak_memory_bytes_high(),
           result.peak_memory_bytes_high());
  line.Add("used_memory_bytes", result.used_memory_bytes());
  line.Add("memory_capacity_bytes", result.has_memory_capacity_bytes(),
           result.memory_capacity_bytes());
  line.Add("fits_memory",
           absl::string_view(FitsMemory(result) ? "true" : "false"));
  line.Add("semantics", result.semantics());
  line.Add("limit", result.limit());
  return line;
}

}  // namespace

std::string RanksCsv(const Result& result) {
  const std::vector<std::string> classes = ClassNames(result);
  std::vector<Line> lines;
  for (const RankResult& rank : result.ranks()) {
    lines.push_back(RankLine(rank, classes));
  }
  return Print(RankLine(RankResult(), classes), lines);
}

std::string CompareCsv(std::span<const Result> results) {
  const bool context =
      std::any_of(results.begin(), results.end(),
                  [](const Result& result) { return ContextOf(result) > 1; });
  std::vector<Line> lines;
  for (const Result& result : results) {
    lines.push_back(ResultLine(result, context));
  }
  return Print(ResultLine(Result(), context), lines);
}

}  // namespace weir::results
