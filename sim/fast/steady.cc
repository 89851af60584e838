// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/steady.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace weir::sim {
namespace {

// Relative to a period, and an order of magnitude below the permitted error:
// the error of n periods is n times that of one. Longer periods are held to a
// tenth of it, down to the engine's own precision.
constexpr double kTolerance = 1e-10;
constexpr double kEngineSeconds = 3e-12;

// Largest multiple of the order's period that is tried as the times' period.
constexpr int kMostMultiples = 64;

// Candidates for the time T, in periods before the last period begins. If an
// event coincides with one of them, the next one is tried.
constexpr double kTimes[] = {0.0137, 0.0731, 0.1931, 0.3119, 0.4583, 0.6391};

// The times of all tasks, in blocks of consecutive tasks. Those of a block are
// mostly of one GPU and of nearby times, so few blocks are in an interval.
class TaskTimes {
 public:
  explicit TaskTimes(const Recording& recording)
      : start_(recording.start_seconds()), end_(recording.end_seconds()) {
    for (int32_t begin = 0; begin < num_tasks(); begin += kBlockTasks) {
      const int32_t end = std::min(begin + kBlockTasks, num_tasks());
      double first = start_[begin], last = end_[begin];
      for (int32_t task = begin; task < end; ++task) {
        first = std::min(first, start_[task]);
        last = std::max(last, end_[task]);
      }
      blocks_.push_back({begin, end, first, last});
    }
  }

  double start(int32_t task) const { return start_[task]; }
  double end(int32_t task) const { return end_[task]; }

  // Calls visit(task) for all tasks that start until `until_seconds` and end
  // at `from_seconds` or later, and for some others.
  template <typename Visit>
  void VisitTasks(double from_seconds, double until_seconds,
                  const Visit& visit) const {
    for (const Block& block : blocks_) {
      if (block.first_start_seconds > until_seconds ||
          block.last_end_seconds < from_seconds) {
        continue;
      }
      for (int32_t task = block.begin; task < block.end; ++task) visit(task);
    }
  }

 private:
  static constexpr int32_t kBlockTasks = 64;

  struct Block {
    int32_t begin, end;
    double first_start_seconds, last_end_seconds;
  };

  int32_t num_tasks() const { return static_cast<int32_t>(start_.size()); }

  const std::span<const double> start_, end_;
  std::vector<Block> blocks_;
};

// Copies of tasks a period later.
class Copies {
 public:
  explicit Copies(int32_t num_tasks)
      : copy_of_(num_tasks, kNone), is_copy_(num_tasks) {}

  static constexpr int32_t kNone = -1;

  // Returns kNone if it is unknown.
  int32_t Of(int32_t task) const { return copy_of_[task]; }

  // Returns false if one of them already has another copy.
  bool Pair(int32_t task, int32_t copy) {
    if (copy_of_[task] == copy && is_copy_[copy]) return true;
    if (copy_of_[task] >= 0 || is_copy_[copy]) return false;
    copy_of_[task] = copy;
    is_copy_[copy] = true;
    paired_.push_back(task);
    return true;
  }

  // Tasks with a copy, in the order of the calls of Pair().
  const std::vector<int32_t>& paired() const { return paired_; }

  void Clear() {
    for (const int32_t task : paired_) {
      is_copy_[copy_of_[task]] = false;
      copy_of_[task] = kNone;
    }
    paired_.clear();
  }

 private:
  std::vector<int32_t> copy_of_;
  std::vector<bool> is_copy_;
  std::vector<int32_t> paired_;
};

// One stretch, and the search for a period of its times.
class StretchTimes {
 public:
  // `copies`: used by one stretch after another.
  StretchTimes(const ShortenedSchedule& shortened, int stretch,
               const PipelineGraph& graph, const TaskTimes& times,
               Copies* copies)
      : stretches_(shortened.stretches),
        stretch_(stretch),
        graph_(graph),
        tasks_(graph.tasks),
        times_(times),
        copies_(*copies) {
    for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
      const Stretch& of = Of(gpu);
      for (int32_t i = 0; i < of.period_actions; ++i) {
        begin_seconds_ = std::max(
            begin_seconds_, times_.end(graph.ActionEnd(gpu, of.first + i)));
        end_seconds_ =
            std::min(end_seconds_, times_.start(graph.ActionTask(
                                       gpu, of.end - of.period_actions + i)));
      }
    }
  }

