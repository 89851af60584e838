// SPDX-License-Identifier: Apache-2.0
#include "sim/bound.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/source.h"
#include "schedules/validate.h"
#include "sim/least_memory.h"
#include "sim/lone_seconds.h"
#include "sim/pass_order.h"
#include "sim/schedule_costs.h"
#include "sim/simulate.h"
#include "sim/stage_costs.h"
#include "sim/window.h"

namespace weir {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A schedule and what follows from it alone.
struct Shape {
  Schedule schedule;
  Semantics semantics;
  PassOrder order;
  bool is_plain = false;  // it runs passes and nothing else
};

// Without a flush: does Simulate take as many batches as show a period?
bool FindsPeriod(const ResolvedScenario& scenario) {
  return scenario.scenario.num_batches() == 0 &&
         !IsScheduleFile(scenario.scenario.schedule());
}

bool IsBlocking(const ResolvedScenario& scenario) {
  return scenario.scenario.communication().transfers() == BLOCKING;
}

// Ways of single microbatches and sums of passes, for any order.
class AnyOrder {
 public:
  AnyOrder(const PipelineInputs& inputs, LoneSeconds* seconds)
      : in_(inputs), schedule_(inputs.schedule), seconds_(*seconds) {
    for (const std::vector<Action>& actions : schedule_.rank_actions) {
      for (const Action& action : actions) {
        span_ = std::max<int>(span_, action.num_microbatches);
      }
    }
  }

  // Of one batch; after Seconds().
  double WorkOf(int rank) const { return work_[rank]; }

  double Seconds(std::span<const double> tail_seconds) {
    const int num_routes = schedule_.num_routes();
    work_.assign(schedule_.num_ranks, 0);
    weights_.assign(schedule_.num_ranks, 0);
    before_.assign(schedule_.num_ranks, kNever);
    behind_.assign(schedule_.num_ranks, kNever);
    least_input_.assign(schedule_.num_ranks, kNever);
    double longest = 0;
    for (int route = 0; route < num_routes; ++route) {
      longest = std::max(longest, AddRoute(route));
    }
    if (!schedule_.forward_only) {
      for (int rank = 0; rank < schedule_.num_ranks; ++rank) SetPaired(rank);
    }
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      if (before_[rank] == kNever) continue;  // no microbatch comes here
      const double tail = tail_seconds[rank];
      const double all = work_[rank] + tail;
      if (!schedule_.flush) {
        longest = std::max(longest, all);
        continue;
      }
      longest = std::max(longest, before_[rank] + all);
      longest = std::max(longest, before_[rank] + work_[rank] - weights_[rank] +
                                      behind_[rank]);
    }
    return longest;
  }

 private:
  int NumMicrobatches(int route) const {
    const int turn = schedule_.microbatches_per_route_turn;
    const int round = turn * schedule_.num_routes();
    const int m = schedule_.num_microbatches;
    if (schedule_.num_routes() == 1) return m;
    return m / round * turn + std::clamp(m % round - route * turn, 0, turn);
  }

  // One microbatch of so many that are done in one piece, which together take
  // no longer than one by one.
  double OfPass(int rank, Op op, int stage, int route, int span) {
    const int microbatch = schedule_.num_routes() == 1
                               ? 0
                               : route * schedule_.microbatches_per_route_turn;
    const Action action = {op, stage, microbatch, static_cast<uint16_t>(span)};
    return seconds_.OfPass({rank, action, std::nullopt}) / span;
  }

  // Adds its passes to their ranks; returns its shortest way with a flush.
  double AddRoute(int route) {
    const std::vector<int>& ranks = schedule_.routes[route];
    const int count = NumMicrobatches(route);
    if (count == 0) return 0;
    double way = 0;
    std::vector<double> forwards(schedule_.num_stages);
    for (int s = 0; s < schedule_.num_stages; ++s) {
      const int rank = ranks[s];
      if (s > 0 && ranks[s - 1] != rank) {
        way += seconds_.OfHop({ranks[s - 1], rank, s - 1, true, 1});
      }
      before_[rank] = std::min(before_[rank], way);
      forwards[s] = OfPass(rank, Op::kForward, s, route, 1);
      way += forwards[s];
      const double seconds = OfPass(rank, Op::kForward, s, route, span_);
      work_[rank] += count * seconds;
      forwards_.push_back({rank, s, count, seconds});
    }
    if (schedule_.forward_only) {
      AddWaysOut(ranks, forwards);
      return schedule_.flush ? way : 0;
    }
    double back = 0;
    for (int s = 0; s < schedule_.num_stages; ++s) {
      const int rank = ranks[s];
      if (s > 0 && ranks[s - 1] != rank) {
        back += seconds_.OfHop({rank, ranks[s - 1], s, false, 1});
      }
      behind_[rank] = std::min(behind_[rank], back);
      back += AddBackward(rank, s, route, count);
    }
    return schedule_.flush ? way + back : 0;
  }

