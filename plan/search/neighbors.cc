// SPDX-License-Identifier: Apache-2.0
#include "plan/search/neighbors.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "models/recompute.h"
#include "plan/search/explain_plan.h"
#include "plan/search/schedule_variants.h"
#include "plan/search/seeds.h"
#include "schedules/source.h"

namespace weir::plan {
namespace {

// Other schedules of the best plan's layout, those with the lowest bounds.
constexpr size_t kMostSchedules = 3;

// A choice in which a shape differs from the best plan. Of numbers, only the
// nearest below and above are neighbors.
struct Choice {
  std::string name;
  std::string value;
  int distance = 0;  // 0: not a number
};

// The choices in one row of the list of neighbors: a name and a direction, or
// a name and a value.
using Row = std::tuple<int, int, std::string>;

struct Candidate {
  std::string choice;
  Scenario scenario;
  double seconds = 0, bytes = 0;  // lower bounds
};

// Returns the choices in which `other` differs, except its cut. A choice that
// has no meaning for one of the shapes is no difference.
std::vector<Choice> ChoicesOf(const Shape& best, const Shape& other) {
  std::vector<Choice> choices;
  const auto number = [&](const char* name, int ours, int theirs) {
    if (ours != theirs) {
      choices.push_back({name, absl::StrCat(theirs), theirs - ours});
    }
  };
  const auto word = [&](const char* name, bool differs, std::string value) {
    if (differs) choices.push_back({name, std::move(value)});
  };
  const bool replicated = best.replicated() && other.replicated();
  const bool piped = best.pipeline > 1 && other.pipeline > 1;
  number("tp", best.tensor, other.tensor);
  number("pp", best.pipeline, other.pipeline);
  number("cp", best.context, other.context);
  number("ep", best.expert, other.expert);
  const auto expert_tensor = [](const Shape& shape) {
    return shape.expert_tensor > 0 ? shape.expert_tensor : shape.tensor;
  };
  // Otherwise it follows the tensor-parallel size.
  if (best.expert_tensor > 0 || other.expert_tensor > 0) {
    number("etp", expert_tensor(best), expert_tensor(other));
  }
  number("replicate", best.data_replicate, other.data_replicate);
  number("mbs", best.microbatch_size, other.microbatch_size);
  if (piped || best.pipeline == other.pipeline) {
    number("vpp", best.chunks, other.chunks);
  }
  number("offloaded blocks", best.offloaded_blocks, other.offloaded_blocks);
  word("optimizer on host", best.optimizer_offload != other.optimizer_offload,
       absl::StrCat(other.optimizer_offload));
  word("vocabulary", best.vocabulary != other.vocabulary,
       NameOf(other.vocabulary));
  word("ep overlap",
       best.expert > 1 && other.expert > 1 &&
           best.expert_overlap != other.expert_overlap,
       other.expert_overlap ? "on" : "off");
  word("tp overlap",
       best.tensor > 1 && other.tensor > 1 &&
           best.tensor_overlap != other.tensor_overlap,
       other.tensor_overlap == TensorOverlap::kOfRuntime ? "as runtime"
       : other.tensor_overlap == TensorOverlap::kOn      ? "on"
                                                         : "off");
  word("recompute", best.recompute != other.recompute,
       models::RecomputeText(other.recompute));
  word("sharding", replicated && best.sharding != other.sharding,
       NameOf(other.sharding));
  word("order", replicated && piped && best.order != other.order, other.order);
  word("sequence parallelism",
       best.tensor > 1 && other.tensor > 1 &&
           best.sequence_parallel != other.sequence_parallel,
       other.sequence_parallel ? "on" : "off");
  word("gradient reduction", replicated && best.reduction != other.reduction,
       other.reduction == REDUCTION_OVERLAPPED ? "overlapped" : "blocking");
  return choices;
}

class NeighborSearch {
 public:
  NeighborSearch(const Space& space, const std::vector<SearchEstimate>& shapes,
                 const Confirmed& best)
      : space_(space),
        shapes_(shapes),
        best_scenario_(best.plan.scenario()),
        best_index_(best.shape),
        best_(ShapeOfScenario(best.plan.scenario())) {}

