// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/action_seconds.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace weir::sim {
namespace {

class Clock {
 public:
  Clock(const schedules::Schedule& schedule, const Costs& costs, int gpu,
        int rank, bool knows_updates)
      : schedule_(schedule),
        costs_(costs),
        gpu_(gpu),
        rank_(rank),
        knows_updates_(knows_updates) {}

  std::vector<double> Run() {
    const std::vector<schedules::Action>& actions =
        schedule_.rank_actions[rank_];
    std::vector<double> seconds(actions.size());
    for (size_t i = 0; i < actions.size(); ++i) {
      const bool pair = actions[i].overlaps_next;
      seconds[i] = Of(actions[i], pair ? &actions[i + 1] : nullptr);
      if (pair) seconds[i + 1] = seconds[i], ++i;
    }
    return seconds;
  }

  double Of(const schedules::Action& action,
            const schedules::Action* overlapped) {
    const double extra = Extra(action);
    if (overlapped == nullptr) return Alone(action) + extra;
    return Overlapped(action, *overlapped) + extra + Extra(*overlapped);
  }

  std::vector<double> Extras() {
    std::vector<double> seconds;
    for (const schedules::Action& action : schedule_.rank_actions[rank_]) {
      seconds.push_back(Extra(action));
    }
    return seconds;
  }

 private:
  const StageCosts& StageOf(int stage) const { return costs_.of(gpu_, stage); }

  double Alone(const schedules::Action& action) const {
    return StageOf(action.stage).seconds.Of(action.op) *
           action.num_microbatches;
  }

  double Overlapped(const schedules::Action& one,
                    const schedules::Action& other) const {
    const schedules::Action& forward =
        one.op == schedules::Op::kForward ? one : other;
    const std::optional<double> given =
        StageOf(forward.stage).seconds.overlapped;
    return given.has_value() ? *given * forward.num_microbatches
                             : Alone(one) + Alone(other);
  }

  double Extra(const schedules::Action& action) {
    return Estimate(action) + Codec(action);
  }

  double Estimate(const schedules::Action& action) {
    const double seconds = StageOf(action.stage).seconds.prediction;
    if (seconds == 0) return 0;
    const schedules::WeightPolicy& weights = schedule_.weights;
    const bool forward = action.op == schedules::Op::kForward;
    if (!forward && !schedules::MakesInputGradient(action.op)) return 0;
    const std::vector<double>& distance =
        forward ? weights.forward_distance : weights.backward_distance;
    if (distance.empty() || distance[action.stage] == 0) return 0;
    using Prediction = schedules::WeightPolicy::Prediction;
    switch (weights.prediction) {
      case Prediction::kNone:
        return 0;
      case Prediction::kForward:
        return forward ? seconds : 0;
      case Prediction::kForwardAndBackward:
        return seconds;
      case Prediction::kBackward:
        return forward ? 0 : seconds;
      case Prediction::kFirstForwardOfUpdate:
        return forward && knows_updates_ && IsFirstOfUpdate(action) ? seconds
                                                                    : 0;
    }
    return 0;
  }

  bool IsFirstOfUpdate(const schedules::Action& action) {
    const int update =
        action.microbatch / schedule_.microbatches_per_update(action.stage);
    return estimated_.insert({action.stage, update}).second;
  }

  // Transfers between stages of one rank are not compressed.
  double Codec(const schedules::Action& action) const {
    if (!schedule_.compressed_transfers) return 0;
    if (action.op != schedules::Op::kForward &&
        !schedules::MakesInputGradient(action.op))
      return 0;
    double seconds = 0;
    const int s = action.stage;
    if (s > 0 && schedule_.rank_of(s - 1, action.microbatch) != rank_) {
      seconds += StageOf(s - 1).seconds.codec;
    }
    if (s + 1 < schedule_.num_stages &&
        schedule_.rank_of(s + 1, action.microbatch) != rank_) {
      seconds += StageOf(s).seconds.codec;
    }
    return seconds * action.num_microbatches;
  }

  const schedules::Schedule& schedule_;
  const Costs& costs_;
  const int gpu_, rank_;
  const bool knows_updates_;
  absl::flat_hash_set<std::pair<int, int>> estimated_;  // stage, update
};

}  // namespace

std::vector<double> ActionSeconds(const PipelineInputs& inputs, int gpu) {
  const scenarios::Placement& place = inputs.placement();
  return Clock(inputs.schedule, inputs.costs, gpu,
               gpu / place.tensor % place.pipeline, true)
      .Run();
}

std::vector<double> ExtraSeconds(const PipelineInputs& inputs, int gpu) {
  const scenarios::Placement& place = inputs.placement();
  return Clock(inputs.schedule, inputs.costs, gpu,
               gpu / place.tensor % place.pipeline, true)
      .Extras();
}

double PassSeconds(const schedules::Schedule& schedule, const Costs& costs,
                   int gpu, int rank, const schedules::Action& action,
                   const schedules::Action* overlapped) {
  return Clock(schedule, costs, gpu, rank, false).Of(action, overlapped);
}

}  // namespace weir::sim
