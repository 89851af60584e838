// SPDX-License-Identifier: Apache-2.0
#include "sim/action_seconds.h"

#include <utility>

#include "absl/container/flat_hash_set.h"

namespace weir {
namespace {

class Clock {
 public:
  Clock(const PipelineInputs& inputs, int gpu)
      : in_(inputs),
        schedule_(inputs.schedule),
        gpu_(gpu),
        rank_(gpu / inputs.placement.tensor % inputs.placement.pipeline) {}

  std::vector<double> Run() {
    const std::vector<Action>& actions = schedule_.rank_actions[rank_];
    std::vector<double> seconds(actions.size());
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const double extra = Estimate(action) + Codec(action);
      if (action.overlaps_next) {
        const Action& next = actions[i + 1];
        seconds[i] = seconds[i + 1] =
            Overlapped(action, next) + extra + Estimate(next) + Codec(next);
        ++i;
      } else {
        seconds[i] = Alone(action) + extra;
      }
    }
    return seconds;
  }

 private:
  const StageCosts& StageOf(int stage) const {
    return in_.costs.of(gpu_, stage);
  }

  double Alone(const Action& action) const {
    return StageOf(action.stage).seconds_of(static_cast<int>(action.op)) *
           action.num_microbatches;
  }

  double Overlapped(const Action& one, const Action& other) const {
    const Action& forward = one.op == Op::kForward ? one : other;
    const double given = StageOf(forward.stage).overlapped_seconds;
    return given >= 0 ? given * forward.num_microbatches
                      : Alone(one) + Alone(other);
  }

  double Estimate(const Action& action) {
    const double seconds = StageOf(action.stage).prediction_seconds;
    if (seconds == 0) return 0;
    const WeightPolicy& weights = schedule_.weights;
    const bool forward = action.op == Op::kForward;
    if (!forward && !MakesInputGradient(action.op)) return 0;
    const std::vector<double>& distance =
        forward ? weights.forward_distance : weights.backward_distance;
    if (distance.empty() || distance[action.stage] == 0) return 0;
    using Prediction = WeightPolicy::Prediction;
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
        return forward && IsFirstOfUpdate(action) ? seconds : 0;
    }
    return 0;
  }

  bool IsFirstOfUpdate(const Action& action) {
    const int update =
        action.microbatch / schedule_.microbatches_per_update(action.stage);
    return estimated_.insert({action.stage, update}).second;
  }

  // Between stages of one rank nothing is packed.
  double Codec(const Action& action) const {
    if (!schedule_.compressed_transfers) return 0;
    if (action.op != Op::kForward && !MakesInputGradient(action.op)) return 0;
    double seconds = 0;
    const int s = action.stage;
    if (s > 0 && schedule_.rank_of(s - 1, action.microbatch) != rank_) {
      seconds += StageOf(s - 1).codec_seconds;
    }
    if (s + 1 < schedule_.num_stages &&
        schedule_.rank_of(s + 1, action.microbatch) != rank_) {
      seconds += StageOf(s).codec_seconds;
    }
    return seconds * action.num_microbatches;
  }

  const PipelineInputs& in_;
  const Schedule& schedule_;
  const int gpu_, rank_;
  absl::flat_hash_set<std::pair<int, int>> estimated_;  // stage, update
};

}  // namespace

std::vector<double> ActionSeconds(const PipelineInputs& inputs, int gpu) {
  return Clock(inputs, gpu).Run();
}

}  // namespace weir
