// SPDX-License-Identifier: Apache-2.0
#include "plan/search/evaluate.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "plan/search/same_order.h"
#include "scenarios/cluster/slow_parts.h"
#include "schedules/schedule.h"
#include "sim/costs/stage_costs.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

// Returns a schedule that takes every number of microbatches and chunks, or
// the only one that shards the vocabulary.
std::string AnyScheduleFor(const Shape& shape) {
  return shape.vocabulary == VOCABULARY_PARALLEL_UNSPECIFIED ? "breadth-first"
                                                             : "1f1b";
}

double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Returns a lower bound on the peak bytes of the worst rank, for any placement
// of stages and any order of passes. The rank of each stage holds its state
// and, at some time, the saved activations of one microbatch. `weights_only`:
// there are no backward passes, so only weights count.
double LeastBytes(const std::vector<sim::StageTotals>& stages,
                  double reserved_bytes, int num_ranks, bool weights_only) {
  double largest = 0, sum = 0;
  for (const sim::StageTotals& stage : stages) {
    double bytes = stage.weight_bytes;
    if (!weights_only) bytes += stage.training_bytes;
    sum += bytes;
    if (!weights_only) bytes += stage.saved_bytes;
    largest = std::max(largest, bytes);
  }
  return std::max(largest, sum / num_ranks) + reserved_bytes;
}

// Returns a lower bound on the time of a batch: all passes, divided evenly
// among the ranks, on the fastest device.
double WorkSeconds(const std::vector<sim::StageTotals>& stages, int num_ranks,
                   int num_microbatches, bool forward_only) {
  double sum = 0;
  for (const sim::StageTotals& stage : stages) {
    sum += forward_only ? stage.forward_seconds : stage.seconds;
  }
  return sum / num_ranks * num_microbatches;
}

SearchEstimate Invalid(const absl::Status& status) {
  SearchEstimate estimate;
  estimate.set_problem(std::string(status.message()));
  if (estimate.problem().empty()) estimate.set_problem(status.ToString());
  return estimate;
}

// Returns the recomputation of a block whose stage is not known, for cuts into
// stages: every stage recomputes the same number of blocks.
models::Recompute CutRecompute(const models::Recompute& recompute) {
  if (!recompute.by_stage()) return recompute;
  return recompute.method() == RECOMPUTE_UNIFORM ? RECOMPUTE_FULL
                                                 : RECOMPUTE_NONE;
}

}  // namespace

absl::StatusOr<const LayerPrice*> Evaluator::PriceOf(const Shape& shape) {
  const auto key = std::make_tuple(
      shape.num_gpus(), shape.tensor, shape.context, shape.expert,
      shape.expert_tensor, shape.microbatch_size, CutRecompute(shape.recompute),
      shape.sequence_parallel, shape.sharding, shape.tensor_overlap,
      shape.optimizer_offload);
  const auto found = prices_.find(key);
  if (found != prices_.end()) return found->second;
  // Layers are priced before they are cut into stages, on all GPUs, among which
  // the slowest counts.
  Shape whole = shape;
  whole.chunks = 1;
  whole.pipeline = 1;
  whole.data = shape.data * shape.pipeline;
  whole.recompute = CutRecompute(shape.recompute);
  // These do not change layers, or depend on stages.
  whole.expert_overlap = false;
  whole.vocabulary = VOCABULARY_PARALLEL_UNSPECIFIED;
  whole.offloaded_blocks = 0;
  Scenario scenario =
      ScenarioOfShape(space_.base.scenario, whole, AnyScheduleFor(whole));
  scenario.mutable_batch()->set_global_batch_size(whole.data *
                                                  whole.microbatch_size);
  RETURN_IF_ERROR(scenarios::ResolveAgain(scenario, &work_));
  ASSIGN_OR_RETURN(LayerPrice price, PriceLayers(work_));
  // Equal prices have the same cuts.
  const auto same =
      std::find_if(distinct_prices_.begin(), distinct_prices_.end(),
                   [&](const auto& known) { return *known == price; });
  if (same != distinct_prices_.end()) return prices_[key] = same->get();
  distinct_prices_.push_back(std::make_unique<LayerPrice>(std::move(price)));
  return prices_[key] = distinct_prices_.back().get();
}

