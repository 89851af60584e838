// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/bound.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/bounded_cache.h"
#include "base/status_macros.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "schedules/stages_by_rank.h"
#include "schedules/validate.h"
#include "sim/bounds/least_memory.h"
#include "sim/bounds/link_loads.h"
#include "sim/bounds/order_free_bound.h"
#include "sim/bounds/pass_order.h"
#include "sim/bounds/uncontended_costs.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"
#include "sim/fast/steady.h"
#include "sim/graph/symmetries.h"
#include "sim/prepare.h"
#include "sim/report/window.h"

namespace weir::sim {
namespace {

// A schedule and everything that follows from it alone.
struct Shape {
  // If it is long, with the actions of a shortened schedule.
  schedules::Schedule schedule;
  schedules::Semantics semantics;
  std::optional<PassOrder> order;  // absent if it is long
  Traffic traffic;
  bool is_plain = false;  // see IsPlain
};

// Returns true if Simulate runs as many batches as show a period (without a
// flush only).
bool FindsPeriod(const scenarios::ResolvedScenario& scenario) {
  return scenario.scenario.num_batches() == 0 &&
         !schedules::IsScheduleFile(scenario.scenario.schedule());
}

bool IsBlocking(const scenarios::ResolvedScenario& scenario) {
  return scenario.scenario.communication().transfers() == BLOCKING;
}

// Returns the time of the steps of a batch (without a flush only).
double StepsOfBatch(const schedules::Schedule& schedule,
                    const std::vector<int>& stages, double steps) {
  int updates = schedule.num_microbatches;
  for (int stage : stages) {
    updates = std::min(updates, schedule.num_microbatches /
                                    schedule.microbatches_per_update(stage));
  }
  return updates * steps;
}

std::vector<double> TailsOf(const schedules::Schedule& schedule,
                            const UncontendedCosts& seconds) {
  const std::vector<std::vector<int>> stages =
      schedules::StagesByRank(schedule);
  std::vector<double> tails;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const double steps = seconds.OfSteps(rank);
    tails.push_back(
        schedule.flush ? steps : StepsOfBatch(schedule, stages[rank], steps));
  }
  return tails;
}

double LongestPathOf(const PassOrder& order, const std::vector<double>& tails,
                     UncontendedCosts* seconds, PassOrder::Buffers* buffers) {
  std::vector<double> passes, hops;
  for (const PassKind& kind : order.passes()) {
    passes.push_back(seconds->OfPass(kind));
  }
  for (const HopKind& hop : order.hops()) hops.push_back(seconds->OfHop(hop));
  return order.Makespan(passes, hops, tails, buffers);
}

// Returns the schedule without most of its periods, or std::nullopt if it is
// not long or its microbatches would then take other routes.
std::optional<schedules::Schedule> ShortOf(
    const schedules::Schedule& schedule) {
  if (NumActions(schedule) <= kMostOrderedActions || !UpdatesOnce(schedule)) {
    return std::nullopt;
  }
  std::optional<ShortenedSchedule> shortened = ShortenSchedule(schedule);
  if (!shortened.has_value() || shortened->num_lanes > 1 ||
      !schedules::FindScheduleProblems(shortened->schedule, 1).empty()) {
    return std::nullopt;
  }
  return std::move(shortened->schedule);
}

}  // namespace

PlanBound BoundOfRun(const PipelineInputs& inputs, const Representatives& gpus,
                     const PassOrder* order, bool finds_period,
                     PassOrder::Buffers* buffers, bool overlaps_batches) {
  const schedules::Schedule& schedule = inputs.schedule;
  UncontendedCosts seconds(inputs, gpus);
  const std::vector<double> tails = TailsOf(schedule, seconds);
  PlanBound bound;
  const OrderFreeBound order_free(inputs, &seconds, tails);
  bound.any_order_seconds = order_free.seconds();
  if (overlaps_batches) {
    bound.any_order_seconds = 0;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      bound.any_order_seconds = std::max(bound.any_order_seconds,
                                         order_free.WorkOf(rank) + tails[rank]);
    }
    bound.batch_seconds = bound.any_order_seconds;
    bound.peak_bytes = LeastPeakBytes(inputs);
    return bound;
  }
  if (schedule.flush) {
    if (order != nullptr) {
      bound.batch_seconds = LongestPathOf(*order, tails, &seconds, buffers);
    }
    const LinkLoads loads(inputs, gpus, order_free, &seconds);
    const bool early = loads.reduces_early();
    bound.any_order_seconds = std::max(
        bound.any_order_seconds, loads.Seconds([&](int rank, int stage) {
          return early ? order_free.StartOfLastGradient(rank, stage)
                       : order_free.EndOfPasses(rank);
        }));
    if (order != nullptr) {
      bound.batch_seconds =
          std::max(bound.batch_seconds, loads.Seconds([&](int rank, int stage) {
            return early ? order->StartOfLastGradient(rank, stage, *buffers)
                         : order->EndOfPasses(rank, *buffers);
          }));
    }
  } else if (!finds_period) {
    // Between the ends of batches i and i + n, a rank of the first stage runs
    // all its passes of n batches, so its work per batch bounds the period.
    for (int rank : schedule.RanksOf(0)) {
      bound.batch_seconds =
          std::max(bound.batch_seconds, order_free.WorkOf(rank));
    }
  }
  if (schedule.flush || finds_period) {
    bound.batch_seconds =
        std::max(bound.batch_seconds, bound.any_order_seconds);
  }
  bound.peak_bytes = LeastPeakBytes(inputs);
  return bound;
}

