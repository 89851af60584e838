// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/spp.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

constexpr int kManySppDevices = 16;

double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double AllReduceSeconds(double bytes, int replicas, double rate) {
  return replicas == 1 ? 0 : 2.0 * (replicas - 1) / replicas * bytes / rate;
}

double TransferSeconds(double bytes, int from, int to, double rate) {
  return 2 * bytes / (static_cast<double>(from) * to * rate);
}

// Minima over runs of consecutive devices with the sizes of stages: bandwidth
// inside a run and from the run before it, speed and memory. With a single
// size, runs begin at its multiples.
class Rates {
 public:
  Rates(const PlannerWork& work, const std::vector<int>& order,
        const std::vector<int>& sizes)
      : n_(static_cast<int>(order.size())), num_sizes_(sizes.size()) {
    const int step = sizes.size() == 1 ? sizes[0] : 1;
    const auto slowest = [&](int from, int from_end, int to, int to_end) {
      double rate = kInfinity;
      for (int i = from; i < from_end; ++i) {
        for (int j = std::max(to, from == to ? i + 1 : to); j < to_end; ++j) {
          rate = std::min({rate, work.bytes_per_second[order[i]][order[j]],
                           work.bytes_per_second[order[j]][order[i]]});
        }
      }
      return rate;
    };
    inside_.assign(num_sizes_ * (n_ + 1), kInfinity);
    speed_ = memory_ = inside_;
    between_.assign(num_sizes_ * num_sizes_ * (n_ + 1), kInfinity);
    for (size_t r = 0; r < num_sizes_; ++r) {
      for (int end = sizes[r]; end <= n_; end += step) {
        const int first = end - sizes[r];
        const size_t at = r * (n_ + 1) + end;
        inside_[at] = slowest(first, end, first, end);
        for (int i = first; i < end; ++i) {
          const PlannerDevice& device = work.devices[order[i]];
          speed_[at] = std::min(speed_[at], device.speed);
          memory_[at] = std::min(memory_[at], device.memory_bytes);
        }
        for (size_t b = 0; b < num_sizes_ && sizes[b] <= first; ++b) {
          between_[(b * num_sizes_ + r) * (n_ + 1) + end] =
              slowest(first - sizes[b], first, first, end);
        }
      }
    }
  }

  // Return the values of a run of sizes[size] that ends before device `end`.
  // `before` is the size index of the run before it.
  double inside(size_t size, int end) const {
    return inside_[size * (n_ + 1) + end];
  }
  double speed(size_t size, int end) const {
    return speed_[size * (n_ + 1) + end];
  }
  double memory(size_t size, int end) const {
    return memory_[size * (n_ + 1) + end];
  }
  double between(size_t before, size_t size, int end) const {
    return between_[(before * num_sizes_ + size) * (n_ + 1) + end];
  }

 private:
  int n_;
  size_t num_sizes_;
  std::vector<double> inside_, speed_, memory_, between_;
};

// The search of PRM.
class StageSearch {
 public:
  // `sizes` are the possible numbers of devices of a stage, ascending.
  StageSearch(const PlannerWork& work, const std::vector<int>& order,
              int max_stages, std::vector<int> sizes)
      : work_(work),
        sums_(work.layers),
        order_(order),
        rates_(work, order, sizes),
        max_stages_(max_stages),
        num_layers_(sums_.num_layers()),
        n_(static_cast<int>(order.size())),
        sizes_(std::move(sizes)),
        num_used_(sizes_.size() == 1 ? 1 : n_ + 1) {
    states_.resize(static_cast<size_t>(max_stages_ + 1) * (num_layers_ + 1) *
                   num_used_ * sizes_.size());
    for (int s = 1; s <= max_stages_; ++s) Fill(s);
  }

  std::vector<PlannedStage> Stages(int num_stages) const {
    int best = -1;
    for (size_t r = 0; r < sizes_.size(); ++r) {
      const State& state = At(num_stages, num_layers_, n_, r);
      if (state.largest < kInfinity &&
          (best < 0 ||
           state.largest < At(num_stages, num_layers_, n_, best).largest)) {
        best = static_cast<int>(r);
      }
    }
    std::vector<PlannedStage> stages;
    if (best < 0 || (num_used_ == 1 && num_stages * sizes_[0] != n_)) {
      return stages;
    }
    int end = num_layers_, used = n_, r = best;
    for (int s = num_stages; s > 0; --s) {
      const State& state = At(s, end, used, r);
      PlannedStage stage;
      stage.first_layer = state.first;
      stage.end_layer = end;
      stage.devices.assign(order_.begin() + used - sizes_[r],
                           order_.begin() + used);
      stages.insert(stages.begin(), stage);
      end = state.first;
      used -= sizes_[r];
      r = state.before;
    }
    return stages;
  }