  std::optional<Steadiness::Cut> Find() {
    for (int multiple = 1; multiple <= kMostMultiples; ++multiple) {
      multiple_ = multiple;
      if (!(SetPeriod() && period_ > 0 &&
            begin_seconds_ < end_seconds_ - period_)) {
        return std::nullopt;
      }
      if (!LatestRepeat() || !MapTasks()) continue;
      for (double part : kTimes) {
        const double time_seconds = end_seconds_ - part * period_ / multiple_;
        if (time_seconds - period_ > begin_seconds_ &&
            IsSteadyAt(time_seconds)) {
          return Steadiness::Cut{time_seconds, period_ / multiple_, multiple_};
        }
      }
    }
    return std::nullopt;
  }

 private:
  const Stretch& Of(int gpu) const {
    return stretches_[graph_.rank_of(gpu)][stretch_];
  }

  // Returns the last action of the stretch that begins before the last period
  // does on any GPU; -1 if it has no copy a period before.
  int32_t Latest(int gpu) const {
    const Stretch& of = Of(gpu);
    int32_t i = of.end - of.period_actions - 1;
    while (i >= of.first &&
           times_.start(graph_.ActionTask(gpu, i)) >= end_seconds_) {
      --i;
    }
    return i - multiple_ * of.period_actions >= of.first ? i : -1;
  }
  double Distance(int gpu, int32_t i) const {
    const int32_t before = i - multiple_ * Of(gpu).period_actions;
    return times_.start(graph_.ActionTask(gpu, i)) -
           times_.start(graph_.ActionTask(gpu, before));
  }
  double ToleranceSeconds() const {
    return std::min(kTolerance * period_,
                    std::max(0.1 * kTolerance * period_, kEngineSeconds));
  }
  bool IsPeriod(double seconds) const {
    return std::fabs(seconds - period_) <= ToleranceSeconds();
  }

  bool SetPeriod() {
    const int32_t latest = Latest(0);
    if (latest < 0) return false;
    period_ = Distance(0, latest);
    return true;
  }

  bool LatestRepeat() const {
    for (int gpu = 0; gpu < graph_.num_gpus(); ++gpu) {
      const int32_t latest = Latest(gpu);
      if (latest < 0 || !IsPeriod(Distance(gpu, latest))) return false;
    }
    return true;
  }

  bool IsAlike(int32_t task, int32_t copy) const {
    return tasks_.is_timer(task) == tasks_.is_timer(copy) &&
           (tasks_.is_timer(task) || tasks_.pair(task) == tasks_.pair(copy)) &&
           tasks_.amount(task) == tasks_.amount(copy);
  }

  // Maps actions to their copies by position, and dependent tasks along the
  // edges.
  bool MapTasks() {
    copies_.Clear();
    for (int gpu = 0; gpu < graph_.num_gpus(); ++gpu) {
      const Stretch& of = Of(gpu);
      const int32_t shift = multiple_ * of.period_actions;
      for (int32_t i = of.first; i + shift < of.end; ++i) {
        const int32_t task = graph_.ActionTask(gpu, i);
        if (!IsAlike(task, task + shift)) return false;
        copies_.Pair(task, task + shift);
      }
    }
    for (size_t next = 0; next < copies_.paired().size(); ++next) {
      if (!MapSuccessors(copies_.paired()[next])) return false;
    }
    return true;
  }