class Bounder::Impl {
 public:
  absl::StatusOr<PlanBound> Bound(const scenarios::ResolvedScenario& scenario,
                                  double limit_bytes) {
    const scenarios::Network& network = KeptNetworkOf(scenario);
    ASSIGN_OR_RETURN(const std::shared_ptr<const Shape> shape,
                     ShapeOf(scenario, network));
    ASSIGN_OR_RETURN(const Costs* costs, CostsOf(scenario, network, *shape));
    ASSIGN_OR_RETURN(bool overlaps_batches, PostValidates(scenario));
    if (shape->schedule.forward_only) overlaps_batches = false;
    const PipelineInputs inputs{
        shape->schedule, shape->semantics,   *costs,
        network,         scenario.placement, scenario.scenario.communication()};
    if (limit_bytes < kInfinity) {
      PlanBound bound;
      bound.peak_bytes = LeastPeakBytes(inputs);
      for (const double bytes : bound.peak_bytes) {
        if (bytes > limit_bytes) return bound;
      }
    }
    // Without a flush only passes count, which seldom share links.
    std::shared_ptr<const SymmetryResult> symmetry;
    if (!network.links().empty() && shape->schedule.flush) {
      symmetry = symmetries_.SymmetryOf(scenario, network, shape->schedule,
                                        shape->traffic, *costs);
    }
    return BoundOfRun(inputs,
                      symmetry == nullptr
                          ? inputs.gpus
                          : symmetry->GpusOf(scenario.placement),
                      shape->order.has_value() ? &*shape->order : nullptr,
                      FindsPeriod(scenario), &buffers_, overlaps_batches);
  }

 private:
  // Returns the schedule that Simulate begins with; keyed by what determines
  // it.
  absl::StatusOr<std::shared_ptr<const Shape>> ShapeOf(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network) {
    const std::string& name = scenario.scenario.schedule();
    ASSIGN_OR_RETURN(const bool flush, schedules::ScheduleFlushes(name));
    const int given = static_cast<int>(scenario.scenario.num_batches());
    const int pipeline =
        static_cast<int>(scenario.scenario.parallelism().pipeline());
    const int num_batches =
        flush || given > 0 || schedules::IsScheduleFile(name)
            ? std::max(given, 1)
            : InitialBatches(pipeline, scenario.num_microbatches);
    const bool keeps = !schedules::OrdersByCosts(name);
    const std::string key = absl::StrCat(
        name, "\n", pipeline, " ", scenario.scenario.parallelism().chunks(),
        " ", scenario.num_microbatches, " ", num_batches, " ",
        IsBlocking(scenario));
    if (keeps) {
      if (auto known = shapes_.Find(key)) return known;
    }
    ASSIGN_OR_RETURN(std::shared_ptr<const Shape> shape,
                     MakeShape(scenario, network, num_batches));
    if (!keeps) return shape;
    return shapes_.Add(key, NumActions(shape->schedule), shape);
  }

  static absl::StatusOr<std::shared_ptr<const Shape>> MakeShape(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network, int num_batches) {
    ASSIGN_OR_RETURN(schedules::Schedule schedule,
                     ScheduleOf(scenario, network, num_batches));
    std::optional<schedules::Schedule> shortened = ShortOf(schedule);
    const int num_microbatches = schedule.num_microbatches;
    const schedules::WeightPolicy weights = schedule.weights;
    if (shortened.has_value()) schedule = *std::move(shortened);
    ASSIGN_OR_RETURN(schedules::Semantics semantics,
                     schedules::InterpretSchedule(schedule));
    std::optional<PassOrder> order(std::in_place, schedule,
                                   IsBlocking(scenario));
    if (!order->complete()) {
      return absl::FailedPreconditionError(
          absl::StrCat("deadlock: ", schedule.name,
                       " cannot run with blocking transfers; use overlapped "
                       "transfers"));
    }
    const bool is_plain = IsPlain(schedule);
    Traffic traffic = TrafficOf(schedule);
    // Bounds for any order also hold for orders that offload: GPUs are alike
    // only if their routes to the host are.
    if (schedule.flush && !schedule.forward_only) {
      traffic.offloads.resize(schedule.num_ranks);
      std::iota(traffic.offloads.begin(), traffic.offloads.end(), 0);
    }
    if (schedule.num_microbatches < num_microbatches) {
      schedule.num_microbatches = num_microbatches;
      schedule.weights = weights;
      order.reset();
    }
    return std::make_shared<const Shape>(
        Shape{std::move(schedule), std::move(semantics), std::move(order),
              std::move(traffic), is_plain});
  }