 private:
  struct State {
    double largest = kInfinity;
    int first = 0,
        before = 0;  // last stage's first layer; previous size index
  };

  // With a single size, the number of stages determines the devices used.
  size_t Index(int stages, int end, int used, size_t r) const {
    return ((static_cast<size_t>(stages) * (num_layers_ + 1) + end) *
                num_used_ +
            used % num_used_) *
               sizes_.size() +
           r;
  }
  const State& At(int stages, int end, int used, size_t r) const {
    return states_[Index(stages, end, used, r)];
  }

  double StageSeconds(int first, int end, int used, size_t r) const {
    const int replicas = sizes_[r];
    if (!sums_.MayBeStage(first, end)) return kInfinity;
    if (sums_.memory_bytes(first, end, 1.0 / replicas) >
        rates_.memory(r, used)) {
      return kInfinity;
    }
    return std::max(work_.num_microbatches * sums_.seconds(first, end) /
                        replicas / rates_.speed(r, used),
                    AllReduceSeconds(sums_.gradient_bytes(first, end), replicas,
                                     rates_.inside(r, used)));
  }

  void Fill(int s) {
    const int least = num_used_ == 1 ? s * sizes_[0] : s;
    const int most = num_used_ == 1 ? std::min(least, n_) : n_;
    for (int used = least; used <= most; ++used) {
      for (size_t r = 0; r < sizes_.size() && sizes_[r] <= used; ++r) {
        if (s == 1 && sizes_[r] != used) continue;
        for (int end = s; end <= num_layers_; ++end) FillOne(s, end, used, r);
      }
    }
  }

  void FillOne(int s, int end, int used, size_t r) {
    State& state = states_[Index(s, end, used, r)];
    const int replicas = sizes_[r], rest = used - replicas;
    if (s == 1) {
      state = {StageSeconds(0, end, used, r), 0, 0};
      return;
    }
    for (int first = end - 1; first >= s - 1; --first) {
      const double seconds = StageSeconds(first, end, used, r);
      // Longer stages only take longer. An infinite one may just not be a
      // stage.
      if (seconds < kInfinity && seconds >= state.largest) break;
      if (seconds == kInfinity) continue;
      for (size_t b = 0; b < sizes_.size() && sizes_[b] <= rest; ++b) {
        const State& before = At(s - 1, first, rest, b);
        if (before.largest >= state.largest) continue;
        const double transfer =
            work_.num_microbatches *
            TransferSeconds(sums_.cut_bytes(first), sizes_[b], replicas,
                            rates_.between(b, r, used));
        const double largest = std::max({before.largest, seconds, transfer});
        if (largest < state.largest) {
          state = {largest, first, static_cast<int>(b)};
        }
      }
    }
  }

  const PlannerWork& work_;
  LayerSums sums_;
  const std::vector<int>& order_;
  Rates rates_;
  int max_stages_, num_layers_, n_;
  std::vector<int> sizes_;
  int num_used_;
  std::vector<State> states_;
};

bool Fits(const PlannerWork& work, const std::vector<PlannedStage>& stages,
          const SppExecution& execution) {
  const LayerSums sums(work.layers);
  for (size_t s = 0; s < stages.size(); ++s) {
    const double kept = static_cast<double>(execution.most_kept[s]) /
                        static_cast<double>(stages[s].devices.size());
    const double bytes =
        sums.memory_bytes(stages[s].first_layer, stages[s].end_layer, kept);
    for (int device : stages[s].devices) {
      if (bytes > work.devices[device].memory_bytes) return false;
    }
  }
  return true;
}

int MaxStages(const PlannerWork& work) {
  const int most =
      static_cast<int>(std::min(work.layers.size(), work.devices.size()));
  return std::min(most, kManySppDevices);
}

