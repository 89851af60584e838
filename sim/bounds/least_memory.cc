// SPDX-License-Identifier: Apache-2.0
#include "sim/bounds/least_memory.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "schedules/stages_by_rank.h"
#include "sim/costs/program_memory.h"

namespace weir::sim {
namespace {

// Smaller amounts may be rounded to no bytes at all.
constexpr double kSomeBytes = 64;

// Of programs that free gradients. Used: by a step, which may have freed them
// before the rank's next action.
enum class Gradients : uint8_t { kFreed, kHeld, kUsed };

// Tables by stage, reused for each rank, which clears only its own stages.
struct StageTables {
  explicit StageTables(int num_stages)
      : extra_versions(num_stages),
        is_held(num_stages),
        gradients(num_stages) {}

  std::vector<int> extra_versions;
  std::vector<bool> is_held;  // full gradients
  std::vector<Gradients> gradients;
};

class Walk {
 public:
  Walk(const PipelineInputs& inputs, int rank, const std::vector<int>& stages,
       StageTables* tables)
      : in_(inputs),
        costs_(inputs.costs),
        schedule_(inputs.schedule),
        rank_(rank),
        stages_(stages),
        extra_versions_(tables->extra_versions),
        is_held_(tables->is_held),
        gradients_of_(tables->gradients) {
    for (int stage : stages_) {
      extra_versions_[stage] = 0;
      is_held_[stage] = false;
      gradients_of_[stage] = Gradients::kFreed;
    }
  }

  double PeakBytes() {
    now_ = peak_ = StaticBytes();
    const auto& actions = schedule_.rank_actions[rank_];
    const auto& live = in_.semantics.live_versions[rank_];
    for (size_t i = 0; i < actions.size(); ++i) {
      const size_t last = actions[i].overlaps_next ? i + 1 : i;
      double during = 0, seconds = 0;
      for (size_t k = i; k <= last; ++k) {
        const schedules::Action& action = actions[k];
        if (schedules::IsCompute(action.op)) {
          int& extra = extra_versions_[action.stage];
          now_ +=
              (live[k] - 1 - extra) * StageOf(action).parameters.stash_bytes;
          extra = live[k] - 1;
        }
        during += Begin(action);
        seconds += costs_.of(Gpu(), action.stage).seconds.Of(action.op);
      }
      // A pass of zero seconds begins and ends at the same time.
      if (seconds > 0) peak_ = std::max(peak_, now_ + during);
      for (size_t k = i; k <= last; ++k) {
        End(actions[k]);
        if (IsLastBackward(k)) ReleaseGradients(actions[k].stage);
        if (IsUpdate(k) &&
            gradients_of_[actions[k].stage] == Gradients::kHeld) {
          gradients_of_[actions[k].stage] = Gradients::kUsed;
        }
      }
      if (!schedule_.flush) Update(static_cast<int32_t>(i), last);
      i = last;
    }
    if (schedule_.flush) Update(0, actions.size());
    return peak_;
  }

 private:
  int Gpu() const { return in_.placement().index(0, rank_, 0); }
  const StageCosts& StageOf(const schedules::Action& action) const {
    return costs_.stages[action.stage];
  }

  double StaticBytes() const {
    const DeviceCosts& device = costs_.device_of(Gpu());
    double bytes = device.reserved_bytes;
    bytes += CommunicatorBytes(costs_, device, LeastCommunicators(),
                               in_.placement().num_gpus());
    const schedules::WeightPolicy& weights = schedule_.weights;
    for (int s : stages_) {
      const StageCosts& stage = costs_.stages[s];
      bytes += costs_.sharded_bytes(stage, stage.parameters.weight_bytes) +
               stage.parameters.weight_copy_bytes;
      if (schedule_.forward_only) continue;
      if (!costs_.frees_gradients) {
        bytes += GradientBytes(s) * (NeedsSecondGradient(s) ? 2 : 1);
      }
      bytes +=
          costs_.sharded_bytes(stage, stage.parameters.kept_gradient_bytes);
      bytes +=
          stage.parameters.optimizer_state_bytes * costs_.stepped_part(stage);
      bytes += stage.parameters.weight_bytes * weights.predicted_copies +
               stage.parameters.fp32_bytes * weights.estimate_buffers;
    }
    return bytes;
  }

