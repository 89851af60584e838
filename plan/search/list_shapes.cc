// SPDX-License-Identifier: Apache-2.0
#include "plan/search/list_shapes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "plan/search/interleaving.h"
#include "plan/search/layouts.h"
#include "plan/search/list_recomputes.h"
#include "plan/search/space.h"
#include "scenarios/cluster/slow_parts.h"
#include "schedules/options.h"

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

class Shapes {
 public:
  Shapes(const PlanRequest& request, const scenarios::ResolvedScenario& base)
      : space_(request.space()),
        given_(request.scenario()),
        base_(base),
        num_blocks_(NumBlocks(base.model)),
        has_slow_gpus_(!scenarios::SlowGpus(base.cluster).empty()),
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

 private:
  void AddWays() {
    for (const models::Recompute& recompute : RecomputesOf(space_, base_)) {
      AddSharings(recompute);
    }
    half_of_stage_ = ListsHalfOfStages(space_);
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
          AddTechniques();
        }
      }
    }
  }

  void AddTechniques() {
    for (const VocabularyParallel vocabulary : Vocabularies()) {
      for (const int blocks : OffloadedBlocks()) {
        for (const double part : OptimizerOffloads()) {
          for (const bool experts : ExpertOverlaps()) {
            for (const TensorOverlap tensor : TensorOverlaps()) {
              shape_.vocabulary = vocabulary;
              shape_.offloaded_blocks = blocks;
              shape_.optimizer_offload = part;
              shape_.expert_overlap = experts;
              shape_.tensor_overlap = tensor;
              AddStages();
            }
          }
        }
      }
    }
  }

  std::vector<VocabularyParallel> Vocabularies() const {
    std::set<VocabularyParallel> all;
    for (const int mode : space_.vocabulary_parallel()) {
      all.insert(Sharded(static_cast<VocabularyParallel>(mode)));
    }
    if (all.empty()) {
      all.insert(Sharded(given_.parallelism().vocabulary_parallel()));
    }
    return {all.begin(), all.end()};
  }

  VocabularyParallel Sharded(VocabularyParallel mode) const {
    return shape_.pipeline == 1 || mode == VOCABULARY_NOT_SHARDED
               ? VOCABULARY_PARALLEL_UNSPECIFIED
               : mode;
  }

  std::vector<int> OffloadedBlocks() const {
    if (!space_.cpu_offloading_num_layers().empty()) {
      return Sorted(space_.cpu_offloading_num_layers());
    }
    return {static_cast<int>(given_.training().cpu_offloading_num_layers())};
  }

  std::vector<double> OptimizerOffloads() const {
    const auto& listed = space_.optimizer_offload_fraction();
    const std::set<double> all(listed.begin(), listed.end());
    if (!all.empty()) return {all.begin(), all.end()};
    return {given_.training().optimizer_offload_fraction()};
  }

  std::vector<bool> ExpertOverlaps() const {
    const auto& listed = space_.overlap_expert_exchange();
    std::set<bool> all(listed.begin(), listed.end());
    if (all.empty())
      all.insert(given_.communication().overlap_expert_exchange());
    if (shape_.expert == 1) all = {false};
    return {all.begin(), all.end()};
  }

  std::vector<TensorOverlap> TensorOverlaps() const {
    const auto of = [](bool on) {
      return on ? TensorOverlap::kOn : TensorOverlap::kOff;
    };
    std::set<TensorOverlap> all;
    for (const bool on : space_.tp_comm_overlap()) all.insert(of(on));
    const Communication& given = given_.communication();
    if (all.empty() && given.has_tp_comm_overlap()) {
      all.insert(of(given.tp_comm_overlap()));
    }
    if (all.empty()) all.insert(TensorOverlap::kOfRuntime);
    if (shape_.tensor == 1 || !shape_.sequence_parallel) {
      all = {*all.begin()};
    }
    return {all.begin(), all.end()};
  }

  void AddStages() {
    for (const int chunks : Chunks()) {
      if (shape_.vocabulary != VOCABULARY_PARALLEL_UNSPECIFIED && chunks > 1) {
        continue;
      }
      for (const Cut cut : kAllCuts) {
        if (cut != Cut::kEven &&
            (space_.even_layers_only() || shape_.pipeline * chunks < 2)) {
          continue;
        }
        if (cut == Cut::kMtpApart && !HasMtpApart(chunks)) continue;
        if (cut == Cut::kSpeeds && !has_slow_gpus_) continue;
        if (cut == Cut::kEven && !HasEvenCut(chunks)) continue;
        shape_.chunks = chunks;
        shape_.cut = cut;
        if (half_of_stage_) {
          const int half = num_blocks_ / (2 * shape_.pipeline * chunks);
          if (half == 0) continue;
          shape_.recompute = FirstBlocks(half);
        }
        // Consecutive shapes differ only in communication between stages and
        // replicas, so that workers can reuse the estimate of the previous one.
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

  // Returns numbers of GPUs that share an expert; 0: the tensor-parallel size.
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
    // Experts need sequence parallelism.
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
      // Weights of experts that are already divided are seldom sharded further.
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
  const bool has_slow_gpus_;
  const int min_ranks_;  // to interleave
  const int global_batch_;
  bool half_of_stage_ = false;  // recomputed
  Shape shape_;
  std::vector<Shape> shapes_;
};

}  // namespace

int MinRanksOf(const PlanSpace& space,
               const scenarios::ResolvedScenario& base) {
  return space.any_runtime() ? 1
                             : MinRanksToInterleave(
                                   base.runtime, base.scenario.communication());
}

std::vector<Shape> ListShapes(const PlanRequest& request,
                              const scenarios::ResolvedScenario& base) {
  return Shapes(request, base).All();
}

}  // namespace weir::plan
