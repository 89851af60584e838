// SPDX-License-Identifier: Apache-2.0
// Key figures, parts of the step, values of ranks and the configuration.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/flops.h"
#include "results/memory_limits.h"
#include "results/report/sections.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/features.h"

namespace weir::results {
namespace {

using Value = std::optional<double>;

enum class Better { kNeither, kLower, kHigher };

// A row of the key figures.
struct Figure {
  std::string label;
  // Field of "result" of --format json; empty: it has none.
  std::string json;
  std::string unit;  // of the value
  Better better = Better::kNeither;
  std::function<std::string(const Result&)> text;
  std::function<Value(const Result&)> value;
  // Ends of the interval of nine cases of ten; null: none.
  std::function<Value(const Result&)> low = nullptr, high = nullptr;
  std::function<std::string(const Result&)> interval = nullptr;
};

template <bool (Result::*kHas)() const, double (Result::*kGet)() const>
Value Optional(const Result& result) {
  return (result.*kHas)() ? Value((result.*kGet)()) : std::nullopt;
}

std::string PercentOrDash(const Value& value) {
  return value.has_value() ? FormatPercent(*value) : "-";
}

bool IsModelFormula(std::span<const Result> results) {
  return std::all_of(results.begin(), results.end(), [](const Result& result) {
    return FormulaOf(result) == FlopsFormula::kModel;
  });
}

std::string FitText(const Result& result) {
  return result.has_memory_capacity_bytes() ? NameOf(VerdictOf(result)) : "-";
}

std::string MemoryIntervalText(const Result& result) {
  if (!result.has_peak_memory_bytes_high()) return "-";
  return IntervalText(FormatBytes(result.peak_memory_bytes_low()),
                      FormatBytes(result.peak_memory_bytes_high()));
}

std::vector<Figure> TimeFigures(std::span<const Result> results) {
  using R = Result;
  return {
      {"Step time", "batch_seconds", "s", Better::kLower, TimeCell,
       [](const R& r) { return Value(r.batch_seconds()); },
       Optional<&R::has_batch_seconds_low, &R::batch_seconds_low>,
       Optional<&R::has_batch_seconds_high, &R::batch_seconds_high>,
       IntervalCell},
      {"Samples per second", "samples_per_second", "1/s", Better::kHigher,
       SamplesCell,
       Optional<&R::has_samples_per_second, &R::samples_per_second>},
      {"Tokens per second", "tokens_per_second", "1/s", Better::kHigher,
       TokensCell, Optional<&R::has_tokens_per_second, &R::tokens_per_second>},
      {"Tokens per second and GPU", "tokens_per_second_per_gpu", "1/s",
       Better::kHigher, TokensPerGpuCell, TokensPerGpu},
      {TeraflopsHeader(results.front()), "flops_per_second_per_gpu", "FLOP/s",
       Better::kHigher, TeraflopsCell,
       [](const R& r) { return FlopsPerGpu(r, FormulaOf(r)); }},
      {UtilizationHeader(results.front()),
       IsModelFormula(results) ? "model_flops_utilization" : "", "",
       Better::kHigher, UtilizationCell,
       [](const R& r) { return UtilizationOf(r, FormulaOf(r)); }},
      {"GPUs idle", "idle_ratio", "", Better::kLower, IdleCell,
       [](const R& r) { return Value(r.idle_ratio()); }},
      {"Idle within the span of each GPU", "span_idle_ratio", "",
       Better::kLower,
       [](const R& r) {
         return PercentOrDash(
             Optional<&R::has_span_idle_ratio, &R::span_idle_ratio>(r));
       },
       Optional<&R::has_span_idle_ratio, &R::span_idle_ratio>},
      {"Exposed communication", "exposed_communication_ratio", "",
       Better::kLower,
       [](const R& r) {
         return FormatPercent(r.exposed_communication_ratio());
       },
       [](const R& r) { return Value(r.exposed_communication_ratio()); }},
  };
}

// Returns false for a recorded run, whose weights are unknown.
bool KnowsWeights(const Result& result) { return result.weight_versions() > 0; }

std::vector<Figure> MemoryFigures() {
  using R = Result;
  return {
      {"Peak memory", "peak_memory_bytes", "B", Better::kLower, PeakCell,
       [](const R& r) { return Value(r.peak_memory_bytes()); },
       Optional<&R::has_peak_memory_bytes_low, &R::peak_memory_bytes_low>,
       Optional<&R::has_peak_memory_bytes_high, &R::peak_memory_bytes_high>,
       MemoryIntervalText},
      {"Memory of the GPU", "memory_capacity_bytes", "B", Better::kNeither,
       [](const R& r) {
         return r.has_memory_capacity_bytes()
                    ? FormatBytes(r.memory_capacity_bytes())
                    : "-";
       },
       Optional<&R::has_memory_capacity_bytes, &R::memory_capacity_bytes>},
      {"Fits in memory", "", "", Better::kNeither, FitText,
       [](const R&) { return Value(); }},
      {"Weight versions", "weight_versions", "", Better::kLower,
       [](const R& r) {
         return KnowsWeights(r) ? absl::StrCat(r.weight_versions()) : "-";
       },
       [](const R& r) {
         return KnowsWeights(r) ? Value(r.weight_versions()) : Value();
       }},
      {"Staleness in updates", "staleness_updates", "", Better::kLower,
       [](const R& r) {
         return KnowsWeights(r) ? absl::StrCat(r.staleness_updates()) : "-";
       },
       [](const R& r) {
         return KnowsWeights(r) ? Value(r.staleness_updates()) : Value();
       }},
  };
}

Json NumberOrNull(const Value& value) {
  return value.has_value() ? Json(*value) : Json();
}

Json CellOf(const Figure& figure, const Result& result) {
  Json cell;
  cell["text"] = figure.text(result);
  cell["value"] = NumberOrNull(figure.value(result));
  if (figure.low == nullptr || !figure.low(result).has_value()) return cell;
  cell["low"] = NumberOrNull(figure.low(result));
  cell["high"] = NumberOrNull(figure.high(result));
  cell["interval"] = figure.interval(result);
  return cell;
}

const char* BetterText(Better better) {
  switch (better) {
    case Better::kLower:
      return "lower";
    case Better::kHigher:
      return "higher";
    case Better::kNeither:
      break;
  }
  return "";
}

// Returns what is said about a result in sentences.
Json TextsOf(const Result& result) {
  Json texts = Json::array();
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) texts.push_back({{"label", label}, {"text", text}});
  };
  add("Run", result.name());
  add("Shape", ShapeText(result));
  add("Weights", result.semantics());
  add("Basis of the time", EvidenceCell(result));
  add("Memory", result.has_memory_capacity_bytes() ? MemoryCell(result) : "");
  add("Limit", result.limit());
  add("Number format", NumberFormatCell(result));
  add("Features", CommonFeatures({&result, 1}));
  add("Defaults", DefaultsText(result.defaults()));
  add("Execution", ExecutedCell(result));
  if (IsApproximate(result)) {
    add("Accuracy",
        "no steady state was found: the step time is the mean of the second "
        "half of the run");
  }
  return texts;
}

