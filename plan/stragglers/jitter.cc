// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/jitter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quantiles.h"
#include "base/split_mix.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::plan {
namespace {

using Kind = JitterSource::Kind;
using Target = JitterSource::Target;

constexpr int kWidth = 8;  // samples that are replayed at once
constexpr double kMaxBytes = 1 << 30;
constexpr unsigned kMaxThreads = 16;

uint64_t Combine(uint64_t key, int64_t value) {
  return SplitMix(key + kSplitMixStep * (static_cast<uint64_t>(value) + 1));
}

bool IsRandom(const JitterSource& source) {
  return source.kind != Kind::kConstant && source.kind != Kind::kPeriodic;
}

bool IsOfPasses(const JitterSource& source) {
  return source.target != Target::kLink && source.target != Target::kStep;
}

bool Applies(const JitterSource& source, const sim::ReplayTasks::Pass& pass) {
  if (!IsOfPasses(source)) return false;
  if (source.only < 0) return true;
  return source.only ==
         (source.target == Target::kGpu ? pass.gpu : pass.action.stage);
}

uint64_t KeyOf(const JitterSource& source, uint64_t key,
               const sim::ReplayTasks::Pass& pass) {
  switch (source.target) {
    case Target::kPass:
      for (const int64_t part :
           {int64_t{pass.replica}, int64_t{pass.tensor_rank},
            static_cast<int64_t>(pass.action.op), int64_t{pass.action.stage},
            int64_t{pass.action.microbatch}}) {
        key = Combine(key, part);
      }
      return key;
    case Target::kGpu:
      return Combine(key, pass.gpu);
    case Target::kStage:
      return Combine(key, pass.action.stage);
    case Target::kSequences:
      return Combine(Combine(key, pass.replica), pass.action.microbatch);
    case Target::kLink:
    case Target::kStep:
      break;
  }
  return key;
}

// Returns the first link with this name, or the end.
auto FindLink(const std::vector<std::string>& links, const std::string& name) {
  return std::find_if(links.begin(), links.end(), [&](const std::string& link) {
    return scenarios::NamesLink(name, link);
  });
}

bool Uses(const sim::ReplayTasks& run, const sim::ReplayTasks::Flow& flow,
          const std::string& link) {
  const std::vector<std::string>& names = run.pair_links[flow.pair];
  return link.empty() || FindLink(names, link) != names.end();
}

// Returns the flows in the order in which they start without jitter.
std::vector<sim::ReplayTasks::Flow> FlowsByStart(const sim::ReplayTasks& run) {
  const size_t num_tasks = run.seconds.size();
  std::vector<double> start(num_tasks, 0), end(num_tasks, 0);
  for (size_t task = 0; task < num_tasks; ++task) {
    for (int32_t b = run.first_before[task]; b < run.first_before[task + 1];
         ++b) {
      start[task] = std::max(start[task], end[run.before[b]]);
    }
    end[task] = start[task] + run.seconds[task];
  }
  std::vector<sim::ReplayTasks::Flow> flows = run.flows;
  std::stable_sort(flows.begin(), flows.end(),
                   [&](const auto& a, const auto& b) {
                     return start[a.task] < start[b.task];
                   });
  return flows;
}

// A random value of a task.
struct Draw {
  enum class Kind : uint8_t {
    kFactor,  // multiplies the seconds
    kAdds,    // is added to them
    kPart,    // multiplies `part` of them
  };
  uint64_t key;
  const double* quantiles;
  uint32_t num_quantiles = kJitterQuantiles;
  Kind kind = Kind::kFactor;
  double part = 1;
};

class Sampler {
 public:
  Sampler(const sim::ReplayTasks& run, const JitterRequest& request)
      : run_(run),
        request_(request),
        seconds_(run.seconds),
        first_draw_(run.seconds.size() + 1, 0) {
    for (const JitterSource& source : request.sources) {
      tables_.push_back(IsRandom(source) && source.kind != Kind::kRecorded
                            ? FactorQuantiles(source, kJitterQuantiles)
                            : std::vector<double>());
    }
    std::vector<std::vector<Draw>> draws(run.seconds.size());
    for (const sim::ReplayTasks::Pass& pass : run.passes) {
      AddPass(pass, &draws[pass.task]);
    }
    AddFlows(&draws);
    AddStep();
    for (size_t task = 0; task < draws.size(); ++task) {
      first_draw_[task + 1] =
          first_draw_[task] + static_cast<int32_t>(draws[task].size());
      draws_.insert(draws_.end(), draws[task].begin(), draws[task].end());
    }
  }