  const scenarios::Network& KeptNetworkOf(
      const scenarios::ResolvedScenario& scenario) {
    const std::string key =
        scenario.given_costs || scenario.scenario.cluster().empty()
            ? ""
            : absl::StrCat(scenario.scenario.cluster(), "\n",
                           scenario.scenario.num_nodes());
    if (network_ == nullptr || key.empty() || key != network_key_) {
      network_ = std::make_unique<scenarios::Network>(NetworkOf(scenario));
      network_key_ = key;
    }
    return *network_;
  }

  absl::StatusOr<const Costs*> CostsOf(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network, const Shape& shape) {
    const std::string key = CostsKey(scenario, shape);
    const auto at = costs_.find(key);
    if (at != costs_.end()) {
      PointTo(scenario, at->second.get());
      return at->second.get();
    }
    const std::vector<int> versions(shape.semantics.max_live_versions.begin(),
                                    shape.semantics.max_live_versions.end());
    ASSIGN_OR_RETURN(
        Costs costs,
        ComputeCosts(scenario, shape.schedule.num_stages, versions));
    RETURN_IF_ERROR(ApplySchedule(scenario, network, shape.schedule, &costs));
    if (costs_.size() >= kMostKept) costs_.clear();
    return (costs_[key] = std::make_unique<Costs>(std::move(costs))).get();
  }

  // Returns everything that costs depend on. The number of microbatches belongs
  // to it only with packed sequences (documents.h). Of most schedules, only the
  // placement of stages does.
  static std::string CostsKey(const scenarios::ResolvedScenario& resolved,
                              const Shape& shape) {
    Scenario scenario = resolved.scenario;
    scenario.clear_name();
    scenario.clear_schedule();
    scenario.clear_num_batches();
    scenario.clear_num_microbatches();
    scenario.mutable_batch()->clear_global_batch_size();
    scenario.mutable_communication()->clear_transfers();
    scenario.mutable_communication()->clear_gradient_reduction();
    std::string key = scenario.SerializeAsString();
    if (scenario.batch().has_packed_sequences()) {
      absl::StrAppend(&key, "\n", resolved.num_microbatches);
    }
    const schedules::Schedule& schedule = shape.schedule;
    absl::StrAppend(&key, "\n", schedule.num_stages, " ", schedule.flush,
                    schedule.forward_only, schedule.compressed_transfers, " ",
                    shape.is_plain ? "" : resolved.scenario.schedule());
    for (int s = 0; s + 1 < schedule.num_stages; ++s) {
      key += schedule.rank_of(s, 0) == schedule.rank_of(s + 1, 0) ? 'r' : '-';
    }
    for (int versions : shape.semantics.max_live_versions) {
      absl::StrAppend(&key, " ", versions);
    }
    return key;
  }

  // Returns true if it only has forwards and whole backwards, and no weight
  // estimates.
  static bool IsPlain(const schedules::Schedule& schedule) {
    if (schedule.weights.prediction !=
        schedules::WeightPolicy::Prediction::kNone) {
      return false;
    }
    for (const std::vector<schedules::Action>& actions :
         schedule.rank_actions) {
      for (const schedules::Action& action : actions) {
        if (action.op != schedules::Op::kForward &&
            action.op != schedules::Op::kBackward) {
          return false;
        }
      }
    }
    return true;
  }

  // Costs refer to the scenario for which they were computed.
  static void PointTo(const scenarios::ResolvedScenario& scenario,
                      Costs* costs) {
    const auto point = [](const DeviceProfile& device, DeviceCosts* of) {
      if (of->communicators != nullptr) {
        of->communicators = &device.collectives();
      }
      if (of->partition_slowdown != nullptr)
        of->partition_slowdown = &device.partition_slowdown();
    };
    if (costs->collectives != nullptr) {
      costs->collectives = &scenario.device.collectives();
    }
    if (costs->links != nullptr) costs->links = &scenario.device;
    point(scenario.device, costs);
    for (size_t i = 0; i < costs->other_devices.size(); ++i) {
      point(scenario.other_devices[i], &costs->other_devices[i]);
    }
  }

  static constexpr size_t kMostKept = 256;
  BoundedCache<Shape> shapes_{kMostKeptActions};
  std::unique_ptr<scenarios::Network> network_;
  std::string network_key_;
  absl::flat_hash_map<std::string, std::unique_ptr<Costs>> costs_;
  SymmetryCache symmetries_;
  PassOrder::Buffers buffers_;
};

Bounder::Bounder() : impl_(std::make_unique<Impl>()) {}
Bounder::~Bounder() = default;

absl::StatusOr<PlanBound> Bounder::Bound(
    const scenarios::ResolvedScenario& scenario, double limit_bytes) {
  return impl_->Bound(scenario, limit_bytes);
}

absl::StatusOr<PlanBound> BoundOf(const scenarios::ResolvedScenario& scenario) {
  return Bounder().Bound(scenario);
}

}  // namespace weir::sim