absl::StatusOr<bool> Evaluator::RecomputesInVain(const Shape& shape,
                                                 const LayerPrice* price) {
  // Its effect depends on the cut.
  if (shape.recompute.by_stage()) return false;
  for (const models::Recompute& mode : space_.recomputes) {
    if (mode == shape.recompute) break;
    Shape other = shape;
    other.recompute = mode;
    ASSIGN_OR_RETURN(const LayerPrice* known, PriceOf(other));
    if (known == price) return true;
  }
  return false;
}

bool Evaluator::RecomputesAllOrNone(const Shape& shape) const {
  const models::Recompute& recompute = shape.recompute;
  if (!recompute.by_stage()) return false;
  const auto has = [&](RecomputeMode mode) {
    return std::find(space_.recomputes.begin(), space_.recomputes.end(),
                     models::Recompute(mode)) != space_.recomputes.end();
  };
  const int even =
      (NumBlocks(space_.base.model) - 1) / (shape.pipeline * shape.chunks) + 1;
  const int most =
      shape.blocks.empty()
          ? even
          : *std::max_element(shape.blocks.begin(), shape.blocks.end());
  switch (recompute.method()) {
    case RECOMPUTE_BLOCK:
      return recompute.num_layers() >= most && has(RECOMPUTE_FULL);
    case RECOMPUTE_EVERY:
      return recompute.num_layers() > most && has(RECOMPUTE_NONE);
    default:
      return false;
  }
}

// Returns an error if no schedule of the shape interleaves its chunks on so few
// ranks.
absl::Status Evaluator::CheckInterleaves(const Shape& shape) const {
  int least = std::numeric_limits<int>::max();
  if (space_.schedules_of(shape).empty()) return absl::OkStatus();
  bool others = false;  // schedules that may have the shape's chunks
  for (const PlannedSchedule& schedule : space_.schedules_of(shape)) {
    if (Interleaves(schedule, shape)) return absl::OkStatus();
    if (schedule.chunks > 0 && schedule.chunks != shape.chunks) continue;
    others = true;
    least = std::min(least, schedule.min_ranks_to_interleave);
  }
  if (!others) {
    return absl::InvalidArgumentError(
        absl::StrCat(space_.base.label, ": parallelism.chunks is ",
                     shape.chunks, ", expected those of the given schedules"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      space_.base.label, ": parallelism.pipeline is ", shape.pipeline,
      ", expected at least ", least, " with ", shape.chunks,
      " chunks, as the runtime ", space_.base.runtime.name(),
      " interleaves only on that many ranks or more"));
}

absl::StatusOr<Evaluator::Totals> Evaluator::TotalsOf(const Shape& shape,
                                                      int num_stages) {
  Totals totals;
  if (!sim::LayerTotals::CanSum(work_)) {
    ASSIGN_OR_RETURN(
        const sim::Costs costs,
        sim::ComputeCosts(work_, num_stages, std::vector<int>(num_stages, 1)));
    totals.stages = sim::TotalsOf(costs);
    totals.reserved_bytes = sim::ReservedBytesOf(costs);
    return totals;
  }
  // Layers do not depend on these.
  Shape key = shape;
  key.pipeline = key.data_replicate = key.chunks = 1;
  key.data = shape.num_gpus() / (shape.tensor * shape.context);
  key.cut = Cut::kEven;
  key.blocks.clear();
  key.order.clear();
  key.reduction = REDUCTION_UNSPECIFIED;
  if (!layers_.has_value() || layers_of_ != key) {
    layers_.reset();
    ASSIGN_OR_RETURN(layers_, sim::LayerTotals::Of(work_));
    layers_of_ = std::move(key);
  }
  ASSIGN_OR_RETURN(totals.stages, layers_->OfStages(work_, num_stages));
  totals.reserved_bytes = layers_->reserved_bytes();
  return totals;
}

// Chunks are placed as in interleaved schedules: stage s is on rank s modulo
// the number of ranks.
absl::StatusOr<std::vector<double>> Evaluator::SpeedsOf(const Shape& shape) {
  Shape even = shape;
  even.cut = Cut::kEven;
  even.blocks.clear();
  even.chunks = 1;
  RETURN_IF_ERROR(scenarios::ResolveAgain(
      ScenarioOfShape(space_.base.scenario, even, AnyScheduleFor(even)),
      &work_));
  const scenarios::Placement& placement = work_.placement;
  const std::map<int, double> slow = scenarios::SlowGpus(work_.cluster);
  std::vector<double> of_ranks(shape.pipeline, 1);
  for (int replica = 0; replica < placement.data; ++replica) {
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      for (int t = 0; t < placement.tensor; ++t) {
        const auto found = slow.find(placement.gpu(replica, rank, t));
        if (found == slow.end()) continue;
        of_ranks[rank] = std::min(of_ranks[rank], found->second);
      }
    }
  }
  std::vector<double> speeds;
  for (int stage = 0; stage < shape.pipeline * shape.chunks; ++stage) {
    speeds.push_back(of_ranks[stage % shape.pipeline]);
  }
  return speeds;
}

