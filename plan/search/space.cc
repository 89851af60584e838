// SPDX-License-Identifier: Apache-2.0
#include "plan/search/space.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "plan/search/interleaving.h"
#include "plan/search/layouts.h"
#include "plan/search/schedule_variants.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/options.h"
#include "sim/report/memory_interval.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

// Limits of the search where the request has none.
constexpr int kMostChunks = 8;
constexpr int kMostMicrobatchSize = 64;

// Returns the divisors up to `most`, as `number` may be a batch of millions.
std::vector<int> DivisorsOf(int number, int most) {
  std::vector<int> divisors;
  for (int i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return divisors;
}

// Sets enough nodes for the largest requested number of GPUs, if not given.
absl::Status CountNodes(const PlanSpace& space, Scenario* scenario) {
  if (scenario->num_nodes() > 0 || space.gpus().empty() ||
      scenario->cluster().empty()) {
    return absl::OkStatus();
  }
  const auto cluster = scenarios::LoadCluster(scenario->cluster(), 0,
                                              scenario->cluster_changes());
  if (!cluster.ok() || cluster->groups_size() != 1) return absl::OkStatus();
  const uint32_t each = cluster->groups(0).node().num_gpus();
  const uint32_t most =
      *std::max_element(space.gpus().begin(), space.gpus().end());
  scenario->set_num_nodes((most + each - 1) / each);
  return absl::OkStatus();
}

// Resolves the scenario as it would run on one GPU.
absl::StatusOr<scenarios::ResolvedScenario> ResolveBase(
    const std::string& label, const PlanRequest& request) {
  Scenario scenario = request.scenario();
  if (scenario.has_costs()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": costs are given, expected a model and a cluster to plan"));
  }
  const Parallelism given = scenario.parallelism();
  scenario.clear_parallelism();
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.set_schedule("1f1b");
  RETURN_IF_ERROR(CountNodes(request.space(), &scenario));
  const uint32_t num_batches = scenario.num_batches();
  scenario.clear_num_batches();
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario base,
                   scenarios::ResolveScenario(label, scenario));
  base.scenario.set_num_batches(num_batches);
  Parallelism& parallelism = *base.scenario.mutable_parallelism();
  parallelism.set_context_method(given.context_method());
  *parallelism.mutable_hierarchical_context() = given.hierarchical_context();
  return base;
}

absl::Status CheckRequest(const std::string& label,
                          const PlanRequest& request) {
  Problems problems(label);
  const PlanSpace& space = request.space();
  for (const std::string& order : space.orders()) {
    if (order != "tp-dp-pp" && order != "tp-pp-dp") {
      problems.Add(
          "space.orders",
          absl::StrCat("has \"", order, "\", expected tp-dp-pp or tp-pp-dp"));
    }
  }
  for (const std::string& sharding : space.sharding()) {
    if (sharding != "none" && sharding != "optimizer" && sharding != "full") {
      problems.Add("space.sharding", absl::StrCat("has \"", sharding,
                                                  "\", expected none, "
                                                  "optimizer or full"));
    }
  }
  const auto positive = [&](const char* field, const auto& list) {
    if (std::count(list.begin(), list.end(), 0u) > 0) {
      problems.Add(absl::StrCat("space.", field), "has 0, expected 1 or more");
    }
  };
  positive("gpus", space.gpus());
  positive("tensor", space.tensor());
  positive("pipeline", space.pipeline());
  positive("data", space.data());
  positive("expert", space.expert());
  positive("expert_tensor", space.expert_tensor());
  positive("data_replicate", space.data_replicate());
  positive("context", space.context());
  positive("chunks", space.chunks());
  positive("microbatch_size", space.microbatch_size());
  problems.CheckRange("memory_limit_bytes", request.memory_limit_bytes(), 0,
                      1e18);
  problems.CheckRange("memory_margin", request.memory_margin(), 0, 0.95);
  problems.CheckRange("price_per_gpu_hour", request.price_per_gpu_hour(), 0,
                      1e12);
  if (!Objective_IsValid(request.objective())) {
    problems.Add("objective", "is unknown");
  }
  return problems.ToStatus();
}

Sharding ShardingOf(const std::string& name) {
  if (name == "full") return Sharding::kFull;
  return name == "optimizer" ? Sharding::kOptimizer : Sharding::kNone;
}