  bool MapSuccessors(int32_t task) {
    const auto here = tasks_.successors(task);
    const auto there = tasks_.successors(copies_.Of(task));
    // At the end of a stretch other tasks may wait for the copy.
    if (here.size() != there.size()) return true;
    for (size_t i = 0; i < here.size(); ++i) {
      const bool is_action = here[i] < graph_.ranges.end_of_actions;
      if (is_action != (there[i] < graph_.ranges.end_of_actions)) return true;
      if (!is_action && !IsAlike(here[i], there[i])) return true;
    }
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i] >= graph_.ranges.end_of_actions) {
        if (!copies_.Pair(here[i], there[i])) return false;
      } else if (const int32_t copy = copies_.Of(here[i]);
                 copy >= 0 && copy != there[i]) {
        return false;
      }
    }
    return true;
  }

  // See the proof in the header.
  bool IsSteadyAt(double time_seconds) const {
    const double before = time_seconds - period_;
    const double margin = 8 * ToleranceSeconds();
    const auto is_near = [&](double seconds) {
      return std::fabs(seconds - before) <= margin ||
             std::fabs(seconds - time_seconds) <= margin;
    };
    double first = before;  // T0
    bool has_near = false;
    times_.VisitTasks(before - margin, time_seconds + margin, [&](int32_t i) {
      const double start = times_.start(i), end = times_.end(i);
      if (is_near(start) || is_near(end)) has_near = true;
      if (start < first && end > before) first = start;
    });
    if (has_near) return false;
    int64_t num_here = 0, num_there = 0;
    bool repeats = true;
    times_.VisitTasks(first + margin, time_seconds, [&](int32_t i) {
      const double start = times_.start(i), end = times_.end(i);
      if (start < time_seconds && end > first + period_ + margin) ++num_there;
      if (!(start < before && end > first + margin)) return;
      ++num_here;
      const int32_t copy = copies_.Of(i);
      if (copy == Copies::kNone || !IsPeriod(times_.start(copy) - start) ||
          !IsPeriod(times_.end(copy) - end)) {
        repeats = false;
      }
    });
    return repeats && num_here == num_there;
  }

  const std::vector<std::vector<Stretch>>& stretches_;
  const int stretch_;
  const PipelineGraph& graph_;
  const TaskGraph& tasks_;
  const TaskTimes& times_;
  Copies& copies_;
  double begin_seconds_ = 0;  // all have ended their first period
  double end_seconds_ = std::numeric_limits<double>::infinity();
  int multiple_ = 1;
  double period_ = 0;  // sum of `multiple_` periods
};

}  // namespace

std::optional<Steadiness> FindSteadiness(const ShortenedSchedule& shortened,
                                         const PipelineGraph& graph,
                                         const Recording& recording,
                                         int* period_multiple) {
  if (period_multiple != nullptr) *period_multiple = 0;
  if (!recording.complete()) return std::nullopt;
  const TaskTimes times(recording);
  Copies copies(graph.tasks.num_tasks());
  Steadiness steadiness;
  int multiple = 1;
  const auto num_stretches = static_cast<int>(shortened.stretches[0].size());
  for (int k = 0; k < num_stretches; ++k) {
    const std::optional<Steadiness::Cut> cut =
        StretchTimes(shortened, k, graph, times, &copies).Find();
    if (!cut.has_value()) return std::nullopt;
    multiple = std::lcm(multiple, cut->period_multiple);
    steadiness.cuts.push_back(*cut);
    steadiness.seconds_left_out +=
        shortened.num_periods_left_out * cut->period_seconds;
  }
  if (shortened.num_periods_left_out % multiple != 0) {
    if (period_multiple != nullptr) *period_multiple = multiple;
    return std::nullopt;
  }
  return steadiness;
}

std::optional<double> SecondsLeftOut(const ShortenedSchedule& shortened,
                                     const PipelineGraph& graph,
                                     const Recording& recording) {
  const auto steadiness = FindSteadiness(shortened, graph, recording);
  if (!steadiness.has_value()) return std::nullopt;
  return steadiness->seconds_left_out;
}

double PeakBytesOfAll(const MemoryTimeline& timeline,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness) {
  // Bytes added by the periods that are inserted before a sample.
  double added = 0, peak = 0;
  size_t next = 0;
  const std::vector<MemorySample>& samples = timeline.samples;
  const auto bytes_at = [&](double seconds) {
    const auto after = std::upper_bound(
        samples.begin(), samples.end(), seconds,
        [](double at, const MemorySample& one) { return at < one.seconds; });
    return after == samples.begin() ? timeline.floor_bytes
                                    : std::prev(after)->bytes;
  };
  for (const MemorySample& sample : samples) {
    for (; next < steadiness.cuts.size() &&
           steadiness.cuts[next].at_seconds < sample.seconds;
         ++next) {
      const Steadiness::Cut& cut = steadiness.cuts[next];
      const double begin =
          cut.at_seconds - cut.period_multiple * cut.period_seconds;
      const double growth = (bytes_at(cut.at_seconds) - bytes_at(begin)) *
                            shortened.num_periods_left_out /
                            cut.period_multiple;
      added += growth;
      // Memory changes by the same amount from each inserted period to the
      // next, so the peak is in the last simulated period, which was counted,
      // or in the last inserted one.
      for (const MemorySample& one : samples) {
        if (one.seconds <= begin || one.seconds > cut.at_seconds) continue;
        peak = std::max(peak, one.bytes + added);
      }
    }
    peak = std::max(peak, sample.bytes + added);
  }
  return std::max(peak, timeline.floor_bytes);
}

}  // namespace weir::sim