Json PartJson(const PartSeconds& part) {
  return {{"name", part.name()},
          {"seconds", part.seconds()},
          {"text", FormatSeconds(part.seconds())},
          {"forward_seconds", part.forward_seconds()},
          {"backward_seconds", part.backward_seconds()}};
}

std::string BusiestText(const Result& result) {
  if (result.busiest_gpu() >= static_cast<uint32_t>(result.ranks_size())) {
    return "";
  }
  const RankResult& gpu = result.ranks(static_cast<int>(result.busiest_gpu()));
  return absl::StrCat("rank ", gpu.rank(), ", replica ", gpu.replica(),
                      ", GPU ", gpu.gpu());
}

}  // namespace

std::vector<std::string> RunNames(std::span<const Result> results) {
  std::vector<std::string> names;
  std::set<std::string> used;
  for (const Result& result : results) {
    const std::string name = RowName(result);
    std::string distinct = name;
    for (int i = 2; !used.insert(distinct).second; ++i) {
      distinct = absl::StrCat(name, " (", i, ")");
    }
    names.push_back(distinct);
  }
  return names;
}

Json FiguresSection(std::span<const Result> results) {
  std::vector<Figure> figures = TimeFigures(results);
  for (Figure& figure : MemoryFigures()) figures.push_back(std::move(figure));
  Json rows = Json::array();
  for (const Figure& figure : figures) {
    const bool known = std::any_of(
        results.begin(), results.end(),
        [&](const Result& result) { return figure.text(result) != "-"; });
    if (!known) continue;
    Json cells = Json::array();
    for (const Result& result : results) {
      cells.push_back(CellOf(figure, result));
    }
    rows.push_back({{"label", figure.label},
                    {"json", figure.json},
                    {"unit", figure.unit},
                    {"better", BetterText(figure.better)},
                    {"cells", cells}});
  }
  Json texts = Json::array();
  for (const Result& result : results) texts.push_back(TextsOf(result));
  const Fastest fastest = FindFastest(results);
  return {{"type", "figures"},
          {"rows", rows},
          {"texts", texts},
          {"fastest",
           fastest.that_fits.has_value() ? Json(*fastest.that_fits) : Json()},
          {"warnings", MergeWarnings(results)}};
}