  // Computes the step times of samples [first, first + kWidth).
  std::array<double, kWidth> Run(uint64_t first,
                                 std::vector<double>* ends) const {
    std::array<double, kWidth> last{};
    double* end = ends->data();
    for (size_t task = 0; task < seconds_.size(); ++task) {
      std::array<double, kWidth> begin{};
      for (int32_t b = run_.first_before[task]; b < run_.first_before[task + 1];
           ++b) {
        const double* other = end + size_t{kWidth} * run_.before[b];
        for (int k = 0; k < kWidth; ++k) {
          begin[k] = begin[k] < other[k] ? other[k] : begin[k];
        }
      }
      std::array<double, kWidth> seconds;
      seconds.fill(seconds_[task]);
      for (int32_t d = first_draw_[task]; d < first_draw_[task + 1]; ++d) {
        Apply(draws_[d], first, &seconds);
      }
      double* own = end + kWidth * task;
      for (int k = 0; k < kWidth; ++k) {
        own[k] = begin[k] + seconds[k];
        last[k] = last[k] < own[k] ? own[k] : last[k];
      }
    }
    const auto last_of = [&](const std::vector<int32_t>& tasks, int k) {
      double seconds = 0;
      for (const int32_t task : tasks) {
        seconds = std::max(seconds, end[size_t{kWidth} * task + k]);
      }
      return seconds;
    };
    std::array<double, kWidth> steps;
    for (int k = 0; k < kWidth; ++k) {
      const double begins = last_of(run_.begin_tasks, k);
      const double ends_at =
          run_.end_tasks.empty() ? last[k] : last_of(run_.end_tasks, k);
      steps[k] = (ends_at - begins) / run_.num_batches + run_.rollback_seconds;
    }
    for (const Draw& draw : step_draws_) Apply(draw, first, &steps);
    return steps;
  }

 private:
  static constexpr int kIndexBits = 16;

  static size_t Index(uint64_t key, uint64_t sample) {
    static_assert(kJitterQuantiles == 1 << kIndexBits);
    return SplitMix(key + kSplitMixStep * (sample + 1)) >> (64 - kIndexBits);
  }

  static void Apply(const Draw& draw, uint64_t first,
                    std::array<double, kWidth>* seconds) {
    for (int k = 0; k < kWidth; ++k) {
      const uint64_t quantile = Index(draw.key, first + k);
      const double value =
          draw.quantiles[quantile * draw.num_quantiles >> kIndexBits];
      switch (draw.kind) {
        case Draw::Kind::kFactor:
          (*seconds)[k] *= value;
          break;
        case Draw::Kind::kAdds:
          (*seconds)[k] += value;
          break;
        case Draw::Kind::kPart:
          (*seconds)[k] *= 1 + draw.part * (value - 1);
          break;
      }
    }
  }

  uint64_t SeedOf(size_t source) const {
    return Combine(Combine(0, request_.seed), static_cast<int64_t>(source));
  }

  Draw DrawOf(size_t source, uint64_t key) const {
    Draw draw{key, tables_[source].data()};
    if (AddsSeconds(request_.sources[source])) draw.kind = Draw::Kind::kAdds;
    return draw;
  }

  void AddFlows(std::vector<std::vector<Draw>>* draws) {
    for (size_t s = 0; s < request_.sources.size(); ++s) {
      const JitterSource& source = request_.sources[s];
      if (source.target != Target::kLink) continue;
      if (source.kind == Kind::kPeriodic) {
        AddPeriodic(source);
        continue;
      }
      for (const sim::ReplayTasks::Flow& flow : run_.flows) {
        if (!Uses(run_, flow, source.link)) continue;
        if (!IsRandom(source)) {
          seconds_[flow.task] *= source.parameter;
          continue;
        }
        uint64_t key = SeedOf(s);
        for (const int32_t part : {flow.from, flow.to, flow.number}) {
          key = Combine(key, part);
        }
        (*draws)[flow.task].push_back(DrawOf(s, key));
      }
    }
  }

  // Counts transfers over a link, or between two GPUs, as they start without
  // jitter.
  void AddPeriodic(const JitterSource& source) {
    std::map<std::string, uint32_t> of_link;
    std::map<std::pair<int32_t, int32_t>, uint32_t> of_pair;
    for (const sim::ReplayTasks::Flow& flow : FlowsByStart(run_)) {
      if (!Uses(run_, flow, source.link)) continue;
      uint32_t& count =
          source.link.empty()
              ? of_pair[{flow.from, flow.to}]
              : of_link[*FindLink(run_.pair_links[flow.pair], source.link)];
      if (++count % source.period == 0) seconds_[flow.task] *= source.parameter;
    }
  }

  void AddStep() {
    for (size_t s = 0; s < request_.sources.size(); ++s) {
      if (request_.sources[s].target != Target::kStep) continue;
      step_draws_.push_back(DrawOf(s, SeedOf(s)));
    }
  }

  // Costs with one entry are those of every stage.
  static auto FindRecorded(const JitterSource& source,
                           const schedules::Action& action) {
    const int stage = source.recorded_stages == 1 ? 0 : action.stage;
    return source.recorded.find({stage, action.op});
  }

  // Counts the passes of a GPU, or of a stage on it, in their order.
  bool IsEveryPeriod(const JitterSource& source, size_t s,
                     const sim::ReplayTasks::Pass& pass) {
    const int32_t stage =
        source.target == Target::kStage ? pass.action.stage : -1;
    return ++num_passes_[{s, pass.gpu, stage}] % source.period == 0;
  }

