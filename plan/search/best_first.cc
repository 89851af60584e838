// SPDX-License-Identifier: Apache-2.0
#include "plan/search/best_first.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "plan/search/schedule_variants.h"

namespace weir::plan {
namespace {

constexpr size_t kRoundBounds = 128;
constexpr size_t kRoundRanks = 16;
// The same on many GPUs, where bounds take long, and for a first plan.
constexpr int kManyGpus = 256;
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

BestFirst::BestFirst(const Space& space,
                     const std::vector<SearchEstimate>& shapes,
                     const std::vector<Seed>& seeds,
                     const SearchOptions& options, Goal goal,
                     SearchWorkers* workers)
    : space_(space),
      shapes_(shapes),
      seeds_(seeds),
      options_(options),
      goal_(std::move(goal)),
      workers_(workers),
      open_(space, goal_.objective == OBJECTIVE_PARETO),
      least_seconds_(kInfinity) {
  small_rounds_ = goal_.first_only || goal_.ignore_memory ||
                  std::any_of(space_.shapes.begin(), space_.shapes.end(),
                              [](const Shape& shape) {
                                return shape.num_gpus() > kManyGpus;
                              });
  AddSeeds();
  for (size_t i = 0; i < shapes_.size(); ++i) AddShape(static_cast<int>(i));
  workers_->set_tick([this] { ReportProgress(); });
}

BestFirst::~BestFirst() { workers_->set_tick(nullptr); }

void BestFirst::AddSeeds() {
  for (size_t i = 0; i < seeds_.size(); ++i) {
    Entry entry;
    entry.shape = seeds_[i].shape;
    entry.schedule = seeds_[i].schedule;
    entry.seed = static_cast<int>(i);
    entry.state = State::kCandidate;
    if (entry.shape < 0) {
      ++num_candidates_;
    } else if (!shapes_[entry.shape].problem().empty() ||
               !LegalOf(entry.shape)[entry.schedule]) {
      continue;  // reported through its shape
    } else {
      seeded_.insert({entry.shape, entry.schedule});
    }
    open_.Insert(entry);
  }
}

void BestFirst::AddShape(int shape) {
  const SearchEstimate& estimate = shapes_[shape];
  if (estimate.absent()) return;
  const uint64_t num_schedules =
      space_.schedules_of(space_.shapes[shape]).size();
  num_candidates_ += num_schedules;
  if (!estimate.problem().empty()) {
    Invalid(estimate.problem(), num_schedules);
    return;
  }
  Entry entry;
  entry.shape = shape;
  entry.schedule = -1;
  entry.seconds = entry.lower_bound_seconds = estimate.seconds();
  entry.bytes = estimate.bytes();
  const std::vector<char>& legal = LegalOf(shape);
  const auto num_refused =
      static_cast<uint64_t>(std::count(legal.begin(), legal.end(), 0));
  if (num_refused > 0) {
    Invalid(
        "a schedule does not support this number of ranks, chunks or "
        "microbatches",
        num_refused);
  }
  if (NumIn(entry) > 0) Push(entry);
}

void BestFirst::Invalid(const std::string& problem, uint64_t count) {
  num_invalid_ += count;
  for (absl::string_view line : absl::StrSplit(problem, '\n')) {
    problems_[std::string(line)] += count;
  }
}

Shape BestFirst::ShapeOf(int shape) const {
  Shape whole = space_.shapes[shape];
  whole.blocks.assign(shapes_[shape].blocks().begin(),
                      shapes_[shape].blocks().end());
  return whole;
}

const std::vector<char>& BestFirst::LegalOf(int index) {
  const Shape& shape = space_.shapes[index];
  const auto batch =
      static_cast<int>(space_.base.scenario.batch().global_batch_size());
  const int num_microbatches = batch / (shape.data * shape.microbatch_size);
  const bool sharded = shape.sharding != Sharding::kNone;
  const bool even = shape.cut == Cut::kEven;
  const bool single = shape.microbatch_size == 1;
  std::vector<char>& legal = legal_[{shape.pipeline, shape.chunks,
                                     num_microbatches, even, sharded, single}];
  const auto& schedules = space_.schedules_of(shape);
  if (legal.size() == schedules.size()) return legal;
  for (const PlannedSchedule& schedule : schedules) {
    legal.push_back(IsLegal(schedule, shape, num_microbatches));
  }
  return legal;
}

uint64_t BestFirst::NumIn(const Entry& entry) const {
  if (entry.schedule >= 0) return 1;
  const auto& legal = const_cast<BestFirst*>(this)->LegalOf(entry.shape);
  uint64_t count = 0;
  for (size_t s = 0; s < legal.size(); ++s) {
    count += legal[s] && !IsSeeded(entry.shape, static_cast<int>(s)) ? 1 : 0;
  }
  return count;
}

Scenario BestFirst::ScenarioOf(const Entry& entry) const {
  if (entry.seed >= 0) return seeds_[entry.seed].plan.scenario();
  const Shape shape = ShapeOf(entry.shape);
  const PlannedSchedule& schedule = space_.schedules_of(shape)[entry.schedule];
  Scenario scenario =
      ScenarioOfShape(space_.base.scenario, shape, schedule.name);
  if (schedule.flush) scenario.clear_num_batches();
  return scenario;
}

int BestFirst::GpusOf(const Entry& entry) const {
  if (entry.shape >= 0) return space_.shapes[entry.shape].num_gpus();
  const Parallelism& parallelism =
      seeds_[entry.seed].plan.scenario().parallelism();
  return static_cast<int>(std::max(parallelism.tensor(), 1u) *
                          std::max(parallelism.pipeline(), 1u) *
                          std::max(parallelism.context(), 1u) *
                          std::max(parallelism.data(), 1u));
}

void BestFirst::Push(Entry entry) {
  if (!goal_.ignore_memory && entry.bytes > goal_.limit_bytes) {
    num_memory_ += NumIn(entry);
    return;
  }
  entry.key =
      ScoreOf(goal_.objective, entry.seconds, entry.bytes, GpusOf(entry));
  open_.Insert(entry);
}

bool BestFirst::IsBeaten(const Entry& entry) const {
  if (goal_.objective == OBJECTIVE_PARETO) {
    return std::any_of(
        found_.begin(), found_.end(), [&](const RankedPlan& found) {
          return !excluded_.contains(found.index) &&
                 found.seconds <= entry.seconds && found.bytes <= entry.bytes &&
                 found.seconds * found.num_gpus <=
                     entry.seconds * GpusOf(entry);
        });
  }
  return threshold_.has_value() && entry.key >= *threshold_;
}

void BestFirst::UpdateThreshold() {
  threshold_.reset();
  if (goal_.objective == OBJECTIVE_PARETO) return;
  std::vector<const RankedPlan*> plans;
  for (const RankedPlan& found : found_) {
    if (!excluded_.contains(found.index)) plans.push_back(&found);
  }
  const std::vector<const RankedPlan*> best =
      BestLayouts(std::move(plans), goal_.objective, goal_.num_plans);
  if (best.size() < goal_.num_plans) return;
  const RankedPlan& last = *best.back();
  threshold_ =
      ScoreOf(goal_.objective, last.seconds, last.bytes, last.num_gpus);
}

void BestFirst::Exclude(const RankedPlan& found) {
  excluded_.insert(found.index);
  UpdateThreshold();
  open_.Reopen();
}

absl::Status BestFirst::Run() {
  while (true) {
    if (MustEnd(options_)) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const bool goes_on, Round());
    if (!goes_on || PatienceExhausted() || GapIsProven() ||
        (goal_.first_only && BestSoFar() != nullptr)) {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<bool> BestFirst::Round() {
  const bool forced = small_rounds_ && rounds_of_bounds_ >= kMostRoundsOfBounds;
  const std::vector<Entry> taken =
      open_.NextRound(small_rounds_ ? kSmallRoundBounds : kRoundBounds,
                      small_rounds_ ? kSmallRoundRanks : kRoundRanks, forced,
                      [this](const Entry& entry) { return IsBeaten(entry); });
  if (taken.empty()) return false;
  std::vector<Entry> work[3];  // by state
  for (const Entry& entry : taken) {
    work[static_cast<int>(entry.state)].push_back(entry);
  }
  if (options_.progress) {
    num_open_ = threshold_.has_value() ? open_.CountBelow(*threshold_)
                                       : std::array<uint64_t, 3>{};
  }
  for (size_t i = 0; i < num_done_.size(); ++i) num_done_[i] += work[i].size();
  absl::Status status;
  {
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
  if (status.ok()) return true;
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
    const auto& schedules = space_.schedules_of(space_.shapes[entry.shape]);
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
          space_.schedules_of(space_.shapes[entry.shape])[entry.schedule];
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
        space_.schedules_of(space_.shapes[shape])[representatives[i].schedule];
    Known& known = known_bounds[{shape, schedule.bound_key}];
    known.seconds = estimates[i].order_free_seconds();
    if (schedule.bound_proxy.empty() && estimates[i].problem().empty()) {
      known.of_representative = &estimates[i];
      known.representative = representatives[i].schedule;
    }
  }
  for (const Entry& entry : shapes) {
    const auto& schedules = space_.schedules_of(space_.shapes[entry.shape]);
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
    found.text = absl::StrCat(entry.shape < 0
                                  ? found.source
                                  : DescribeShape(space_.shapes[entry.shape]),
                              " ", scenarios[i].schedule());
    found.seconds = estimates[i].seconds();
    found.bytes = estimates[i].bytes();
    found.lower_bound_seconds =
        std::min(entry.lower_bound_seconds, found.seconds);
    found.num_gpus = GpusOf(entry);
    found.fits = estimates[i].fits() && found.bytes <= goal_.limit_bytes;
    found.index = static_cast<int>(num_ranked_);
    found.place = {
        entry.shape < 0 ? std::numeric_limits<int>::max() : entry.shape,
        entry.schedule};
    open_.RecordKey(entry, ScoreOf(goal_.objective, found.seconds, found.bytes,
                                   found.num_gpus));
    if (!found.fits && !goal_.ignore_memory) continue;
    least_seconds_ = std::min(least_seconds_, found.lower_bound_seconds);
    Entry as_found = entry;
    as_found.seconds = found.seconds;
    as_found.bytes = found.bytes;
    as_found.key =
        ScoreOf(goal_.objective, found.seconds, found.bytes, found.num_gpus);
    if (Merge(found)) continue;
    if (!IsBeaten(as_found)) improved_at_ = num_ranked_;
    found_.push_back(std::move(found));
    UpdateThreshold();
  }
  return absl::OkStatus();
}

const RankedPlan* BestFirst::BestSoFar() const {
  const auto score = [&](const RankedPlan& found) {
    return ScoreOf(goal_.objective, found.seconds, found.bytes, found.num_gpus);
  };
  const RankedPlan* best = nullptr;
  for (const RankedPlan& found : found_) {
    if (excluded_.contains(found.index)) continue;
    if (best == nullptr || score(found) < score(*best)) best = &found;
  }
  return best;
}

bool BestFirst::Merge(RankedPlan found) {
  for (RankedPlan& known : found_) {
    if (excluded_.contains(known.index) || !IsSamePlan(known, found)) continue;
    if (found.place < known.place) std::swap(found, known);
    known.equals.insert(known.equals.end(), found.equals.begin(),
                        found.equals.end());
    known.equals.push_back(std::move(found.scenario));
    return true;
  }
  return false;
}

std::vector<RankedPlan> BestFirst::Best() const {
  std::vector<RankedPlan> best;
  for (const RankedPlan& found : found_) {
    if (!excluded_.contains(found.index)) best.push_back(found);
  }
  return BestOf(std::move(best), goal_.objective, goal_.num_plans);
}

}  // namespace weir::plan
