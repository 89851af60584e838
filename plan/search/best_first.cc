// SPDX-License-Identifier: Apache-2.0
#include "plan/search/best_first.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "plan/search/schedule_variants.h"

namespace weir::plan {
namespace {

// Above it, bounds take long, and rounds are small.
constexpr int kManyGpus = 256;

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
  PrepareVariants();
  reported_ = goal_.known_score;
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
  const SearchEstimate& estimate = EstimateOf(shape);
  if (estimate.absent()) return;
  const uint64_t num_schedules =
      space_.schedules_of(space_.shapes[space_.ShapeOf(shape)]).size();
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
  Shape whole = space_.At(shape);
  const SearchEstimate& estimate = EstimateOf(shape);
  whole.blocks.assign(estimate.blocks().begin(), estimate.blocks().end());
  return whole;
}

const std::vector<char>& BestFirst::LegalOf(int index) {
  const Shape& shape = space_.shapes[space_.ShapeOf(index)];
  const auto batch =
      static_cast<int>(space_.base.scenario.batch().global_batch_size());
  const int num_microbatches = batch / (shape.data * shape.microbatch_size);
  const bool sharded = shape.sharding != Sharding::kNone;
  const bool even = shape.cut == Cut::kEven;
  const bool single = shape.microbatch_size == 1;
  const bool whole = shape.vocabulary == VOCABULARY_PARALLEL_UNSPECIFIED;
  std::vector<char>& legal =
      legal_[{shape.pipeline, shape.chunks, num_microbatches, even, sharded,
              single, whole}];
  const auto& schedules = space_.schedules_of(shape);
  if (legal.size() == schedules.size()) return legal;
  for (const PlannedSchedule& schedule : schedules) {
    legal.push_back(IsLegal(schedule, shape, num_microbatches));
  }
  return legal;
}

uint64_t BestFirst::NumIn(const Entry& entry) const {
  if (!entry.is_estimated) return 0;  // counted when its schedules are known
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
  if (entry.shape >= 0) {
    return space_.shapes[space_.ShapeOf(entry.shape)].num_gpus();
  }
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
    NoteMisfit(entry.shape);
    return;
  }
  entry.key = ScoreOf(
      goal_.objective, entry.seconds, entry.bytes, GpusOf(entry),
      space_.JoulesOf(entry.seconds, GpusOf(entry), entry.active_joules));
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
  threshold_ = ScoreOf(goal_.objective, last.seconds, last.bytes, last.num_gpus,
                       last.joules);
}

void BestFirst::Exclude(const RankedPlan& found) {
  excluded_.insert(found.index);
  UpdateThreshold();
  open_.Reopen();
  stage_ = Released::kNone;  // variants that were beaten may not be any more
}

absl::Status BestFirst::Run() {
  while (true) {
    if (MustEnd(options_)) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const bool goes_on, Round());
    const bool is_patient = !PatienceExhausted();
    if ((!goes_on || !is_patient || GapIsProven()) && ReleaseMore()) {
      // Variants get the patience that the shapes had.
      if (!is_patient) improved_at_ = num_ranked_;
      continue;
    }
    if (!goes_on || !is_patient || GapIsProven() ||
        (goal_.first_only && BestSoFar() != nullptr) ||
        (goal_.most_ranked > 0 && num_ranked_ >= goal_.most_ranked)) {
      return absl::OkStatus();
    }
  }
}

const RankedPlan* BestFirst::BestSoFar() const {
  const auto score = [&](const RankedPlan& found) {
    return ScoreOf(goal_.objective, found.seconds, found.bytes, found.num_gpus,
                   found.joules);
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