absl::Status Evaluator::CutAndBound(Shape* shape, SearchEstimate* estimate) {
  RETURN_IF_ERROR(CheckInterleaves(*shape));
  ASSIGN_OR_RETURN(const LayerPrice* price, PriceOf(*shape));
  ASSIGN_OR_RETURN(const bool in_vain, RecomputesInVain(*shape, price));
  estimate->set_absent(in_vain);
  if (in_vain) return absl::OkStatus();
  const int num_stages = shape->pipeline * shape->chunks;
  std::vector<double> speeds;
  if (shape->cut == Cut::kSpeeds) {
    ASSIGN_OR_RETURN(speeds, SpeedsOf(*shape));
  }
  const auto [cut, is_new] =
      cuts_.try_emplace({price, num_stages, shape->cut, speeds});
  if (is_new) cut->second = CutBlocks(*price, num_stages, shape->cut, speeds);
  const auto& blocks = cut->second;
  if (blocks.has_value() && shape->cut != Cut::kEven) shape->blocks = *blocks;
  // Without an even cut, the checks below report an error. A shape without
  // another kind of cut is absent.
  estimate->set_absent(!blocks.has_value() && shape->cut != Cut::kEven);
  if (RecomputesAllOrNone(*shape)) estimate->set_absent(true);
  if (estimate->absent()) return absl::OkStatus();
  estimate->mutable_blocks()->Assign(shape->blocks.begin(),
                                     shape->blocks.end());
  RETURN_IF_ERROR(scenarios::ResolveAgain(
      ScenarioOfShape(space_.base.scenario, *shape, AnyScheduleFor(*shape)),
      &work_));
  ASSIGN_OR_RETURN(const Totals totals, TotalsOf(*shape, num_stages));
  const bool forward_only = std::any_of(
      space_.schedules_of(*shape).begin(), space_.schedules_of(*shape).end(),
      [](const PlannedSchedule& s) { return s.forward_only; });
  estimate->set_seconds(WorkSeconds(totals.stages, shape->pipeline,
                                    work_.num_microbatches, forward_only));
  estimate->set_bytes(LeastBytes(totals.stages, totals.reserved_bytes,
                                 shape->pipeline, forward_only));
  if (space_.power.has_value()) {
    estimate->set_active_joules(
        estimate->seconds() * shape->num_gpus() *
        std::max(space_.power->compute_watts().value() -
                     space_.power->waiting_watts().value(),
                 0.0));
  }
  if (estimate->bytes() > space_.memory_limit_bytes) {
    std::vector<sim::StageTotals> stages = totals.stages;
    for (sim::StageTotals& stage : stages) {
      stage.training_bytes -= stage.optimizer_bytes;
    }
    estimate->set_bytes_without_optimizer(LeastBytes(
        stages, totals.reserved_bytes, shape->pipeline, forward_only));
  }
  return absl::OkStatus();
}