// Returns what the scenario itself says about the sharding, if anything.
std::optional<Sharding> GivenSharding(const Training& training) {
  if (training.fully_sharded()) return Sharding::kFull;
  if (training.optimizer() == MUON) return Sharding::kNone;
  if (training.optimizer() == DIST_MUON) return Sharding::kOptimizer;
  if (!training.has_distributed_optimizer()) return {};
  return training.distributed_optimizer() ? Sharding::kOptimizer
                                          : Sharding::kNone;
}

// Returns the fewest pipeline ranks that may run several chunks each.
int MinRanksOf(const PlanSpace& space,
               const scenarios::ResolvedScenario& base) {
  return space.any_runtime() ? 1
                             : MinRanksToInterleave(
                                   base.runtime, base.scenario.communication());
}

models::Recompute FirstBlocks(int n) {
  Recomputation proto;
  proto.set_mode(RECOMPUTE_FULL);
  proto.set_method(RECOMPUTE_BLOCK);
  proto.set_num_layers(n);
  return models::Recompute(proto);
}

// Returns true for PlanSpace's half of the blocks of each stage.
bool IsHalf(const Recomputation& partial) {
  return partial.method() == RECOMPUTE_BLOCK && partial.num_layers() == 0;
}

// Returns the recomputations that are tried unless the request lists others.
std::vector<models::Recompute> UsualRecomputes(
    const scenarios::ResolvedScenario& base) {
  if (base.model.has_measured()) return {RECOMPUTE_NONE, RECOMPUTE_FULL};
  const RecomputeMode selective = base.runtime.recomputes_operators()
                                      ? RECOMPUTE_OPERATORS
                                      : RECOMPUTE_SELECTIVE;
  return {RECOMPUTE_NONE, selective, RECOMPUTE_FULL};
}

class Shapes {
 public:
  Shapes(const PlanRequest& request, const scenarios::ResolvedScenario& base)
      : space_(request.space()),
        given_(request.scenario()),
        base_(base),
        num_blocks_(NumBlocks(base.model)),
        min_ranks_(MinRanksOf(request.space(), base)),
        global_batch_(
            static_cast<int>(base.scenario.batch().global_batch_size())) {
    shape_.mtp_modules =
        static_cast<int>(base.model.transformer().num_mtp_modules());
  }

  std::vector<Shape> All() {
    for (const Layout& layout : LayoutsOf(space_, base_)) {
      shape_.tensor = layout.tensor;
      shape_.pipeline = layout.pipeline;
      shape_.data = layout.data;
      shape_.context = layout.context;
      for (const int expert_tensor : ExpertTensors(layout.tensor)) {
        shape_.expert_tensor = expert_tensor;
        for (const int expert : Experts()) {
          for (const int size : MicrobatchSizes(layout.data)) {
            shape_.expert = expert;
            shape_.microbatch_size = size;
            AddWays();
          }
        }
      }
    }
    return std::move(shapes_);
  }

  // Returns all but half of the blocks of each stage.
  std::vector<models::Recompute> Recomputes() const {
    std::vector<models::Recompute> all;
    for (const int mode : space_.recompute()) {
      all.emplace_back(static_cast<RecomputeMode>(mode));
    }
    for (const Recomputation& partial : space_.partial_recompute()) {
      if (!IsHalf(partial)) all.emplace_back(partial);
    }
    const bool listed =
        !space_.recompute().empty() || !space_.partial_recompute().empty();
    return listed ? all : UsualRecomputes(base_);
  }

 private:
  void AddWays() {
    for (const models::Recompute& recompute : Recomputes()) {
      AddSharings(recompute);
    }
    half_of_stage_ = std::any_of(space_.partial_recompute().begin(),
                                 space_.partial_recompute().end(), IsHalf);
    if (!half_of_stage_) return;
    AddSharings(RECOMPUTE_FULL);
    half_of_stage_ = false;
  }

  void AddSharings(const models::Recompute& recompute) {
    for (const bool sequence_parallel : SequenceParallel()) {
      for (const Sharding sharding : Shardings()) {
        shape_.recompute = recompute;
        shape_.sequence_parallel = sequence_parallel;
        shape_.sharding = sharding;
        for (const int groups : Replicates()) {
          shape_.data_replicate = groups;
          AddStages();
        }
      }
    }
  }

