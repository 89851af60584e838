// SPDX-License-Identifier: Apache-2.0
#include "results/import/unlinked_clocks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/quantiles.h"
#include "base/units.h"
#include "results/import/worker_names.h"

namespace weir::results {
namespace {

constexpr double kLeastOverlap = 0.5;

// When a set of workers runs a step.
struct StepRange {
  double start = kInfinity, end = -kInfinity;

  double seconds() const { return end - start; }
};

bool IsApart(const StepRange& range, const StepRange& other, double shift) {
  const double overlap = std::min(range.end + shift, other.end) -
                         std::max(range.start + shift, other.start);
  return overlap < kLeastOverlap * std::min(range.seconds(), other.seconds());
}

std::string NameOfSet(const RecordedRun& run, const std::vector<int>& clocks) {
  const int replica = clocks[0] / run.num_ranks;
  const bool is_replica = static_cast<int>(clocks.size()) == run.num_ranks &&
                          clocks.back() / run.num_ranks == replica;
  return is_replica ? absl::StrCat("replica ", replica)
                    : NamedClocks(run, clocks);
}

class UnlinkedSets {
 public:
  UnlinkedSets(const RecordedRun& run, const std::vector<RecordedStep>& steps,
               const std::vector<std::vector<int>>& sets)
      : run_(run), sets_(sets), num_steps_(steps.size()) {
    std::vector<int> set_of(int64_t{run.num_replicas} * run.num_ranks);
    for (size_t set = 0; set < sets.size(); ++set) {
      for (const int clock : sets[set]) set_of[clock] = static_cast<int>(set);
    }
    ranges_.assign(sets.size(), std::vector<StepRange>(num_steps_));
    for (size_t i = 0; i < num_steps_; ++i) {
      for (const auto* o = steps[i].begin; o != steps[i].end; ++o) {
        StepRange& range =
            ranges_[set_of[o->replica * run.num_ranks + o->rank]][i];
        range.start = std::min(range.start, o->start_seconds);
        range.end = std::max(range.end, o->end_seconds);
      }
    }
    reference_ = FindReference();
  }

  std::string Align(ClockMoves* moves) {
    for (size_t set = 0; set < sets_.size(); ++set) {
      if (static_cast<std::ptrdiff_t>(set) == reference_) continue;
      AlignSet(set, moves);
    }
    if (aligned_.empty()) return "";
    const size_t num_aligned = aligned_.size();
    return absl::StrCat(
        "no recorded message or collective links ",
        NameOfSet(run_, sets_[reference_]), " to ",
        num_aligned == 1 ? "" : absl::StrCat(num_aligned, " other groups: "),
        Named(aligned_), ", and their steps are up to ",
        FormatSeconds(apart_seconds_), " apart");
  }

  bool in_all_steps() const { return in_all_steps_; }

 private:
  // Returns the set that other sets agree with: the one that most often starts
  // a step at the median of all workers.
  std::ptrdiff_t FindReference() const {
    std::vector<size_t> votes(sets_.size());
    std::vector<size_t> by_start(sets_.size());
    for (size_t i = 0; i < num_steps_; ++i) {
      std::iota(by_start.begin(), by_start.end(), 0);
      std::sort(by_start.begin(), by_start.end(), [&](size_t a, size_t b) {
        return std::make_pair(ranges_[a][i].start, a) <
               std::make_pair(ranges_[b][i].start, b);
      });
      size_t num_all = 0, num_before = 0;
      for (const auto& set : sets_) num_all += set.size();
      for (size_t at = 0; at < by_start.size(); ++at) {
        num_before += sets_[by_start[at]].size();
        if (2 * num_before < num_all) continue;
        // The median may be between two sets.
        const bool is_between = 2 * num_before == num_all;
        ++votes[is_between ? std::min(by_start[at], by_start[at + 1])
                           : by_start[at]];
        break;
      }
    }
    return std::max_element(votes.begin(), votes.end()) - votes.begin();
  }

  void AlignSet(size_t set, ClockMoves* moves) {
    const std::vector<StepRange>& ranges = ranges_[set];
    if (!IsMostlyApart(ranges, 0)) return;
    std::vector<double> differences;
    for (size_t i = 0; i < num_steps_; ++i) {
      differences.push_back(ranges_[reference_][i].start - ranges[i].start);
      apart_seconds_ = std::max(apart_seconds_, std::abs(differences.back()));
    }
    const double median = LowerMedian(differences);
    const bool is_constant = !run_.has_clock_of_step &&
                             !IsMostlyApart(ranges, median) &&
                             !MovesApart(ranges, median);
    in_all_steps_ = in_all_steps_ && is_constant;
    for (size_t i = 0; i < num_steps_; ++i) {
      if (!is_constant && !IsApart(ranges[i], ranges_[reference_][i], 0)) {
        continue;
      }
      for (const int clock : sets_[set]) {
        moves->Add(i, clock, is_constant ? median : differences[i]);
      }
    }
    aligned_.push_back(NameOfSet(run_, sets_[set]));
  }

  // Returns whether the shift moves a step apart that was not.
  bool MovesApart(const std::vector<StepRange>& ranges, double shift) const {
    for (size_t i = 0; i < num_steps_; ++i) {
      if (IsApart(ranges[i], ranges_[reference_][i], shift) &&
          !IsApart(ranges[i], ranges_[reference_][i], 0)) {
        return true;
      }
    }
    return false;
  }

  bool IsMostlyApart(const std::vector<StepRange>& ranges, double shift) const {
    size_t count = 0;
    for (size_t i = 0; i < num_steps_; ++i) {
      count += IsApart(ranges[i], ranges_[reference_][i], shift) ? 1 : 0;
    }
    return 2 * count > num_steps_;
  }

  const RecordedRun& run_;
  const std::vector<std::vector<int>>& sets_;
  const size_t num_steps_;
  std::vector<std::vector<StepRange>> ranges_;  // [set][step]
  std::ptrdiff_t reference_ = 0;
  std::vector<std::string> aligned_;
  double apart_seconds_ = 0;
  bool in_all_steps_ = true;
};

}  // namespace

std::string AlignUnlinked(const RecordedRun& run,
                          const std::vector<RecordedStep>& steps,
                          const std::vector<std::vector<int>>& sets,
                          ClockMoves* moves) {
  if (sets.size() < 2) return "";
  UnlinkedSets unlinked(run, steps, sets);
  const std::string why = unlinked.Align(moves);
  if (why.empty()) return "";
  return absl::StrCat(
      why, ": their clocks differ. All times are moved ",
      unlinked.in_all_steps() ? "in all steps" : "within each step", " by ",
      moves->Text(run), ". Assumed: all groups start a step at the same time",
      unlinked.in_all_steps() ? " (in the median step)" : "",
      "; clocks of groups most of whose steps overlap are not changed");
}

}  // namespace weir::results