  // Returns those of its tensor group, of its replicas and to its neighbors.
  calibrate::CommunicatorCounts LeastCommunicators() const {
    calibrate::CommunicatorCounts counts;
    const auto count = [&](int num, const auto& gpu_of) {
      const int node = in_.network.NodeOf(gpu_of(0));
      for (int i = 1; i < num; ++i) {
        if (in_.network.NodeOf(gpu_of(i)) == node) continue;
        ++counts.num_across_nodes;
        return;
      }
      ++counts.num_in_node;
    };
    const scenarios::Placement& place = in_.placement();
    bool calls = false, reduces = false;
    for (int s : stages_) {
      const StageCosts& stage = costs_.stages[s];
      for (const models::LayerCollective& one :
           stage.communication.forward_collectives) {
        calls |= one.group == models::LayerCollective::Group::kTensor &&
                 one.kind != models::CollectiveKind::kAllToAll &&
                 one.bytes * one.count >= kSomeBytes;
      }
      reduces |= !schedule_.forward_only &&
                 stage.parameters.gradient_bytes >= kSomeBytes &&
                 schedule_.RanksOf(s).size() == 1;
    }
    if (calls && place.tensor > 1) {
      count(place.tensor, [&](int t) { return place.gpu(0, rank_, t); });
    }
    if (const int shards = place.data / costs_.shard_replicas;
        reduces && shards > 1) {
      count(shards, [&](int r) { return place.gpu(r, rank_, 0); });
    }
    counts.num_pair_peers = NumPeers();
    return counts;
  }