Json BreakdownSection(std::span<const Result> results) {
  Json parts = Json::array();
  std::vector<const StepPart*> shown;
  for (const StepPart& part : StepParts()) {
    const bool used =
        std::any_of(results.begin(), results.end(), [&](const Result& result) {
          return (result.breakdown().*part.seconds)() != 0;
        });
    if (!used && !part.always_shown) continue;
    shown.push_back(&part);
    parts.push_back({{"name", part.name}, {"json", part.json_name}});
  }
  Json runs = Json::array();
  for (const Result& result : results) {
    Json run;
    run["batch_seconds"] = result.batch_seconds();
    run["seconds"] = Json();
    if (result.has_breakdown()) {
      Json seconds = Json::array(), texts = Json::array(),
           ratios = Json::array();
      for (const StepPart* part : shown) {
        const double value = (result.breakdown().*part->seconds)();
        seconds.push_back(value);
        texts.push_back(FormatSeconds(value));
        ratios.push_back(StepPartCell(result, *part));
      }
      run["seconds"] = seconds;
      run["texts"] = texts;
      run["ratios"] = ratios;
    }
    run["busiest"] = BusiestText(result);
    run["busiest_parts"] = Json::array();
    for (const PartSeconds& part : result.parts()) {
      run["busiest_parts"].push_back(PartJson(part));
    }
    runs.push_back(run);
  }
  return {{"type", "breakdown"}, {"parts", parts}, {"runs", runs}};
}

Json RanksSection(std::span<const Result> results) {
  Json runs = Json::array();
  for (const Result& result : results) {
    std::map<uint32_t, RankResult> worst;
    for (const RankResult& gpu : result.ranks()) {
      RankResult& w = worst[gpu.rank()];
      w.set_rank(gpu.rank());
      w.set_busy_seconds(std::max(w.busy_seconds(), gpu.busy_seconds()));
      w.set_idle_seconds(std::max(w.idle_seconds(), gpu.idle_seconds()));
      w.set_exposed_communication_seconds(
          std::max(w.exposed_communication_seconds(),
                   gpu.exposed_communication_seconds()));
      w.set_peak_memory_bytes(
          std::max(w.peak_memory_bytes(), gpu.peak_memory_bytes()));
      w.set_peak_activation_microbatches(
          std::max(w.peak_activation_microbatches(),
                   gpu.peak_activation_microbatches()));
      w.set_weight_versions(
          std::max(w.weight_versions(), gpu.weight_versions()));
    }
    Json ranks = Json::array();
    for (const auto& [rank, w] : worst) {
      ranks.push_back(
          {{"rank", rank},
           {"busy_seconds", w.busy_seconds()},
           {"idle_seconds", w.idle_seconds()},
           {"exposed_communication_seconds", w.exposed_communication_seconds()},
           {"peak_memory_bytes", w.peak_memory_bytes()},
           {"peak_activation_microbatches", w.peak_activation_microbatches()},
           {"weight_versions", w.weight_versions()}});
    }
    runs.push_back(ranks);
  }
  return {{"type", "ranks"}, {"runs", runs}};
}

Json ConfigurationSection(std::span<const Result> results) {
  Json runs = Json::array();
  for (const Result& result : results) {
    const ResultProvenance& provenance = result.provenance();
    runs.push_back({{"scenario", provenance.scenario()},
                    {"method", result.method()},
                    {"weir_version", provenance.weir_version()},
                    {"git_revision", provenance.git_revision()},
                    {"simgrid_version", provenance.simgrid_version()},
                    {"gpu_name", provenance.gpu_name()}});
  }
  return {{"type", "configuration"}, {"runs", runs}};
}

}  // namespace weir::results
