// SPDX-License-Identifier: Apache-2.0
#include "plan/search/cuts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/infinity.h"
#include "base/status_macros.h"
#include "models/layout.h"
#include "models/partition.h"
#include "scenarios/recomputation.h"
#include "sim/costs/stage_costs.h"

namespace weir::plan {
namespace {

using Blocks = std::optional<std::vector<int>>;

double SecondsOf(const sim::StageCosts& stage) {
  return stage.seconds.forward + stage.seconds.backward;
}

double StateBytesOf(const sim::StageCosts& stage) {
  return stage.parameters.weight_bytes + stage.parameters.weight_copy_bytes +
         stage.parameters.gradient_bytes +
         stage.parameters.optimizer_state_bytes;
}

// Separates the embedding and the head from the first and last of stages of
// one block each. Their costs are what these stages cost more than the block
// next to them.
std::vector<double> WithEnds(const std::vector<double>& stages) {
  if (stages.size() < 2) return {0, stages.front(), 0};
  const size_t last = stages.size() - 1;
  const double least = std::min(stages.front(), stages.back());
  const double first_block = last > 1 ? stages[1] : least;
  const double last_block = last > 1 ? stages[last - 1] : least;
  std::vector<double> layers = stages;
  layers.front() = first_block;
  layers.back() = last_block;
  layers.insert(layers.begin(), std::max(stages.front() - first_block, 0.0));
  layers.push_back(std::max(stages.back() - last_block, 0.0));
  return layers;
}

Blocks EvenBlocks(int num_blocks, int num_stages) {
  if (num_blocks % num_stages != 0) return {};
  return std::vector<int>(num_stages, num_blocks / num_stages);
}

Blocks EndsLighter(int num_blocks, int num_stages) {
  if (num_stages < 2) return {};
  std::vector<int> blocks;
  if ((num_blocks + 2) % num_stages == 0) {
    blocks.assign(num_stages, (num_blocks + 2) / num_stages);
    --blocks.front();
    --blocks.back();
  } else if ((num_blocks + 1) % num_stages == 0) {
    blocks.assign(num_stages, (num_blocks + 1) / num_stages);
    --blocks.back();
  } else {
    return {};
  }
  return blocks;
}

// The range of layers at which each stage can begin if no stage may exceed a
// limit: [stage], from `lowest` to `highest`. The entry after the last stage is
// the number of layers.
struct Starts {
  std::vector<int> lowest, highest;
};

// Computes the ranges greedily from the front and from the back. Running sums
// of nonnegative numbers are monotone even when rounded; sums from the back
// round differently, hence the slack.
Starts StartsOf(const std::vector<double>& weights, int num_stages,
                double largest) {
  const auto n = static_cast<int>(weights.size());
  Starts starts;
  starts.lowest.assign(num_stages + 1, n);
  starts.highest.assign(num_stages + 1, n);
  starts.highest[0] = 0;
  for (int stage = 0; stage + 1 < num_stages; ++stage) {
    int end = starts.highest[stage];
    double sum = 0;
    const int last = n - (num_stages - stage - 1);  // a layer per later stage
    while (end < last && (sum += weights[end]) <= largest) ++end;
    starts.highest[stage + 1] = end;
  }
  for (int stage = num_stages - 1; stage > 0; --stage) {
    int first = starts.lowest[stage + 1];
    double sum = 0;
    while (first > stage &&
           (sum += weights[first - 1]) <= largest * (1 + 1e-9)) {
      --first;
    }
    starts.lowest[stage] = first;
  }
  starts.lowest[0] = 0;
  return starts;
}

// Returns, among the cuts with the smallest maximum stage, the one with the
// smallest sum of squares. The maximum alone does not determine the other
// stages, for instance if a single layer is the largest stage. Exact, by
// dynamic programming from the last stage over the layers at which a stage can
// begin, which are few when all good cuts are nearly even.
std::vector<int> MostAlike(const std::vector<double>& weights, int num_stages,
                           double largest) {
  const Starts starts = StartsOf(weights, num_stages, largest);
  std::vector<double> best = {0};  // of layers [lowest + index, n)
  std::vector<std::vector<int>> ends(num_stages);  // [stage][index]
  for (int stage = num_stages - 1; stage >= 0; --stage) {
    const int lowest = starts.lowest[stage];
    const int lowest_end = starts.lowest[stage + 1];
    const int highest_end = starts.highest[stage + 1];
    const int count = starts.highest[stage] - lowest + 1;
    std::vector<double> next(count, kInfinity);
    ends[stage].assign(count, -1);
    for (int index = 0; index < count; ++index) {
      double sum = 0;
      for (int end = lowest + index + 1; end <= highest_end; ++end) {
        sum += weights[end - 1];
        if (sum > largest) break;
        if (end < lowest_end) continue;
        const double squares = best[end - lowest_end] + sum * sum;
        if (squares < next[index]) {
          next[index] = squares;
          ends[stage][index] = end;
        }
      }
    }
    best = std::move(next);
  }
  std::vector<int> sizes;
  for (int stage = 0, i = 0; stage < num_stages; ++stage) {
    const int end = ends[stage][i - starts.lowest[stage]];
    sizes.push_back(end - i);
    i = end;
  }
  return sizes;
}

double LargestStage(const std::vector<double>& weights,
                    const models::Partition& partition) {
  double largest = 0;
  for (size_t s = 0; s + 1 < partition.first.size(); ++s) {
    largest = std::max(
        largest,
        std::accumulate(weights.begin() + partition.first[s],
                        weights.begin() + partition.first[s + 1], 0.0));
  }
  return largest * (1 + 1e-9);  // slack for summing in another order
}

Blocks Balanced(const LayerPrice& layers, const std::vector<double>& weights,
                int num_stages) {
  const auto partition = models::PartitionBalanced(weights, num_stages);
  if (!partition.ok()) return {};
  std::vector<int> blocks =
      MostAlike(weights, num_stages, LargestStage(weights, *partition));
  if (layers.has_ends) {
    --blocks.front();
    --blocks.back();
  }
  return blocks;
}

// Balances all but the last stage, with the MTP modules as the last layer.
Blocks MtpApart(const LayerPrice& layers, int num_stages) {
  if (!layers.has_ends || layers.mtp_seconds == 0 || num_stages < 3) return {};
  std::vector<double> weights = layers.seconds;
  weights.back() = layers.mtp_seconds;
  Blocks blocks = Balanced(layers, weights, num_stages - 1);
  if (blocks.has_value()) blocks->push_back(0);
  return blocks;
}

// Returns the cut with the smallest maximum of stage times on GPUs of these
// speeds, and among those the one with the smallest sum of their squares. By
// dynamic programming over the layers at which a stage can end; each stage has
// at least one.
Blocks BySpeeds(const LayerPrice& layers, const std::vector<double>& speeds) {
  const auto num_stages = static_cast<int>(speeds.size());
  const auto n = static_cast<int>(layers.seconds.size());
  if (num_stages == 0 || n < num_stages) return {};
  std::vector<double> sums(n + 1, 0);
  for (int i = 0; i < n; ++i) sums[i + 1] = sums[i] + layers.seconds[i];
  using Score = std::pair<double, double>;  // maximum, sum of squares
  const Score none = {kInfinity, kInfinity};
  std::vector<Score> best(n + 1, none);  // of the stages before, by their end
  best[0] = {0, 0};
  std::vector<std::vector<int>> begins(num_stages, std::vector<int>(n + 1, -1));
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Score> next(n + 1, none);
    for (int end = stage + 1; end <= n - (num_stages - stage - 1); ++end) {
      for (int begin = stage; begin < end; ++begin) {
        if (best[begin] == none) continue;
        const double seconds = (sums[end] - sums[begin]) / speeds[stage];
        // Equal maxima may differ by rounding.
        const Score score = {std::max(best[begin].first, seconds),
                             best[begin].second + seconds * seconds};
        const bool better = score.first < next[end].first * (1 - 1e-12) ||
                            (score.first <= next[end].first * (1 + 1e-12) &&
                             score.second < next[end].second);
        if (!better) continue;
        next[end] = score;
        begins[stage][end] = begin;
      }
    }
    best = std::move(next);
  }
  std::vector<int> blocks(num_stages);
  for (int stage = num_stages - 1, end = n; stage >= 0; --stage) {
    const int begin = begins[stage][end];
    if (begin < 0) return {};
    blocks[stage] = end - begin;
    end = begin;
  }
  if (layers.has_ends) {
    --blocks.front();
    --blocks.back();
  }
  return blocks;
}

Blocks CutAs(const LayerPrice& layers, int num_stages, Cut cut,
             const std::vector<double>& speeds) {
  switch (cut) {
    case Cut::kEven:
      return layers.has_ends ? EvenBlocks(layers.num_blocks(), num_stages)
                             : Balanced(layers, layers.seconds, num_stages);
    case Cut::kEndsLighter:
      return layers.has_ends ? EndsLighter(layers.num_blocks(), num_stages)
                             : Blocks();
    case Cut::kBalanced:
      return Balanced(layers, layers.seconds, num_stages);
    case Cut::kLight:
      return Balanced(layers, layers.state_bytes, num_stages);
    case Cut::kMtpApart:
      return MtpApart(layers, num_stages);
    case Cut::kSpeeds:
      return BySpeeds(layers, speeds);
  }
  return {};
}

// Returns the seconds of all MTP modules in a stage of their own.
absl::StatusOr<double> MtpSeconds(scenarios::ResolvedScenario scenario,
                                  int num_blocks) {
  const auto modules =
      static_cast<int>(scenario.model.transformer().num_mtp_modules());
  if (modules == 0) return 0;
  scenario.scenario.mutable_parallelism()->set_layout(
      models::LayoutText({num_blocks, 0, 0}, modules, /*mtp_apart=*/true));
  ASSIGN_OR_RETURN(const sim::Costs costs,
                   sim::ComputeCosts(scenario, 3, {1, 1, 1}));
  return SecondsOf(costs.stages[1]);
}

}  // namespace