  // Returns the number of ranks that it sends to or receives from.
  int NumPeers() const {
    std::vector<int> peers;
    for (const std::vector<int>& route : schedule_.routes) {
      const auto add = [&](int sender, int peer) {
        if (route[peer] == rank_ || costs_.sent_bytes(sender) < kSomeBytes) {
          return;
        }
        peers.push_back(route[peer]);
      };
      for (int s : stages_) {
        if (route[s] != rank_) continue;
        if (s > 0) add(s - 1, s - 1);
        if (s + 1 < schedule_.num_stages) add(s, s + 1);
      }
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return static_cast<int>(
        std::count_if(peers.begin(), peers.end(), [&](int peer) {
          return !in_.network
                      .RouteBetween(in_.placement().gpu(0, rank_, 0),
                                    in_.placement().gpu(0, peer, 0))
                      .links.empty();
        }));
  }

  bool NeedsSecondGradient(int stage) const {
    return !schedule_.flush &&
           in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED &&
           (in_.placement().data > 1 || schedule_.RanksOf(stage).size() > 1);
  }

  double GradientBytes(int stage) const {
    return costs_.sharded_bytes(costs_.stages[stage],
                                costs_.stages[stage].parameters.gradient_bytes);
  }

  // Counts the temporary buffers of steps after these positions, one stage
  // after the other. Overlapped reductions without flush may delay the steps,
  // which are then not counted.
  void Update(int32_t first, size_t last) {
    if (schedule_.forward_only ||
        (!schedule_.flush &&
         in_.communication.gradient_reduction() == REDUCTION_OVERLAPPED)) {
      return;
    }
    const auto& positions = in_.semantics.update_positions[rank_];  // ascending
    for (auto at = std::lower_bound(positions.begin(), positions.end(), first);
         at != positions.end() && *at <= static_cast<int64_t>(last); ++at) {
      const int32_t position = *at;
      const StageCosts& stage =
          StageOf(schedule_.rank_actions[rank_][position]);
      if (!(stage.step.seconds > stage.step.update_seconds)) continue;
      // Earlier steps have freed the gradients of other stages.
      double others = 0;
      for (int s : stages_) {
        if (s != schedule_.rank_actions[rank_][position].stage &&
            gradients_of_[s] != Gradients::kFreed) {
          others += GradientBytes(s);
        }
      }
      peak_ = std::max(peak_, now_ - others + StepBytes(costs_, stage));
    }
  }

  // Adds what remains after the action; returns what it holds until it ends.
  double Begin(const schedules::Action& action) {
    const StageCosts& stage = StageOf(action);
    for (int s : stages_) {
      if (gradients_of_[s] != Gradients::kUsed) continue;
      gradients_of_[s] = Gradients::kFreed;
      now_ -= GradientBytes(s);
    }
    const int n = action.num_microbatches;
    switch (action.op) {
      case schedules::Op::kForward:
        if (schedule_.forward_only) {
          return (stage.activations.layer_bytes +
                  stage.activations.forward_scratch_bytes) *
                     n +
                 GatheredBytes(stage);
        }
        now_ += stage.activations.saved_bytes * n;
        return stage.activations.forward_scratch_bytes * n +
               GatheredBytes(stage);
      case schedules::Op::kBackward:
      case schedules::Op::kBackwardInput:
        if (costs_.shards > 1 && in_.placement().pipeline > 1 &&
            action.op == schedules::Op::kBackward) {
          HoldGradients(action.stage);
        }
        now_ += ReloadedBytes(action);
        return (stage.activations.recompute_scratch_bytes +
                stage.activations.backward_scratch_bytes) *
                   n +
               GatheredBytes(stage) + InputGradientBytes(action);
      case schedules::Op::kBackwardWeight:
      case schedules::Op::kOffload:
      case schedules::Op::kReload:
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
    return 0;
  }

  void End(const schedules::Action& action) {
    const StageCosts& stage = StageOf(action);
    if (costs_.frees_gradients && !schedule_.forward_only &&
        schedules::CompletesGradient(action.op) &&
        gradients_of_[action.stage] == Gradients::kFreed) {
      gradients_of_[action.stage] = Gradients::kHeld;
      now_ += GradientBytes(action.stage);
    }
    const int n = action.num_microbatches;
    switch (action.op) {
      case schedules::Op::kBackward:
        now_ -= stage.activations.saved_bytes * n;
        break;
      case schedules::Op::kBackwardInput:
        now_ += (stage.activations.weight_gradient_stash_bytes -
                 stage.activations.saved_bytes) *
                n;
        break;
      case schedules::Op::kBackwardWeight:
        now_ -= stage.activations.weight_gradient_stash_bytes * n;
        break;
      case schedules::Op::kOffload:
        now_ -= stage.activations.saved_bytes * n;
        for (int k = 0; k < n; ++k)
          offloaded_.insert({action.stage, action.microbatch + k});
        break;
      case schedules::Op::kForward:
      case schedules::Op::kReload:  // counted when its backward begins
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
  }

  // Returns the activations that must be reloaded by now.
  double ReloadedBytes(const schedules::Action& action) {
    double bytes = 0;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      if (offloaded_.erase({action.stage, k}) == 0) continue;
      bytes += StageOf(action).activations.saved_bytes;
    }
    return bytes;
  }

  double GatheredBytes(const StageCosts& stage) const {
    if (costs_.shards == 1) return 0;
    return in_.placement().pipeline == 1
               ? stage.parameters.most_gathered_bytes()
               : stage.parameters.gathered_bytes();
  }

  // From the first backward of a sharded stage on, gradients are held in full.
  void HoldGradients(int stage) {
    if (is_held_[stage]) return;
    is_held_[stage] = true;
    now_ += costs_.stages[stage].parameters.gradient_bytes;
  }

  // Returns true if this action completes the gradients of its stage.
  bool IsLastBackward(size_t position) const {
    return schedule_.flush && IsUpdate(position);
  }

  bool IsUpdate(size_t position) const {
    const auto& positions = in_.semantics.update_positions[rank_];
    return std::binary_search(positions.begin(), positions.end(),
                              static_cast<int32_t>(position));
  }

  // They may be reduced and scattered immediately.
  void ReleaseGradients(int stage) {
    if (!is_held_[stage]) return;
    is_held_[stage] = false;
    now_ -= costs_.stages[stage].parameters.gradient_bytes;
  }

  // Returns the bytes from the next stage, which are held until the pass ends.
  double InputGradientBytes(const schedules::Action& action) const {
    const int next = action.stage + 1;
    if (next == schedule_.num_stages ||
        schedule_.rank_of(next, action.microbatch) == rank_) {
      return 0;
    }
    return costs_.sent_bytes(action.stage) * action.num_microbatches;
  }

  const PipelineInputs& in_;
  const Costs& costs_;
  const schedules::Schedule& schedule_;
  const int rank_;
  const std::vector<int>& stages_;  // the rank's
  double now_ = 0, peak_ = 0;
  std::vector<int>& extra_versions_;                      // [stage]
  std::vector<bool>& is_held_;                            // [stage]
  std::vector<Gradients>& gradients_of_;                  // [stage]
  absl::flat_hash_set<std::pair<int, int>> offloaded_{};  // stage, microbatch
};

}  // namespace

std::vector<double> LeastPeakBytes(const PipelineInputs& inputs) {
  const std::vector<std::vector<int>> stages =
      schedules::StagesByRank(inputs.schedule);
  StageTables tables(inputs.schedule.num_stages);
  std::vector<double> bytes;
  for (int rank = 0; rank < inputs.schedule.num_ranks; ++rank) {
    bytes.push_back(Walk(inputs, rank, stages[rank], &tables).PeakBytes());
  }
  return bytes;
}

}  // namespace weir::sim