  // Fills in the candidates of each row, in the order of the choices.
  absl::Status Collect(SearchWorkers* workers) {
    const std::vector<int> indices = Indices();
    std::vector<int> variants;
    for (const int index : indices) {
      if (space_.VariantOf(index) > 0) variants.push_back(index);
    }
    ASSIGN_OR_RETURN(const std::vector<SearchEstimate> of_variants,
                     workers->OfShapes(variants));
    size_t next = 0;
    for (const int index : indices) {
      AddIndex(index, space_.VariantOf(index) > 0 ? of_variants[next++]
                                                  : shapes_[index]);
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<Candidate>> Rows() && {
    std::vector<std::vector<Candidate>> rows;
    for (auto& [row, found] : rows_) {
      rows.push_back(std::move(found.second));
    }
    return rows;
  }

 private:
  // Returns the shapes that differ in at most one choice, with the variant of
  // the best plan if they can have it, and all variants of the best plan.
  std::vector<int> Indices() const {
    const int variant = best_index_ < 0 ? 0 : space_.VariantOf(best_index_);
    std::vector<int> indices;
    for (size_t i = 0; i < space_.shapes.size(); ++i) {
      const auto shape = static_cast<int>(i);
      if (shapes_[i].absent() || !shapes_[i].problem().empty()) continue;
      if (space_.shapes[i].num_gpus() != best_.num_gpus()) continue;
      const bool has = variant > 0 && space_.Has(shape, variant);
      const int index = has ? space_.IndexOf(shape, variant) : shape;
      if (ChoicesOf(best_, has ? space_.At(index) : space_.shapes[i]).size() <=
          1) {
        indices.push_back(index);
      }
    }
    if (best_index_ < 0) return indices;
    for (size_t v = 0; v < space_.variants.size(); ++v) {
      const auto other = static_cast<int>(v);
      if (other == variant || !space_.Has(space_.ShapeOf(best_index_), other)) {
        continue;
      }
      const int index = space_.IndexOf(space_.ShapeOf(best_index_), other);
      if (ChoicesOf(best_, space_.At(index)).size() == 1) {
        indices.push_back(index);
      }
    }
    return indices;
  }

  void AddIndex(int index, const SearchEstimate& estimate) {
    if (estimate.absent() || !estimate.problem().empty()) return;
    Shape shape = space_.At(index);
    const std::vector<Choice> choices = ChoicesOf(best_, shape);
    shape.blocks.assign(estimate.blocks().begin(), estimate.blocks().end());
    if (choices.empty()) {
      AddSameSizes(shape);
    } else {
      Add(shape, choices[0]);
    }
  }

  const std::vector<PlannedSchedule>& SchedulesOf(const Shape& shape) const {
    return space_.schedules_of(shape);
  }

  bool Supports(const PlannedSchedule& schedule, const Shape& shape) const {
    const auto batch =
        static_cast<int>(space_.base.scenario.batch().global_batch_size());
    return IsLegal(schedule, shape,
                   batch / (shape.data * shape.microbatch_size));
  }

  // Returns the best plan's schedule if the shape supports it, else the first
  // that it supports.
  const PlannedSchedule* ScheduleFor(const Shape& shape) const {
    const PlannedSchedule* first = nullptr;
    for (const PlannedSchedule& schedule : SchedulesOf(shape)) {
      if (!Supports(schedule, shape)) continue;
      if (schedule.name == best_scenario_.schedule()) return &schedule;
      if (first == nullptr) first = &schedule;
    }
    return first;
  }

  void Add(const Shape& shape, const Choice& choice) {
    const PlannedSchedule* schedule = ScheduleFor(shape);
    if (schedule == nullptr) return;
    const std::string text = absl::StrCat(choice.name, " ", choice.value);
    if (choice.distance == 0) {
      AddAt({1, 0, text}, 0, text, shape, *schedule);
    } else {
      AddAt({0, choice.distance < 0 ? -1 : 1, choice.name},
            std::abs(choice.distance), text, shape, *schedule);
    }
  }

  // Adds the even cut, and other schedules of the same cut.
  void AddSameSizes(const Shape& shape) {
    if (shape.cut == Cut::kEven && !best_.blocks.empty()) {
      const PlannedSchedule* schedule = ScheduleFor(shape);
      if (schedule != nullptr && schedule->name == best_scenario_.schedule()) {
        AddAt({1, 0, "layers even"}, 0, "layers even", shape, *schedule);
      }
    }
    if (shape.blocks != best_.blocks) return;
    for (const PlannedSchedule& schedule : SchedulesOf(shape)) {
      // Those ordered by costs may take minutes.
      if (schedule.name == best_scenario_.schedule() ||
          schedules::OrdersByCosts(schedule.name) ||
          !Supports(schedule, shape)) {
        continue;
      }
      const std::string text = absl::StrCat("schedule ", schedule.name);
      AddAt({2, 0, text}, 0, text, shape, schedule);
    }
  }

  void AddAt(const Row& row, int distance, const std::string& text,
             const Shape& shape, const PlannedSchedule& schedule) {
    auto& [nearest, candidates] = rows_[row];
    if (!candidates.empty() && distance > nearest) return;
    if (distance < nearest) candidates.clear();
    nearest = distance;
    Candidate& candidate = candidates.emplace_back();
    candidate.choice = text;
    candidate.scenario =
        ScenarioOfShape(space_.base.scenario, shape, schedule.name);
    if (schedule.flush) candidate.scenario.clear_num_batches();
  }

  const Space& space_;
  const std::vector<SearchEstimate>& shapes_;
  const Scenario& best_scenario_;
  const int best_index_;  // with variants; -1: not in the space
  const Shape best_;
  // Distance and candidates: one per cut.
  std::map<Row, std::pair<int, std::vector<Candidate>>> rows_;
};

// Returns the candidate with the lowest bound on the time among those that fit
// by their bounds, else the smallest; std::nullopt if all are invalid.
std::optional<Candidate> BestOfRow(std::vector<Candidate> candidates,
                                   const std::vector<SearchEstimate>& estimates,
                                   double limit_bytes) {
  std::optional<Candidate> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!estimates[i].problem().empty()) continue;
    Candidate& one = candidates[i];
    one.seconds = estimates[i].seconds();
    one.bytes = estimates[i].bytes();
    const auto key = [&](const Candidate& of) {
      const bool fits = of.bytes <= limit_bytes;
      return std::make_pair(!fits, fits ? of.seconds : of.bytes);
    };
    if (!best.has_value() || key(one) < key(*best)) best = std::move(one);
  }
  return best;
}

// Equal plans are listed with the best one (Plan.equal_to).
bool IsSameResult(const Plan& one, const Plan& other) {
  constexpr double kRounding = 1e-9;
  const auto equal = [](double a, double b) {
    return std::abs(a - b) <= kRounding * b;
  };
  return equal(one.batch_seconds(), other.batch_seconds()) &&
         equal(one.peak_memory_bytes(), other.peak_memory_bytes());
}

std::string MemoryText(double bytes, double limit_bytes, bool is_bound) {
  return absl::StrCat("exceeds the memory by ", is_bound ? "at least " : "",
                      FormatBytes(bytes - limit_bytes));
}

}  // namespace

absl::Status AddNeighbors(const Space& space,
                          const std::vector<SearchEstimate>& shapes,
                          const Confirmed& best, const SearchOptions& options,
                          SearchWorkers* workers, PlanReport* report) {
  NeighborSearch search(space, shapes, best);
  const absl::Status collected = search.Collect(workers);
  if (absl::IsCancelled(collected)) return absl::OkStatus();
  RETURN_IF_ERROR(collected);
  std::vector<std::vector<Candidate>> rows = std::move(search).Rows();
  std::vector<Scenario> scenarios;
  for (const std::vector<Candidate>& row : rows) {
    for (const Candidate& one : row) scenarios.push_back(one.scenario);
  }
  const auto bounds = workers->Bounds(scenarios);
  if (absl::IsCancelled(bounds.status())) return absl::OkStatus();
  RETURN_IF_ERROR(bounds.status());
  const double limit = report->memory_limit_bytes();
  std::vector<Candidate> chosen;
  size_t at = 0, num_schedules = 0;
  for (std::vector<Candidate>& row : rows) {
    const size_t count = row.size();
    std::optional<Candidate> one =
        BestOfRow(std::move(row),
                  {bounds->begin() + at, bounds->begin() + at + count}, limit);
    at += count;
    if (!one.has_value()) continue;
    if (one->choice.starts_with("schedule ") &&
        ++num_schedules > kMostSchedules) {
      continue;
    }
    chosen.push_back(*std::move(one));
  }
  std::vector<RankedPlan> to_simulate;
  std::vector<size_t> index;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i].bytes > limit) continue;
    RankedPlan& plan = to_simulate.emplace_back();
    plan.scenario = chosen[i].scenario;
    plan.num_gpus = static_cast<int>(best.plan.num_gpus());
    plan.lower_bound_seconds = chosen[i].seconds;
    index.push_back(i);
  }
  const auto stop = [&] {
    if (options.progress) options.progress("simulating the neighbors");
    return MustEnd(options);
  };
  ASSIGN_OR_RETURN(
      const std::vector<Confirmed> simulated,
      Confirm(space, to_simulate, report->request().price_per_gpu_hour(),
              options.num_processes, stop));
  for (size_t i = 0; i < chosen.size(); ++i) {
    PlanNeighbor neighbor;
    neighbor.set_choice(chosen[i].choice);
    *neighbor.mutable_scenario() = chosen[i].scenario;
    const auto found = std::find(index.begin(), index.end(), i);
    if (found == index.end()) {
      neighbor.set_peak_memory_bytes(chosen[i].bytes);
      neighbor.set_difference(MemoryText(chosen[i].bytes, limit, true));
    } else {
      const Confirmed& one = simulated[found - index.begin()];
      if (!one.simulated || one.plan.batch_seconds() <= 0) continue;
      neighbor.set_batch_seconds(one.plan.batch_seconds());
      neighbor.set_peak_memory_bytes(one.plan.peak_memory_bytes());
      neighbor.set_fits(one.refused.empty());
      const double bytes = one.plan.peak_memory_bytes();
      if (one.refused.empty() && IsSameResult(one.plan, best.plan)) continue;
      neighbor.set_difference(bytes > limit ? MemoryText(bytes, limit, false)
                                            : ShortDifference(best, one));
    }
    *report->add_neighbors() = std::move(neighbor);
  }
  return absl::OkStatus();
}

}  // namespace weir::plan