  void AddStages() {
    for (const int chunks : Chunks()) {
      for (const Cut cut : kAllCuts) {
        if (cut != Cut::kEven &&
            (space_.even_layers_only() || shape_.pipeline * chunks < 2)) {
          continue;
        }
        if (cut == Cut::kMtpApart && !HasMtpApart(chunks)) continue;
        if (cut == Cut::kEven && !HasEvenCut(chunks)) continue;
        shape_.chunks = chunks;
        shape_.cut = cut;
        if (half_of_stage_) {
          const int half = num_blocks_ / (2 * shape_.pipeline * chunks);
          if (half == 0) continue;
          shape_.recompute = FirstBlocks(half);
        }
        // Consecutive shapes differ only in communication between stages and
        // replicas, so that workers can reuse the estimate of the last one.
        for (const std::string& order : Orders()) {
          for (const ReductionMode reduction : Reductions()) {
            shape_.order = order;
            shape_.reduction = reduction;
            shapes_.push_back(shape_);
          }
        }
      }
    }
  }

  // An even cut that does not exist is only listed to be reported.
  bool HasEvenCut(int chunks) const {
    return space_.even_layers_only() || base_.model.has_measured() ||
           num_blocks_ % (shape_.pipeline * chunks) == 0;
  }

  // MTP modules in a stage of their own need one for the head after it. Tied
  // embeddings would have three copies.
  bool HasMtpApart(int chunks) const {
    return shape_.mtp_modules > 0 && shape_.pipeline * chunks > 2 &&
           !base_.model.transformer().tied_embeddings();
  }

  // Returns 0 for the tensor-parallel size.
  std::vector<int> ExpertTensors(int tensor) const {
    if (base_.model.transformer().num_experts() == 0) return {0};
    std::vector<int> sizes = Sorted(space_.expert_tensor());
    const auto given = static_cast<int>(given_.parallelism().expert_tensor());
    if (sizes.empty() && given > 0) sizes = {given};
    if (sizes.empty()) sizes = {tensor, 1};
    for (int& size : sizes) size = size == tensor ? 0 : size;
    if (tensor == 1 && sizes == std::vector<int>{0, 0}) sizes.resize(1);
    return sizes;
  }

  std::vector<int> Replicates() const {
    if (shape_.sharding == Sharding::kNone || !shape_.replicated()) return {1};
    if (!space_.data_replicate().empty())
      return Sorted(space_.data_replicate());
    return {
        std::max(static_cast<int>(given_.parallelism().data_replicate()), 1)};
  }

  std::vector<int> Experts() const {
    if (!space_.expert().empty()) return Sorted(space_.expert());
    const int gpus = shape_.data * shape_.context * shape_.tensor;
    const int each =
        shape_.expert_tensor > 0 ? shape_.expert_tensor : shape_.tensor;
    const auto num_experts =
        static_cast<int>(base_.model.transformer().num_experts());
    if (num_experts == 0) return {1};
    std::vector<int> experts;
    for (const int divisor : DivisorsOf(num_experts, num_experts)) {
      if (gpus % (divisor * each) == 0) experts.push_back(divisor);
    }
    return experts;
  }

  std::vector<int> MicrobatchSizes(int data) const {
    if (!space_.microbatch_size().empty()) {
      return Sorted(space_.microbatch_size());
    }
    // If replicas do not divide the batch, one candidate reports it.
    if (global_batch_ % data != 0) return {1};
    return DivisorsOf(global_batch_ / data, kMostMicrobatchSize);
  }

  std::vector<bool> SequenceParallel() const {
    if (shape_.tensor == 1) return {false};
    const Parallelism& given = given_.parallelism();
    if (given.has_sequence_parallel()) return {given.sequence_parallel()};
    // Experts need it.
    if (base_.model.transformer().num_experts() > 0) return {true};
    return {true, false};
  }

  std::vector<Sharding> Shardings() const {
    std::vector<Sharding> all;
    for (const std::string& name : space_.sharding()) {
      all.push_back(ShardingOf(name));
    }
    if (all.empty()) {
      const auto given = GivenSharding(given_.training());
      if (given.has_value()) return {*given};
      all = {Sharding::kNone, Sharding::kOptimizer};
      // Experts are seldom sharded again.
      if (shape_.expert == 1 && shape_.expert_tensor == 0 &&
          (space_.any_runtime() || ShardsFully(base_, shape_))) {
        all.push_back(Sharding::kFull);
      }
    }
    // Without replicas, all shardings are the same.
    if (!shape_.replicated()) all.erase(all.begin() + 1, all.end());
    return all;
  }