  void AddPass(const sim::ReplayTasks::Pass& pass, std::vector<Draw>* draws) {
    for (size_t s = 0; s < request_.sources.size(); ++s) {
      const JitterSource& source = request_.sources[s];
      if (!Applies(source, pass)) continue;
      if (IsRandom(source)) {
        Draw draw = DrawOf(s, KeyOf(source, SeedOf(s), pass));
        if (source.kind == Kind::kRecorded) {
          const auto found = FindRecorded(source, pass.action);
          if (found == source.recorded.end()) continue;
          draw.quantiles = found->second.data();
          draw.num_quantiles = static_cast<uint32_t>(found->second.size());
        }
        if (source.target == Target::kSequences) {
          if (pass.attention_part == 0) continue;
          draw.kind = Draw::Kind::kPart;
          draw.part = pass.attention_part;
        }
        draws->push_back(draw);
      } else if (source.kind == Kind::kConstant ||
                 IsEveryPeriod(source, s, pass)) {
        seconds_[pass.task] *= source.parameter;
      }
    }
  }

  const sim::ReplayTasks& run_;
  const JitterRequest& request_;
  std::vector<double> seconds_;  // [task], with factors that are not random
  std::vector<int32_t> first_draw_;
  std::vector<Draw> draws_;
  std::vector<Draw> step_draws_;
  std::vector<std::vector<double>> tables_;  // [source]
  // Counts passes for periodic sources, by source, GPU and stage (-1: all).
  std::map<std::tuple<size_t, int32_t, int32_t>, uint32_t> num_passes_;
};

}  // namespace

std::vector<double> SampleStepSeconds(
    const sim::ReplayTasks& run, const JitterRequest& request,
    const std::function<void(double)>& progress) {
  const Sampler sampler(run, request);
  const size_t num_samples = request.num_samples;
  std::vector<double> steps(num_samples);
  const size_t num_batches = (num_samples + kWidth - 1) / kWidth;
  std::atomic<size_t> next = 0;
  const auto work = [&](bool shows) {
    std::vector<double> ends(kWidth * run.seconds.size());
    for (size_t batch = next++; batch < num_batches; batch = next++) {
      const auto seconds = sampler.Run(batch * kWidth, &ends);
      for (size_t k = 0; k < kWidth && batch * kWidth + k < num_samples; ++k) {
        steps[batch * kWidth + k] = seconds[k];
      }
      if (shows && progress) {
        progress(static_cast<double>(batch) / static_cast<double>(num_batches));
      }
    }
  };
  const double bytes =
      8.0 * kWidth *
      static_cast<double>(std::max<size_t>(run.seconds.size(), 1));
  const auto fitting = static_cast<size_t>(std::max(kMaxBytes / bytes, 1.0));
  const size_t num_threads =
      std::min({num_batches, fitting,
                size_t{std::clamp(std::thread::hardware_concurrency(), 1U,
                                  kMaxThreads)}});
  std::vector<std::thread> threads;
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work, false);
  work(true);
  for (std::thread& thread : threads) thread.join();
  return steps;
}

absl::Status CheckSources(const sim::ReplayTasks& run,
                          const std::vector<JitterSource>& sources) {
  for (const JitterSource& source : sources) {
    if (source.target == Target::kStep) continue;
    if (source.target == Target::kLink) {
      if (std::any_of(run.flows.begin(), run.flows.end(),
                      [&](const sim::ReplayTasks::Flow& flow) {
                        return Uses(run, flow, source.link);
                      })) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "command line: --jitter is ", source.text, ", but no transfer uses ",
          source.link.empty() ? "links" : "this link",
          run.flows.empty() ? ": given costs have none"
                            : absl::StrCat(", expected one such as ",
                                           run.pair_links[0].back())));
    }
    if (source.target == Target::kSequences) {
      if (std::any_of(run.passes.begin(), run.passes.end(),
                      [](const sim::ReplayTasks::Pass& pass) {
                        return pass.attention_part > 0;
                      })) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("command line: --jitter is ", source.text,
                       ", but no pass has fused attention"));
    }
    int32_t largest = -1;
    bool found = source.only < 0;
    for (const sim::ReplayTasks::Pass& pass : run.passes) {
      found |= Applies(source, pass);
      largest =
          std::max(largest, source.target == Target::kGpu ? pass.gpu
                                                          : pass.action.stage);
    }
    if (found) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --jitter is ", source.text, ", expected a ",
                     source.target == Target::kGpu ? "GPU" : "stage",
                     " from 0 to ", largest));
  }
  return absl::OkStatus();
}

JitterStatistics StatisticsOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  JitterStatistics statistics;
  for (const double value : values) statistics.mean += value / n;
  double variance = 0;
  for (const double value : values) {
    variance += (value - statistics.mean) * (value - statistics.mean) / n;
  }
  statistics.standard_error = std::sqrt(variance / n);
  statistics.median = QuantileOfSorted(values, 0.5);
  statistics.percentile_95 = QuantileOfSorted(values, 0.95);
  statistics.percentile_99 = QuantileOfSorted(values, 0.99);
  statistics.largest = values.back();
  return statistics;
}

}  // namespace weir::plan
