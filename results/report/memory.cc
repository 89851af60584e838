// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/report/sections.h"
#include "results/result_enums.h"

namespace weir::results {
namespace {

// Changes of memory over time, of all ranks.
class Samples {
 public:
  explicit Samples(const Ticks& ticks) : ticks_(ticks) {}

  // Begins a rank and returns the index of its first sample.
  size_t Begin() {
    until_ = 0;
    return kind_.size();
  }

  void Add(double seconds, uint32_t kind, double bytes) {
    const uint32_t tick = std::max(ticks_.Of(seconds), until_);
    gap_.push_back(tick - until_);
    until_ = tick;
    kind_.push_back(kind);
    bytes_.push_back(values_.IndexOf(bytes));
  }

  size_t size() const { return kind_.size(); }

  Json Finish(DataBlock* data) const {
    return {{"gap", data->Add(gap_)},
            {"kind", data->Add(kind_)},
            {"bytes", data->Add(bytes_)},
            {"bytes_values", data->AddDoubles(values_.values())}};
  }

 private:
  const Ticks& ticks_;
  uint32_t until_ = 0;
  std::vector<uint32_t> gap_, kind_, bytes_;
  ValueTable values_;
};

// The kind of samples without class: the whole memory in use.
constexpr uint32_t kTotal = MemoryClass::Kind_ARRAYSIZE;

Json ClassesJson() {
  Json classes = Json::array();
  for (int kind = 0; kind < MemoryClass::Kind_ARRAYSIZE; ++kind) {
    classes.push_back(NameOf(static_cast<MemoryClass::Kind>(kind)));
  }
  classes.push_back("in use");
  return classes;
}

Json PeaksOf(const RankResult& gpu) {
  Json classes = Json::object();
  for (const MemoryClass& one : gpu.peak_memory_classes()) {
    classes[one.name()] = one.bytes();
  }
  return {{"rank", gpu.rank()},
          {"replica", gpu.replica()},
          {"gpu", gpu.gpu()},
          {"peak_bytes", gpu.peak_memory_bytes()},
          {"peak_text", FormatBytes(gpu.peak_memory_bytes())},
          {"peak_at_seconds", gpu.peak_memory_at_seconds()},
          {"cached_bytes", gpu.cached_bytes()},
          {"classes", classes}};
}

// Returns the GPU with the largest peak of each pipeline rank.
Json WorstPeaks(const Result& result) {
  std::map<uint32_t, const RankResult*> worst;
  for (const RankResult& gpu : result.ranks()) {
    const RankResult*& w = worst[gpu.rank()];
    if (w == nullptr || gpu.peak_memory_bytes() > w->peak_memory_bytes()) {
      w = &gpu;
    }
  }
  Json peaks = Json::array();
  for (const auto& [rank, gpu] : worst) peaks.push_back(PeaksOf(*gpu));
  return peaks;
}

// Returns the samples of each rank of a pipeline, by class if known.
Json SeriesOf(const ShownPipeline& pipeline, Samples* samples) {
  const Result& result = pipeline.result;
  const auto& classes = result.timeline().class_memory();
  const auto& total = result.timeline().memory();
  const bool by_class = classes.gpu_size() > 0;
  const int size = by_class ? classes.gpu_size() : total.gpu_size();
  // [gpu]: indices of its samples, which are in the order of time.
  std::vector<std::vector<int>> of_gpu(
      static_cast<size_t>(result.ranks_size()));
  for (int i = 0; i < size; ++i) {
    of_gpu[by_class ? classes.gpu(i) : total.gpu(i)].push_back(i);
  }
  Json series = Json::array();
  for (size_t gpu = 0; gpu < of_gpu.size(); ++gpu) {
    if (of_gpu[gpu].empty()) continue;
    const size_t begin = samples->Begin();
    for (const int i : of_gpu[gpu]) {
      if (by_class) {
        samples->Add(classes.seconds(i), classes.kind(i), classes.bytes(i));
      } else {
        samples->Add(total.seconds(i), kTotal, total.bytes(i));
      }
    }
    const RankResult& rank = result.ranks(static_cast<int>(gpu));
    series.push_back({{"run", pipeline.run},
                      {"replica", pipeline.group.replica},
                      {"tensor_rank", pipeline.group.tensor_rank},
                      {"rank", rank.rank()},
                      {"peak_bytes", rank.peak_memory_bytes()},
                      {"peak_at_seconds", rank.peak_memory_at_seconds()},
                      {"begin", begin},
                      {"size", samples->size() - begin}});
  }
  return series;
}

}  // namespace

Json MemorySection(std::span<const Result> results,
                   std::span<const ShownPipeline> pipelines, DataBlock* data) {
  double end = 0;
  for (const ShownPipeline& pipeline : pipelines) {
    end = std::max(end, pipeline.result.makespan_seconds());
    const Timeline& timeline = pipeline.result.timeline();
    for (const auto* times :
         {&timeline.memory().seconds(), &timeline.class_memory().seconds()}) {
      for (const double seconds : *times) end = std::max(end, seconds);
    }
  }
  const Ticks ticks(end);
  Samples samples(ticks);
  Json runs = Json::array();
  for (const Result& result : results) {
    runs.push_back(
        {{"capacity_bytes", result.has_memory_capacity_bytes()
                                ? Json(result.memory_capacity_bytes())
                                : Json()},
         {"makespan_seconds", result.makespan_seconds()},
         {"peaks", WorstPeaks(result)}});
  }
  Json series = Json::array();
  for (const ShownPipeline& pipeline : pipelines) {
    for (Json& one : SeriesOf(pipeline, &samples)) {
      series.push_back(std::move(one));
    }
  }
  return {{"type", "memory"},
          {"classes", ClassesJson()},
          {"tick_seconds", ticks.tick_seconds()},
          {"runs", runs},
          {"series", series},
          {"columns", samples.Finish(data)}};
}

}  // namespace weir::results