  // Without replicas, nothing is reduced.
  std::vector<ReductionMode> Reductions() const {
    const ReductionMode given = given_.communication().gradient_reduction();
    if (given != REDUCTION_UNSPECIFIED) return {given};
    if (!shape_.replicated()) return {REDUCTION_BLOCKING};
    return {REDUCTION_OVERLAPPED, REDUCTION_BLOCKING};
  }

  // Returns one order if all are the same.
  std::vector<std::string> Orders() const {
    std::vector<std::string> orders(space_.orders().begin(),
                                    space_.orders().end());
    if (orders.empty()) orders = {"tp-dp-pp", "tp-pp-dp"};
    if (!shape_.replicated() || shape_.pipeline == 1) orders.resize(1);
    return orders;
  }

  std::vector<int> Chunks() const {
    if (!space_.chunks().empty()) return Sorted(space_.chunks());
    if (shape_.pipeline == 1 && shape_.sharding != Sharding::kFull) return {1};
    if (space_.schedules().empty() && shape_.pipeline < min_ranks_) return {1};
    std::set<int> chunks = {1};
    for (int n = 2; n <= kMostChunks; ++n) {
      if (shape_.pipeline * n <= num_blocks_) chunks.insert(n);
    }
    for (std::string name : space_.schedules()) {
      const auto stated = schedules::TakeChunks(&name);
      if (stated.ok() && *stated > 0) chunks.insert(*stated);
    }
    return {chunks.begin(), chunks.end()};
  }

  const PlanSpace& space_;
  const Scenario& given_;
  const scenarios::ResolvedScenario& base_;
  const int num_blocks_;
  const int min_ranks_;  // to interleave
  const int global_batch_;
  bool half_of_stage_ = false;  // recomputed
  Shape shape_;
  std::vector<Shape> shapes_;
};

void SetMemoryLimit(const PlanRequest& request, Space* space) {
  double bytes = space->base.device.memory_bytes().value();
  for (const DeviceProfile& other : space->base.other_devices) {
    bytes = std::max(bytes, other.memory_bytes().value());
  }
  const double limit = request.memory_limit_bytes();
  double margin = request.memory_margin();
  // A given limit is the limit, without a margin that was not asked for.
  if (!request.has_memory_margin() && limit == 0) {
    // The interval of the first device represents that of all.
    margin =
        sim::MemoryMargin(space->base, bytes, space->base.placement.num_gpus());
  }
  space->memory_part = 1 - margin;
  bytes *= space->memory_part;
  space->memory_limit_bytes = limit > 0 ? std::min(limit, bytes) : bytes;
}

}  // namespace

absl::StatusOr<Space> MakeSpace(const std::string& label,
                                const PlanRequest& request) {
  RETURN_IF_ERROR(CheckRequest(label, request));
  Space space;
  ASSIGN_OR_RETURN(space.base, ResolveBase(label, request));
  RETURN_IF_ERROR(CheckGpus(label, request.space(), space.base));
  Shapes shapes(request, space.base);
  space.recomputes = shapes.Recomputes();
  space.shapes = shapes.All();
  for (const Shape& shape : space.shapes) {
    if (space.schedules.size() <= static_cast<size_t>(shape.pipeline)) {
      space.schedules.resize(shape.pipeline + 1);
    }
    auto& schedules = space.schedules[shape.pipeline];
    if (!schedules.empty()) continue;
    ASSIGN_OR_RETURN(schedules,
                     SchedulesToPlan(label, request.space(), shape.pipeline,
                                     space.base.runtime));
    for (PlannedSchedule& schedule : schedules) {
      const std::string name(schedules::WithoutOptions(schedule.name));
      if (ListsSchedule(space.base.runtime, name)) {
        schedule.min_ranks_to_interleave =
            MinRanksOf(request.space(), space.base);
      }
      auto& names = space.schedule_names;
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  space.schedules_of_runtime = request.space().schedules().empty() &&
                               !request.space().any_runtime() &&
                               !space.base.runtime.schedules().empty();
  SetMemoryLimit(request, &space);
  return space;
}

}  // namespace weir::plan
