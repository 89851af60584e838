// SPDX-License-Identifier: Apache-2.0
// The rounds of the search: bounds of shapes, bounds of candidates, runs.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "plan/search/best_first.h"

namespace weir::plan {
namespace {

constexpr size_t kRoundBounds = 128;
constexpr size_t kRoundRanks = 16;
// The same on many GPUs, where bounds take long, and for a first plan.
constexpr size_t kSmallRoundBounds = 16;
constexpr size_t kSmallRoundRanks = 4;
// Small rounds of bounds in succession, after which one of runs follows even if
// entries with lower bounds are left: the time of a plan then prunes them.
constexpr int kMostRoundsOfBounds = 4;

// Adds the wall time of its life to `sum`.
class Stopwatch {
 public:
  explicit Stopwatch(double* sum) : sum_(sum) {}
  ~Stopwatch() {
    *sum_ += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* sum_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

absl::StatusOr<bool> BestFirst::Round() {
  const bool forced = small_rounds_ && rounds_of_bounds_ >= kMostRoundsOfBounds;
  const std::vector<Entry> taken =
      open_.NextRound(small_rounds_ ? kSmallRoundBounds : kRoundBounds,
                      small_rounds_ ? kSmallRoundRanks : kRoundRanks, forced,
                      [this](const Entry& entry) { return IsBeaten(entry); });
  if (taken.empty()) return false;
  std::vector<Entry> work[3];  // by state
  std::vector<Entry> variants;
  for (const Entry& entry : taken) {
    if (entry.is_estimated) {
      work[static_cast<int>(entry.state)].push_back(entry);
    } else {
      variants.push_back(entry);
    }
  }
  if (options_.progress) {
    num_open_ = threshold_.has_value() ? open_.CountBelow(*threshold_)
                                       : std::array<uint64_t, 3>{};
  }
  for (size_t i = 0; i < num_done_.size(); ++i) num_done_[i] += work[i].size();
  absl::Status status = EstimateVariants(variants);
  if (status.ok()) {
    variants.clear();
    const Stopwatch watch(&done_seconds_[0]);
    status = Expand(work[0]);
  }
  if (status.ok()) {
    work[0].clear();
    const Stopwatch watch(&done_seconds_[1]);
    status = Bound(work[1]);
  }
  if (status.ok()) {
    work[1].clear();
    const Stopwatch watch(&done_seconds_[2]);
    const uint64_t num_before = num_ranked_;
    const bool ranks = !work[2].empty();
    status = Rank(&work[2]);
    if (ranks) {
      // Runs that are out of turn cost no patience.
      if (forced) improved_at_ += num_ranked_ - num_before;
      improved_at_ = std::min(improved_at_, num_ranked_);
    }
    rounds_of_bounds_ = ranks ? 0 : rounds_of_bounds_ + 1;
  }
  if (status.ok()) {
    ReportImprovement();
    return true;
  }
  for (const Entry& entry : variants) open_.Insert(entry);
  for (const std::vector<Entry>& left : work) {
    for (const Entry& entry : left) open_.Insert(entry);
  }
  return status;
}

void BestFirst::AddBounds(const SearchEstimate& estimate, Entry* entry) {
  entry->lower_bound_seconds =
      std::max(entry->lower_bound_seconds, estimate.order_free_seconds());
  entry->seconds = std::max(
      {entry->seconds, estimate.seconds(), entry->lower_bound_seconds});
  entry->bytes = std::max(entry->bytes, estimate.bytes());
  entry->state = State::kBounded;
}

absl::Status BestFirst::Expand(const std::vector<Entry>& shapes) {
  // Only the first schedule with each bound key is bounded, for all that share
  // it.
  std::vector<Entry> representatives;
  std::vector<bool> is_shared;  // by representative
  for (const Entry& entry : shapes) {
    const auto& schedules = SchedulesOf(entry.shape);
    const std::vector<char>& legal = LegalOf(entry.shape);
    std::map<std::string, size_t> seen;
    for (size_t s = 0; s < schedules.size(); ++s) {
      if (!legal[s] || schedules[s].bound_key.empty()) continue;
      const auto [at, is_new] =
          seen.try_emplace(schedules[s].bound_key, representatives.size());
      if (!is_new) {
        is_shared[at->second] = true;
        continue;
      }
      representatives.push_back(entry);
      representatives.back().schedule = static_cast<int>(s);
      is_shared.push_back(!schedules[s].bound_proxy.empty());
    }
  }
  // One that does not fit needs no bound on the time, unless others use it.
  std::vector<SearchEstimate> estimates(representatives.size());
  for (const bool shared : {true, false}) {
    std::vector<Scenario> scenarios;
    for (size_t i = 0; i < representatives.size(); ++i) {
      if (is_shared[i] != shared) continue;
      const Entry& entry = representatives[i];
      scenarios.push_back(ScenarioOf(entry));
      const PlannedSchedule& schedule =
          SchedulesOf(entry.shape)[entry.schedule];
      if (!schedule.bound_proxy.empty()) {
        scenarios.back().set_schedule(schedule.bound_proxy);
      }
    }
    ASSIGN_OR_RETURN(
        std::vector<SearchEstimate> some,
        workers_->Bounds(scenarios, shared ? kInfinity : LimitOfBounds()));
    for (size_t i = 0, next = 0; i < representatives.size(); ++i) {
      if (is_shared[i] == shared) estimates[i] = std::move(some[next++]);
    }
  }
  struct Known {
    double seconds = 0;                                 // for every order
    const SearchEstimate* of_representative = nullptr;  // its own bounds
    int representative = -1;
  };
  std::map<std::pair<int, std::string>, Known> known_bounds;
  for (size_t i = 0; i < representatives.size(); ++i) {
    const int shape = representatives[i].shape;
    const PlannedSchedule& schedule =
        SchedulesOf(shape)[representatives[i].schedule];
    Known& known = known_bounds[{shape, schedule.bound_key}];
    known.seconds = estimates[i].order_free_seconds();
    if (schedule.bound_proxy.empty() && estimates[i].problem().empty()) {
      known.of_representative = &estimates[i];
      known.representative = representatives[i].schedule;
    }
  }
  for (const Entry& entry : shapes) {
    const auto& schedules = SchedulesOf(entry.shape);
    const std::vector<char>& legal = LegalOf(entry.shape);
    for (size_t s = 0; s < schedules.size(); ++s) {
      if (!legal[s] || IsSeeded(entry.shape, static_cast<int>(s))) continue;
      Entry one = entry;
      one.schedule = static_cast<int>(s);
      one.state = State::kCandidate;
      const auto at = known_bounds.find({entry.shape, schedules[s].bound_key});
      if (at != known_bounds.end()) {
        const Known& known = at->second;
        one.seconds = std::max(one.seconds, known.seconds);
        one.lower_bound_seconds = one.seconds;
        if (known.representative == one.schedule)
          AddBounds(*known.of_representative, &one);
      }
      Push(one);
    }
  }
  return absl::OkStatus();
}

absl::Status BestFirst::Bound(const std::vector<Entry>& candidates) {
  std::vector<Scenario> scenarios;
  for (const Entry& entry : candidates) scenarios.push_back(ScenarioOf(entry));
  ASSIGN_OR_RETURN(const auto estimates,
                   workers_->Bounds(scenarios, LimitOfBounds()));
  for (size_t i = 0; i < candidates.size(); ++i) {
    Entry entry = candidates[i];
    if (!estimates[i].problem().empty()) {
      Invalid(estimates[i].problem(), 1);
      continue;
    }
    AddBounds(estimates[i], &entry);
    Push(entry);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BestFirst::Entry>> BestFirst::Deduplicate(
    const std::vector<Entry>& bounded) {
  std::vector<Scenario> scenarios;
  for (const Entry& entry : bounded) scenarios.push_back(ScenarioOf(entry));
  ASSIGN_OR_RETURN(const auto estimates, workers_->Orders(scenarios));
  std::vector<Entry> fresh;
  for (size_t i = 0; i < bounded.size(); ++i) {
    const Entry& entry = bounded[i];
    if (!estimates[i].problem().empty()) {
      Invalid(estimates[i].problem(), 1);
    } else if (entry.shape >= 0 &&
               !orders_.insert({entry.shape, estimates[i].order()}).second) {
      ++num_duplicates_;
    } else {
      fresh.push_back(entry);
    }
  }
  return fresh;
}

absl::Status BestFirst::Rank(std::vector<Entry>* open) {
  ASSIGN_OR_RETURN(*open, Deduplicate(*open));
  const std::vector<Entry>& bounded = *open;
  std::vector<Scenario> scenarios;
  for (const Entry& entry : bounded) scenarios.push_back(ScenarioOf(entry));
  ASSIGN_OR_RETURN(const auto estimates, workers_->Ranks(scenarios));
  for (size_t i = 0; i < bounded.size(); ++i) {
    const Entry& entry = bounded[i];
    if (!estimates[i].problem().empty()) {
      Invalid(estimates[i].problem(), 1);
      continue;
    }
    ++num_ranked_;
    if (entry.seed >= 0) improved_at_ = num_ranked_;
    RankedPlan found;
    found.scenario = scenarios[i];
    found.source = entry.shape < 0 ? seeds_[entry.seed].plan.source() : "joint";
    found.text = absl::StrCat(
        entry.shape < 0 ? found.source : DescribeShape(space_.At(entry.shape)),
        " ", scenarios[i].schedule());
    found.seconds = estimates[i].seconds();
    found.bytes = estimates[i].bytes();
    found.lower_bound_seconds =
        std::min(entry.lower_bound_seconds, found.seconds);
    found.num_gpus = GpusOf(entry);
    found.joules = space_.JoulesOf(found.seconds, found.num_gpus,
                                   estimates[i].active_joules());
    found.fits = estimates[i].fits() && found.bytes <= goal_.limit_bytes;
    found.index = static_cast<int>(num_ranked_);
    found.place = {entry.shape < 0 ? RankedPlan::kOutside : entry.shape,
                   entry.schedule};
    open_.RecordKey(entry, ScoreOf(goal_.objective, found.seconds, found.bytes,
                                   found.num_gpus, found.joules));
    if (!found.fits && !goal_.ignore_memory) {
      NoteMisfit(entry.shape);
      continue;
    }
    least_seconds_ = std::min(least_seconds_, found.lower_bound_seconds);
    Entry as_found = entry;
    as_found.seconds = found.seconds;
    as_found.bytes = found.bytes;
    as_found.key = ScoreOf(goal_.objective, found.seconds, found.bytes,
                           found.num_gpus, found.joules);
    if (Merge(found)) continue;
    const RankedPlan* best = BestSoFar();
    const bool is_best =
        best == nullptr ||
        as_found.key < ScoreOf(goal_.objective, best->seconds, best->bytes,
                               best->num_gpus, best->joules);
    if (!IsBeaten(as_found)) improved_at_ = num_ranked_;
    found_.push_back(std::move(found));
    UpdateThreshold();
    if (is_best) ReleaseNear(entry.shape);
  }
  return absl::OkStatus();
}

}  // namespace weir::plan
