// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/device_chain.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weir::plan {
namespace {

constexpr double kMaxStates = 2e7, kMaxTries = 2e9;

// A suffix of the layers on some devices.
struct Suffix {
  double bottleneck = 0, sum = 0;
  int end = 0;          // end of its first stage
  int64_t rest = -1;    // state after that stage; -1: none
  int32_t at_rest = 0;  // index among the suffixes of `rest`
};

class ChainSearch {
 public:
  ChainSearch(const DeviceTypes& types, const ChainCosts& costs)
      : types_(types), costs_(costs), num_types_(types.num_types()) {
    for (const std::vector<int>& devices : types.devices) {
      radix_.push_back(num_sets_);
      num_sets_ *= static_cast<int64_t>(devices.size()) + 1;
    }
    const int n = costs.num_layers;
    const size_t size = static_cast<size_t>(num_types_) * (n + 1) * (n + 1);
    seconds_.resize(size);
    left_.resize(size);
    for (int type = 0; type < num_types_; ++type) {
      for (int first = 0; first < n; ++first) {
        for (int end = first + 1; end <= n; ++end) {
          seconds_[Cell(type, first, end)] =
              costs.stage_seconds(type, first, end);
          left_[Cell(type, first, end)] =
              costs.max_stages_left(type, first, end);
        }
      }
    }
  }

  static double NumSets(const DeviceTypes& types) {
    double sets = 1;
    for (const auto& devices : types.devices) {
      sets *= static_cast<double>(devices.size()) + 1;
    }
    return sets;
  }

  absl::StatusOr<DeviceChain> Run(absl::string_view planner) {
    const int n = costs_.num_layers;
    suffixes_.resize((n + 1) * num_sets_ * num_types_);
    Extend(n, 0, 0, /*is_last=*/true);
    for (int first = n - 1; first > 0; --first) {
      for (int64_t set = 0; set < num_sets_; ++set) {
        for (int type = 0; type < num_types_; ++type) {
          if (!suffixes_[State(first, set, type)].empty()) {
            Extend(first, set, type, /*is_last=*/false);
          }
        }
      }
    }
    return Best(planner);
  }

 private:
  size_t Cell(int type, int first, int end) const {
    const size_t n = costs_.num_layers + 1;
    return (type * n + first) * n + end;
  }
  int64_t State(int first, int64_t set, int type) const {
    return (first * num_sets_ + set) * num_types_ + type;
  }
  int NumUsed(int64_t set, int type) const {
    return static_cast<int>(
        set / radix_[type] %
        (static_cast<int64_t>(types_.devices[type].size()) + 1));
  }

  // Prepends every stage that ends at `end` to the suffixes of a state.
  void Extend(int end, int64_t set, int to, bool is_last) {
    int num_used = 0;
    for (int type = 0; type < num_types_; ++type) {
      num_used += NumUsed(set, type);
    }
    const int64_t rest = is_last ? -1 : State(end, set, to);
    for (int type = 0; type < num_types_; ++type) {
      if (NumUsed(set, type) == static_cast<int>(types_.devices[type].size())) {
        continue;
      }
      const double transfer =
          is_last ? 0 : costs_.transfer_seconds(type, to, end);
      for (int first = end - 1; first >= 0; --first) {
        const size_t cell = Cell(type, first, end);
        if (left_[cell] < num_used + 1) continue;
        std::vector<Suffix>& kept =
            suffixes_[State(first, set + radix_[type], type)];
        const std::vector<Suffix>& suffixes =
            is_last ? nothing_ : suffixes_[rest];
        for (size_t i = 0; i < suffixes.size(); ++i) {
          Suffix suffix;
          suffix.bottleneck =
              std::max({suffixes[i].bottleneck, seconds_[cell], transfer});
          suffix.sum = suffixes[i].sum + seconds_[cell] +
                       costs_.hops_per_transfer * transfer;
          suffix.end = end;
          suffix.rest = rest;
          suffix.at_rest = static_cast<int32_t>(i);
          Keep(suffix, &kept);
        }
      }
    }
  }

  bool NoWorse(const Suffix& one, const Suffix& other) const {
    return one.bottleneck <= other.bottleneck &&
           (costs_.sum_weight == 0 || one.sum <= other.sum);
  }

  void Keep(const Suffix& suffix, std::vector<Suffix>* kept) const {
    for (const Suffix& other : *kept) {
      if (NoWorse(other, suffix)) return;
    }
    kept->erase(std::remove_if(kept->begin(), kept->end(),
                               [&](const Suffix& other) {
                                 return NoWorse(suffix, other);
                               }),
                kept->end());
    kept->push_back(suffix);
  }

  double Objective(const Suffix& suffix) const {
    return costs_.sum_weight * suffix.sum +
           costs_.bottleneck_weight * suffix.bottleneck;
  }

  absl::StatusOr<DeviceChain> Best(absl::string_view planner) const {
    const Suffix* best = nullptr;
    int64_t best_state = 0;
    for (int64_t state = 0; state < num_sets_ * num_types_; ++state) {
      for (const Suffix& suffix : suffixes_[state]) {
        if (best == nullptr || Objective(suffix) < Objective(*best)) {
          best = &suffix;
          best_state = state;
        }
      }
    }
    if (best == nullptr) {
      return absl::NotFoundError(
          absl::StrCat(planner, ": no partition of the ", costs_.num_layers,
                       " layers fits the memory of the devices in any order"));
    }
    return ChainOf(*best, best_state);
  }

  DeviceChain ChainOf(const Suffix& best, int64_t state) const {
    DeviceChain chain;
    chain.objective_seconds = Objective(best);
    chain.bottleneck_seconds = best.bottleneck;
    chain.sum_seconds = best.sum;
    std::vector<size_t> next(num_types_);
    const Suffix* suffix = &best;
    for (int first = 0;;) {
      const int type = static_cast<int>(state % num_types_);
      PlannedStage stage;
      stage.first_layer = first;
      stage.end_layer = suffix->end;
      stage.devices = {types_.devices[type][next[type]++]};
      chain.stages.push_back(stage);
      if (suffix->rest < 0) break;
      first = suffix->end;
      state = suffix->rest;
      suffix = &suffixes_[state][suffix->at_rest];
    }
    return chain;
  }

  const DeviceTypes& types_;
  const ChainCosts& costs_;
  int num_types_;
  int64_t num_sets_ = 1;
  std::vector<int64_t> radix_;
  std::vector<double> seconds_, left_;         // [Cell]
  std::vector<std::vector<Suffix>> suffixes_;  // [State]
  const std::vector<Suffix> nothing_ = std::vector<Suffix>(1);
};

}  // namespace

absl::StatusOr<DeviceChain> BestDeviceChain(absl::string_view planner,
                                            const DeviceTypes& types,
                                            const ChainCosts& costs) {
  const double n = costs.num_layers + 1;
  const double states = n * ChainSearch::NumSets(types) * types.num_types();
  const double tries = states * n / 2 * types.num_types();
  if (states > kMaxStates || tries > kMaxTries) {
    return absl::InvalidArgumentError(absl::StrCat(
        planner, ": ", types.num_types(), " types of devices give ", states,
        " states and ", tries, " transitions, expected at most ", kMaxStates,
        " and ", kMaxTries,
        ": use fewer devices, layers or types of devices (devices with equal "
        "speed, memory and links have the same type)"));
  }
  return ChainSearch(types, costs).Run(planner);
}

}  // namespace weir::plan
