// SPDX-License-Identifier: Apache-2.0
#include "plan/search/ranked_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/units.h"
#include "scenarios/recomputation.h"
#include "schedules/registry.h"

namespace weir::plan {
namespace {

// Relative difference of values that count as equal.
constexpr double kRounding = 1e-9;

bool AreEqual(double a, double b) {
  return std::abs(a - b) <= kRounding * std::max(a, b);
}

// Returns the sizes and the cut. A size of 0 means 1.
std::vector<uint32_t> SizesOf(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  std::vector<uint32_t> sizes;
  for (const uint32_t size :
       {parallelism.tensor(), parallelism.data(), parallelism.pipeline(),
        parallelism.chunks(), parallelism.expert(), parallelism.context(),
        parallelism.data_replicate(), scenario.batch().microbatch_size()}) {
    sizes.push_back(std::max(size, 1u));
  }
  sizes.push_back(parallelism.expert_tensor() > 0 ? parallelism.expert_tensor()
                                                  : sizes[0]);
  sizes.push_back(scenario.training().fully_sharded());
  sizes.push_back(scenario.training().distributed_optimizer());
  sizes.push_back(scenario.training().cpu_offloading_num_layers());
  sizes.push_back(static_cast<uint32_t>(
      1e6 * scenario.training().optimizer_offload_fraction()));
  sizes.push_back(parallelism.vocabulary_parallel());
  // An even cut may be given explicitly.
  const auto& blocks = parallelism.blocks_per_stage();
  const bool even =
      std::all_of(blocks.begin(), blocks.end(),
                  [&](uint32_t count) { return count == blocks.Get(0); });
  if (!even) sizes.insert(sizes.end(), blocks.begin(), blocks.end());
  return sizes;
}

std::string ReductionName(const Scenario& scenario) {
  return scenario.communication().gradient_reduction() == REDUCTION_OVERLAPPED
             ? "overlapped"
             : "blocking";
}

std::string ExpertOverlapName(const Scenario& scenario) {
  return scenario.communication().overlap_expert_exchange() ? "on" : "off";
}

std::string TensorOverlapName(const Scenario& scenario) {
  const Communication& communication = scenario.communication();
  if (!communication.has_tp_comm_overlap()) return "as the runtime";
  return communication.tp_comm_overlap() ? "on" : "off";
}

std::string OrderName(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  if (!parallelism.gpus().empty()) return "custom";
  return parallelism.order().empty() ? "tp-dp-pp" : parallelism.order();
}

}  // namespace

std::string BestText(const RankedPlan& plan) {
  const Parallelism& parallelism = plan.scenario.parallelism();
  std::string text = absl::StrCat(
      "best ", FormatSeconds(plan.seconds), ", tp ", parallelism.tensor(),
      " pp ", parallelism.pipeline(), " dp ", parallelism.data());
  if (parallelism.context() > 1) {
    absl::StrAppend(&text, " cp ", parallelism.context());
  }
  if (parallelism.expert() > 1) {
    absl::StrAppend(&text, " ep ", parallelism.expert());
  }
  if (parallelism.expert_tensor() > 0) {
    absl::StrAppend(&text, " etp ", parallelism.expert_tensor());
  }
  if (parallelism.chunks() > 1) {
    absl::StrAppend(&text, " vpp ", parallelism.chunks());
  }
  return absl::StrCat(text, " mbs ", plan.scenario.batch().microbatch_size());
}

Plan RankedAsPlan(const RankedPlan& found) {
  Plan plan;
  *plan.mutable_scenario() = found.scenario;
  plan.set_source(found.source);
  plan.set_num_gpus(found.num_gpus);
  plan.set_batch_seconds(found.seconds);
  plan.set_peak_memory_bytes(found.bytes);
  plan.set_lower_bound_seconds(found.lower_bound_seconds);
  if (found.lower_bound_seconds > 0) {
    plan.set_gap(found.seconds / found.lower_bound_seconds - 1);
  }
  if (found.seconds > 0) {
    plan.set_samples_per_second(found.scenario.batch().global_batch_size() /
                                found.seconds);
  }
  plan.set_changes_training(ChangesTraining(found.scenario.schedule()));
  return plan;
}

bool ChangesTraining(const std::string& schedule) {
  const auto kind = schedules::FindScheduleKind(schedule);
  return kind.ok() && (!(*kind)->flush || (*kind)->name == "accept");
}

bool IsSamePlan(const RankedPlan& one, const RankedPlan& other) {
  if (!AreEqual(one.seconds, other.seconds) ||
      !AreEqual(one.bytes, other.bytes)) {
    return false;
  }
  const Scenario& a = one.scenario;
  const Scenario& b = other.scenario;
  if (SizesOf(a) != SizesOf(b) ||
      a.parallelism().layout() != b.parallelism().layout()) {
    return false;
  }
  return a.schedule() == b.schedule() ||
         (!ChangesTraining(a.schedule()) && !ChangesTraining(b.schedule()));
}

bool HasSameLayout(const Scenario& one, const Scenario& other) {
  return SizesOf(one) == SizesOf(other) &&
         one.parallelism().layout() == other.parallelism().layout() &&
         scenarios::RecomputeOf(one.training()) ==
             scenarios::RecomputeOf(other.training()) &&
         one.schedule() == other.schedule();
}

std::string DifferenceOf(const Scenario& other, const Scenario& plan) {
  std::vector<std::string> words;
  const auto add = [&](absl::string_view name, const std::string& theirs,
                       const std::string& ours) {
    if (theirs != ours) words.push_back(absl::StrCat(name, " ", theirs));
  };
  add("schedule", other.schedule(), plan.schedule());
  const auto recompute = [](const Scenario& scenario) {
    return models::RecomputeText(scenarios::RecomputeOf(scenario.training()));
  };
  add("recompute", recompute(other), recompute(plan));
  add("order", OrderName(other), OrderName(plan));
  add("gradient reduction", ReductionName(other), ReductionName(plan));
  add("overlap of expert exchanges", ExpertOverlapName(other),
      ExpertOverlapName(plan));
  add("overlap of tensor-parallel collectives", TensorOverlapName(other),
      TensorOverlapName(plan));
  add("offloaded blocks",
      absl::StrCat(other.training().cpu_offloading_num_layers()),
      absl::StrCat(plan.training().cpu_offloading_num_layers()));
  add("optimizer on host",
      ShortestNumber(other.training().optimizer_offload_fraction()),
      ShortestNumber(plan.training().optimizer_offload_fraction()));
  add("sequence parallelism",
      other.parallelism().sequence_parallel() ? "on" : "off",
      plan.parallelism().sequence_parallel() ? "on" : "off");
  return absl::StrJoin(words, ", ");
}

Score ScoreOf(Objective objective, double seconds, double bytes, int num_gpus,
              double joules) {
  if (objective == OBJECTIVE_MEMORY) return {bytes, seconds};
  if (objective == OBJECTIVE_COST) return {seconds * num_gpus, bytes};
  if (objective == OBJECTIVE_ENERGY) return {joules, seconds};
  return {seconds, bytes};
}

bool Dominates(const RankedPlan& one, const RankedPlan& other) {
  const auto compare = [](double a, double b) {
    return a < b * (1 - kRounding) ? -1 : a > b * (1 + kRounding) ? 1 : 0;
  };
  const int seconds = compare(one.seconds, other.seconds);
  const int bytes = compare(one.bytes, other.bytes);
  const int cost =
      compare(one.seconds * one.num_gpus, other.seconds * other.num_gpus);
  if (seconds > 0 || bytes > 0 || cost > 0) return false;
  return seconds + bytes + cost < 0 || one.index < other.index;
}

std::vector<const RankedPlan*> BestLayouts(std::vector<const RankedPlan*> found,
                                           Objective objective,
                                           size_t num_plans) {
  const auto key = [&](const RankedPlan* plan) {
    return std::pair(ScoreOf(objective, plan->seconds, plan->bytes,
                             plan->num_gpus, plan->joules),
                     plan->index);
  };
  std::sort(found.begin(), found.end(),
            [&](const RankedPlan* a, const RankedPlan* b) {
              return key(a) < key(b);
            });
  std::vector<const RankedPlan*> best;
  for (const RankedPlan* plan : found) {
    if (best.size() == num_plans) break;
    const bool known =
        std::any_of(best.begin(), best.end(), [&](const RankedPlan* other) {
          return HasSameLayout(plan->scenario, other->scenario);
        });
    if (!known) best.push_back(plan);
  }
  return best;
}

std::vector<RankedPlan> BestOf(std::vector<RankedPlan> found,
                               Objective objective, size_t num_plans) {
  std::vector<const RankedPlan*> kept;
  if (objective != OBJECTIVE_PARETO) {
    for (const RankedPlan& plan : found) kept.push_back(&plan);
    kept = BestLayouts(std::move(kept), objective, num_plans);
  } else {
    for (const RankedPlan& plan : found) {
      const bool dominated = std::any_of(
          found.begin(), found.end(),
          [&](const RankedPlan& other) { return Dominates(other, plan); });
      if (!dominated) kept.push_back(&plan);
    }
    std::sort(kept.begin(), kept.end(),
              [](const RankedPlan* a, const RankedPlan* b) {
                return std::tie(a->seconds, a->bytes, a->index) <
                       std::tie(b->seconds, b->bytes, b->index);
              });
  }
  std::vector<RankedPlan> plans;
  for (const RankedPlan* plan : kept) plans.push_back(*plan);
  return plans;
}

}  // namespace weir::plan