std::vector<int> AllSizes(int num_devices) {
  std::vector<int> sizes;
  for (int size = 1; size <= num_devices;
       size = num_devices > kManySppDevices ? 2 * size : size + 1) {
    sizes.push_back(size);
  }
  return sizes;
}

// Replaces the stages of `plan` if these fit and lower its objective.
void TryStages(const PlannerWork& work, const std::vector<PlannedStage>& stages,
               PlannedPipeline* plan) {
  if (stages.empty()) return;
  const SppExecution execution = ExecuteSpp(work, stages);
  if (execution.seconds >= plan->objective_seconds ||
      !Fits(work, stages, execution)) {
    return;
  }
  plan->objective_seconds = execution.seconds;
  plan->stages = stages;
}

}  // namespace

double SppWorkload::largest() const {
  return std::max(largest_of_pipeline(), longest_all_reduce());
}
double SppWorkload::largest_of_pipeline() const {
  return std::max(Largest(stage_seconds), Largest(transfer_seconds));
}
double SppWorkload::longest_all_reduce() const {
  return Largest(all_reduce_seconds);
}

SppWorkload SppWorkloadOf(const PlannerWork& work,
                          const std::vector<PlannedStage>& stages) {
  const LayerSums sums(work.layers);
  SppWorkload load;
  for (size_t s = 0; s < stages.size(); ++s) {
    const std::vector<int>& devices = stages[s].devices;
    const int first = stages[s].first_layer, end = stages[s].end_layer;
    const int replicas = static_cast<int>(devices.size());
    double speed = kInfinity, inside = kInfinity, between = kInfinity;
    for (int one : devices) {
      speed = std::min(speed, work.devices[one].speed);
      for (int other : devices) {
        if (one != other) {
          inside = std::min(inside, work.bytes_per_second[one][other]);
        }
      }
      for (int from : s > 0 ? stages[s - 1].devices : std::vector<int>()) {
        between = std::min({between, work.bytes_per_second[from][one],
                            work.bytes_per_second[one][from]});
      }
    }
    load.stage_seconds.push_back(work.num_microbatches *
                                 sums.seconds(first, end) / replicas / speed);
    load.all_reduce_seconds.push_back(
        AllReduceSeconds(sums.gradient_bytes(first, end), replicas, inside));
    if (s == 0) continue;
    load.transfer_seconds.push_back(
        work.num_microbatches *
        TransferSeconds(sums.cut_bytes(first),
                        static_cast<int>(stages[s - 1].devices.size()),
                        replicas, between));
  }
  return load;
}

std::vector<PlannedStage> SppStages(const PlannerWork& work,
                                    const std::vector<int>& order,
                                    int num_stages) {
  return StageSearch(work, order, num_stages,
                     AllSizes(static_cast<int>(order.size())))
      .Stages(num_stages);
}

absl::StatusOr<PlannedPipeline> PlanSpp(const PlannerWork& work,
                                        const SppOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("spp", work));
  const std::vector<int> order =
      options.order.empty() ? SppDeviceOrder(work) : options.order;
  const int num_devices = static_cast<int>(order.size());
  PlannedPipeline plan;
  plan.objective_seconds = kInfinity;
  if (!options.equal_replicas) {
    const int most = MaxStages(work);
    const StageSearch search(work, order, most, AllSizes(num_devices));
    for (int num_stages = 1; num_stages <= most; ++num_stages) {
      TryStages(work, search.Stages(num_stages), &plan);
    }
  }
  for (int size = 1; options.equal_replicas && size <= num_devices; ++size) {
    const int num_stages = num_devices / size;
    if (num_devices % size != 0 || work.num_microbatches % size != 0 ||
        num_stages > static_cast<int>(work.layers.size())) {
      continue;
    }
    const StageSearch search(work, order, num_stages, {size});
    TryStages(work, search.Stages(num_stages), &plan);
  }
  if (plan.stages.empty()) {
    return absl::NotFoundError(
        absl::StrCat("spp: no partition of the ", work.layers.size(),
                     " layers on ", work.devices.size(), " devices fits ",
                     FormatBytes(LeastMemoryBytes(work))));
  }
  plan.algorithm = "spp";
  plan.schedule = "spp";
  plan.num_microbatches = work.num_microbatches;
  return plan;
}

}  // namespace weir::plan