SearchEstimate Evaluator::OfShape(Shape shape) {
  // Neither orders of GPUs nor modes of reductions change what is estimated.
  Shape key = shape;
  if (shape.cut != Cut::kSpeeds) key.order.clear();
  key.reduction = REDUCTION_UNSPECIFIED;
  if (last_shape_ == key) return last_estimate_;
  SearchEstimate estimate;
  const absl::Status status = CutAndBound(&shape, &estimate);
  last_shape_ = std::move(key);
  last_estimate_ = status.ok() ? std::move(estimate) : Invalid(status);
  return last_estimate_;
}

SearchEstimate Evaluator::BoundsOf(const Scenario& scenario,
                                   double limit_bytes) {
  const absl::Status resolved = scenarios::ResolveAgain(scenario, &work_);
  if (!resolved.ok()) return Invalid(resolved);
  const auto bound = bounder_.Bound(work_, limit_bytes);
  if (!bound.ok()) return Invalid(bound.status());
  SearchEstimate estimate;
  estimate.set_seconds(bound->batch_seconds);
  estimate.set_order_free_seconds(bound->any_order_seconds);
  estimate.set_bytes(Largest(bound->peak_bytes));
  return estimate;
}

SearchEstimate Evaluator::OrderOf(const Scenario& scenario) {
  const absl::Status resolved = scenarios::ResolveAgain(scenario, &work_);
  if (!resolved.ok()) return Invalid(resolved);
  const auto schedule = sim::ScheduleOfScenario(work_, 1);
  if (!schedule.ok()) return Invalid(schedule.status());
  SearchEstimate estimate;
  estimate.set_order(schedules::OrderHash(*schedule));
  return estimate;
}

SearchEstimate Evaluator::RankOf(const Scenario& scenario) {
  const absl::Status resolved = scenarios::ResolveAgain(scenario, &work_);
  if (!resolved.ok()) return Invalid(resolved);
  if (!fast_simulator_.has_value()) fast_simulator_.emplace();
  const bool has_power = space_.power.has_value();
  const auto run = fast_simulator_->Estimate(work_, has_power);
  if (!run.ok()) return Invalid(run.status());
  SearchEstimate estimate;
  estimate.set_seconds(run->batch_seconds);
  estimate.set_bytes(Largest(run->peak_bytes));
  estimate.set_fits(run->fits_memory);
  if (has_power) {
    const double waiting = space_.power->waiting_watts().value();
    estimate.set_active_joules(
        work_.placement.num_gpus() *
        (run->compute_seconds *
             (space_.power->compute_watts().value() - waiting) +
         run->communication_seconds *
             (space_.power->communication_watts().value() - waiting)));
  }
  return estimate;
}

SearchResult Evaluator::Evaluate(const SearchJob& job) {
  SearchResult answer;
  for (const uint32_t shape : job.shapes()) {
    *answer.add_estimates() = OfShape(space_.At(static_cast<int>(shape)));
  }
  for (const Scenario& scenario : job.scenarios()) {
    SearchEstimate& estimate = *answer.add_estimates();
    switch (job.kind()) {
      case SearchJob::RANKS:
        estimate = RankOf(scenario);
        break;
      case SearchJob::ORDERS:
        estimate = OrderOf(scenario);
        break;
      default:
        estimate = BoundsOf(
            scenario, job.limit_bytes() > 0 ? job.limit_bytes() : kInfinity);
    }
  }
  return answer;
}

}  // namespace weir::plan