absl::StatusOr<LayerPrice> PriceLayers(
    const scenarios::ResolvedScenario& scenario) {
  scenarios::ResolvedScenario one = scenario;
  one.scenario.mutable_parallelism()->clear_blocks_per_stage();
  one.scenario.mutable_parallelism()->clear_layout();
  LayerPrice price;
  price.has_ends = scenario.model.has_transformer();
  const int num_blocks =
      price.has_ends
          ? static_cast<int>(scenario.model.transformer().num_layers())
          : scenario.model.measured().layers_size();
  ASSIGN_OR_RETURN(
      const sim::Costs costs,
      sim::ComputeCosts(one, num_blocks, std::vector<int>(num_blocks, 1)));
  for (const sim::StageCosts& stage : costs.stages) {
    price.seconds.push_back(SecondsOf(stage));
    price.state_bytes.push_back(StateBytesOf(stage));
    const auto parts =
        stage.seconds.backward_parts.value_or(sim::BackwardParts{-1, -1});
    const sim::StageActivations& bytes = stage.activations;
    for (const double figure :
         {stage.seconds.forward, parts.input, parts.weight,
          stage.launches.forward_seconds, stage.launches.backward_input_seconds,
          stage.launches.backward_weight_seconds, bytes.saved_bytes,
          bytes.end_bytes, bytes.recompute_scratch_bytes,
          bytes.forward_scratch_bytes, bytes.backward_scratch_bytes,
          bytes.weight_gradient_stash_bytes,
          static_cast<double>(stage.communication.forward_collectives.size()),
          static_cast<double>(
              stage.communication.backward_collectives.size())}) {
      price.recomputed.push_back(figure);
    }
  }
  ASSIGN_OR_RETURN(price.mtp_seconds, MtpSeconds(one, num_blocks));
  if (price.has_ends) {
    price.seconds = WithEnds(price.seconds);
    price.state_bytes = WithEnds(price.state_bytes);
  }
  return price;
}

std::optional<std::vector<int>> CutBlocks(const LayerPrice& layers,
                                          int num_stages, Cut cut,
                                          const std::vector<double>& speeds) {
  Blocks blocks = CutAs(layers, num_stages, cut, speeds);
  if (!blocks.has_value()) return {};
  for (const Cut other : kAllCuts) {
    // Another place of the MTP modules differs with equal blocks.
    if (other == cut || cut == Cut::kMtpApart) break;
    if (CutAs(layers, num_stages, other, speeds) == blocks) return {};
  }
  return blocks;
}

}  // namespace weir::plan