  void AddWaysOut(const std::vector<int>& ranks,
                  const std::vector<double>& forwards) {
    double way = 0;
    for (int s = schedule_.num_stages - 1; s >= 0; --s) {
      const int rank = ranks[s];
      if (s + 1 < schedule_.num_stages && ranks[s + 1] != rank) {
        way += seconds_.OfHop({rank, ranks[s + 1], s, true, 1});
      }
      behind_[rank] = std::min(behind_[rank], way);
      way += forwards[s];
    }
  }

  // Returns what the input gradient takes at least.
  double AddBackward(int rank, int s, int route, int count) {
    const StageCosts& stage = in_.costs.of(in_.placement.index(0, rank, 0), s);
    const bool splits = stage.backward_input_seconds >= 0;
    const auto of = [&](Op op, int span) {
      return OfPass(rank, op, s, route, span);
    };
    const auto input_of = [&](int span) {
      const double fused = of(Op::kBackward, span);
      return splits ? std::min(fused, of(Op::kBackwardInput, span)) : fused;
    };
    double least = of(Op::kBackward, span_);
    const double input = input_of(span_);
    if (splits) {
      least = std::min(least, of(Op::kBackwardInput, span_) +
                                  of(Op::kBackwardWeight, span_));
    }
    work_[rank] += count * least;
    weights_[rank] += count * (least - input);
    least_input_[rank] = std::min(least_input_[rank], input);
    return input_of(1);
  }

  // Where a forward and a backward that run together may be shorter than both:
  // each forward is in a pair, or leaves an input gradient without one.
  void SetPaired(int rank) {
    double paired = 0;
    bool pays = false;
    for (const Forwards& one : forwards_) {
      if (one.rank != rank) continue;
      const double both = one.seconds + least_input_[rank];
      const double given =
          in_.costs.of(in_.placement.index(0, rank, 0), one.stage)
              .overlapped_seconds;
      pays |= given >= 0;
      paired += one.count * (given >= 0 ? std::min(given, both) : both);
    }
    if (!pays || paired >= work_[rank]) return;
    work_[rank] = paired;
    weights_[rank] = 0;
  }

  struct Forwards {
    int rank, stage, count;
    double seconds;
  };

  const PipelineInputs& in_;
  const Schedule& schedule_;
  LoneSeconds& seconds_;
  int span_ = 1;  // most microbatches that it does in one piece
  // [rank]: of all its passes, and of these for weights' gradients.
  std::vector<double> work_, weights_;
  std::vector<double> least_input_;  // [rank]: shortest input gradient
  std::vector<Forwards> forwards_;
  // [rank]: shortest ways of a microbatch to it, and of what it makes back to
  // the first stage (on to the last in inference).
  std::vector<double> before_, behind_;
};

// Without a flush: the steps of a batch.
double StepsOfBatch(const Schedule& schedule, int rank, double steps) {
  int updates = schedule.num_microbatches;
  for (int stage : schedule.StagesOf(rank)) {
    updates = std::min(updates, schedule.num_microbatches /
                                    schedule.microbatches_per_update(stage));
  }
  return updates * steps;
}

std::vector<double> TailsOf(const Schedule& schedule, LoneSeconds* seconds) {
  std::vector<double> tails;
  const int first_rank = schedule.routes[0][0];
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const double tail =
        seconds->OfTail(rank, schedule.flush && rank == first_rank);
    tails.push_back(schedule.flush ? tail : StepsOfBatch(schedule, rank, tail));
  }
  return tails;
}

}  // namespace

PlanBound BoundOfRun(const PipelineInputs& inputs, const PassOrder& order,
                     bool finds_period, PassOrder::Buffers* buffers) {
  const Schedule& schedule = inputs.schedule;
  LoneSeconds seconds(inputs);
  const std::vector<double> tails = TailsOf(schedule, &seconds);
  PlanBound bound;
  AnyOrder any_order(inputs, &seconds);
  bound.any_order_seconds = any_order.Seconds(tails);
  if (schedule.flush) {
    std::vector<double> passes, hops;
    for (const PassKind& kind : order.passes()) {
      passes.push_back(seconds.OfPass(kind));
    }
    for (const HopKind& hop : order.hops()) hops.push_back(seconds.OfHop(hop));
    bound.batch_seconds = order.Makespan(passes, hops, tails, buffers);
  } else if (!finds_period) {
    // Between the ends of two batches their ranks do all passes of as many.
    for (int rank : schedule.RanksOf(0)) {
      bound.batch_seconds =
          std::max(bound.batch_seconds, any_order.WorkOf(rank));
    }
  }
  if (schedule.flush || finds_period) {
    bound.batch_seconds =
        std::max(bound.batch_seconds, bound.any_order_seconds);
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    bound.peak_bytes.push_back(LeastPeakBytes(inputs, rank));
  }
  return bound;
}

class Bounder::Impl {
 public:
  absl::StatusOr<PlanBound> Bound(const ResolvedScenario& scenario) {
    ASSIGN_OR_RETURN(const Shape* shape, ShapeOf(scenario));
    const Network& network = NetworkOf(scenario);
    ASSIGN_OR_RETURN(const Costs* costs, CostsOf(scenario, network, *shape));
    const PipelineInputs inputs{
        shape->schedule, shape->semantics,   *costs,
        network,         scenario.placement, scenario.scenario.communication()};
    return BoundOfRun(inputs, shape->order, FindsPeriod(scenario), &buffers_);
  }

 private:
  // The schedule that Simulate begins with, by what decides it.
  absl::StatusOr<const Shape*> ShapeOf(const ResolvedScenario& scenario) {
    const std::string& name = scenario.scenario.schedule();
    ASSIGN_OR_RETURN(const bool flush, ScheduleFlushes(name));
    const int given = static_cast<int>(scenario.scenario.num_batches());
    const int pipeline =
        static_cast<int>(scenario.scenario.parallelism().pipeline());
    const int num_batches =
        flush || given > 0 || IsScheduleFile(name)
            ? std::max(given, 1)
            : InitialBatches(pipeline, scenario.num_microbatches);
    bool keeps = true;
    if (!IsScheduleFile(name)) {
      ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name));
      keeps = !kind->uses_costs;
    }
    const std::string key = absl::StrCat(
        name, "\n", pipeline, " ", scenario.scenario.parallelism().chunks(),
        " ", scenario.num_microbatches, " ", num_batches, " ",
        IsBlocking(scenario));
    if (keeps) {
      const auto at = shapes_.find(key);
      if (at != shapes_.end()) return at->second.get();
    }
    ASSIGN_OR_RETURN(std::unique_ptr<Shape> shape,
                     MakeShape(scenario, num_batches));
    if (shapes_.size() >= kMostKept) shapes_.clear();
    return (shapes_[keeps ? key : ""] = std::move(shape)).get();
  }

  static absl::StatusOr<std::unique_ptr<Shape>> MakeShape(
      const ResolvedScenario& scenario, int num_batches) {
    ASSIGN_OR_RETURN(Schedule schedule,
                     ScheduleOfScenario(scenario, num_batches));
    RETURN_IF_ERROR(ValidateSchedule(schedule));
    ASSIGN_OR_RETURN(Semantics semantics, InterpretSchedule(schedule));
    PassOrder order(schedule, IsBlocking(scenario));
    if (!order.complete()) {
      return absl::FailedPreconditionError(
          absl::StrCat("deadlock: ", schedule.name,
                       " cannot run with blocking transfers; use overlapped "
                       "transfers"));
    }
    const bool is_plain = IsPlain(schedule);
    return std::make_unique<Shape>(Shape{
        std::move(schedule), std::move(semantics), std::move(order), is_plain});
  }

  const Network& NetworkOf(const ResolvedScenario& scenario) {
    if (scenario.textbook) {
      network_ = std::make_unique<Network>(
          Network::Textbook(scenario.placement.num_gpus(),
                            scenario.scenario.textbook().hop_seconds()));
      network_key_.clear();
      return *network_;
    }
    const std::string key =
        scenario.scenario.cluster().empty()
            ? ""
            : absl::StrCat(scenario.scenario.cluster(), "\n",
                           scenario.scenario.num_nodes());
    if (network_ == nullptr || key.empty() || key != network_key_) {
      network_ = std::make_unique<Network>(scenario.cluster);
      network_key_ = key;
    }
    return *network_;
  }

  absl::StatusOr<const Costs*> CostsOf(const ResolvedScenario& scenario,
                                       const Network& network,
                                       const Shape& shape) {
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

  // All that costs depend on: not on how many microbatches there are, and of
  // most schedules only on where their stages are.
  static std::string CostsKey(const ResolvedScenario& resolved,
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
    const Schedule& schedule = shape.schedule;
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

  // Are its costs those of a schedule that runs passes and nothing else?
  static bool IsPlain(const Schedule& schedule) {
    if (schedule.weights.prediction != WeightPolicy::Prediction::kNone) {
      return false;
    }
    for (const std::vector<Action>& actions : schedule.rank_actions) {
      for (const Action& action : actions) {
        if (action.op != Op::kForward && action.op != Op::kBackward) {
          return false;
        }
      }
    }
    return true;
  }

  // Costs refer to the scenario that they were made for.
  static void PointTo(const ResolvedScenario& scenario, Costs* costs) {
    const auto point = [](const DeviceProfile& device, DeviceCosts* of) {
      if (of->communicators != nullptr) {
        of->communicators = &device.collectives();
      }
      if (of->card_share != nullptr) of->card_share = &device.card_share();
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
  absl::flat_hash_map<std::string, std::unique_ptr<Shape>> shapes_;
  std::unique_ptr<Network> network_;
  std::string network_key_;
  absl::flat_hash_map<std::string, std::unique_ptr<Costs>> costs_;
  PassOrder::Buffers buffers_;
};

Bounder::Bounder() : impl_(std::make_unique<Impl>()) {}
Bounder::~Bounder() = default;

absl::StatusOr<PlanBound> Bounder::Bound(const ResolvedScenario& scenario) {
  return impl_->Bound(scenario);
}

absl::StatusOr<PlanBound> BoundOf(const ResolvedScenario& scenario) {
  return Bounder().Bound(scenario);
}

}  // namespace weir
