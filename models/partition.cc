// SPDX-License-Identifier: Apache-2.0
#include "models/partition.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::models {
namespace {

bool IsBlock(const LayerWork& layer) {
  return layer.role == LayerRole::kBlock || layer.role == LayerRole::kMeasured;
}

int CountBlocks(const LayerList& layers) {
  return static_cast<int>(std::count_if(layers.begin(), layers.end(), IsBlock));
}

absl::Status CheckStages(int num_stages, int most, absl::string_view of_what) {
  if (num_stages >= 1 && num_stages <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("partition: num_stages is %d, expected 1 to %d, the "
                      "number of %s",
                      num_stages, most, of_what));
}

// Only the first stage, which has the embedding, and the last, which has the
// head, may have no block.
void CheckCount(const LayerList& layers, int stage, int last_stage, int blocks,
                Problems* problems) {
  const bool has_end =
      !layers.empty() && ((stage == 0 && !IsBlock(layers.front())) ||
                          (stage == last_stage && !IsBlock(layers.back())));
  if (blocks < 0 || (blocks == 0 && !has_end)) {
    problems->Add(
        absl::StrCat("blocks_per_stage[", stage, "]"),
        absl::StrCat("is ", blocks, ", expected at least ", has_end ? 0 : 1));
  }
}

// Sums of layers [first, last), from prefix sums.
class Sums {
 public:
  explicit Sums(const std::vector<double>& seconds)
      : totals_(seconds.size() + 1, 0) {
    std::partial_sum(seconds.begin(), seconds.end(), totals_.begin() + 1);
  }
  double Of(int first, int last) const {
    return totals_[last] - totals_[first];
  }

 private:
  std::vector<double> totals_;
};

// Returns true if `num_stages` stages can hold all layers within `limit`.
// Greedy filling is optimal, because sums of nonnegative numbers are monotone
// even when rounded.
bool Suffices(const Sums& sums, int num_layers, int num_stages, double limit) {
  int first = 0;
  for (int stage = 0; stage < num_stages && first < num_layers; ++stage) {
    int last = first;
    while (last < num_layers && sums.Of(first, last + 1) <= limit) ++last;
    if (last == first) return false;
    first = last;
  }
  return first == num_layers;
}

// Returns the smallest possible maximum of the stages' sums: the smallest
// number that suffices, found by bisection of its bits, which are ordered like
// the nonnegative numbers. A solution with fewer stages can always be cut
// further.
double SmallestBottleneck(const Sums& sums, int num_layers, int num_stages) {
  auto enough = std::bit_cast<uint64_t>(sums.Of(0, num_layers) + 0.0);
  uint64_t low = 0;
  while (low < enough) {
    const uint64_t middle = low + (enough - low) / 2;
    if (Suffices(sums, num_layers, num_stages, std::bit_cast<double>(middle))) {
      enough = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<double>(enough);
}

// Returns by [i] the fewest stages that hold layers [i, end) within `limit`.
std::vector<int> StagesNeeded(const Sums& sums, int num_layers, double limit) {
  std::vector<int> needed(num_layers + 1, 0);
  int end = num_layers;
  for (int i = num_layers - 1; i >= 0; --i) {
    while (sums.Of(i, end) > limit) --end;
    needed[i] = 1 + needed[end];
  }
  return needed;
}

}  // namespace

absl::StatusOr<Partition> PartitionEvenly(const LayerList& layers,
                                          int num_stages) {
  const int num_blocks = CountBlocks(layers);
  RETURN_IF_ERROR(CheckStages(num_stages, num_blocks, "blocks"));
  if (num_blocks % num_stages != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "partition: num_stages is %d, expected a divisor of the %d blocks",
        num_stages, num_blocks));
  }
  return PartitionAsGiven(
      layers, std::vector<int>(num_stages, num_blocks / num_stages));
}

absl::StatusOr<Partition> PartitionAsGiven(
    const LayerList& layers, const std::vector<int>& blocks_per_stage) {
  Problems problems("partition");
  const int num_blocks = CountBlocks(layers);
  const int num_stages = static_cast<int>(blocks_per_stage.size());
  if (num_stages == 0) problems.Add("blocks_per_stage", "is empty");
  int64_t sum = 0;
  for (int stage = 0; stage < num_stages; ++stage) {
    CheckCount(layers, stage, num_stages - 1, blocks_per_stage[stage],
               &problems);
    sum += blocks_per_stage[stage];
  }
  if (num_stages > 0 && sum != num_blocks) {
    problems.Add("blocks_per_stage",
                 absl::StrFormat("adds up to %d, expected the %d blocks of the "
                                 "model",
                                 sum, num_blocks));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  Partition partition;
  int next = !layers.empty() && !IsBlock(layers.front()) ? 1 : 0;
  partition.first.push_back(0);
  for (int stage = 0; stage + 1 < num_stages; ++stage) {
    next += blocks_per_stage[stage];
    partition.first.push_back(next);
  }
  partition.first.push_back(static_cast<int>(layers.size()));
  return partition;
}

absl::StatusOr<Partition> PartitionBalanced(
    const std::vector<double>& layer_seconds, int num_stages) {
  const int num_layers = static_cast<int>(layer_seconds.size());
  RETURN_IF_ERROR(CheckStages(num_stages, num_layers, "layers"));
  Problems problems("partition");
  for (int i = 0; i < num_layers; ++i) {
    problems.CheckRange(absl::StrCat("layer_seconds[", i, "]"),
                        layer_seconds[i], 0, 1e12);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  const Sums sums(layer_seconds);
  // The slack keeps ties that only rounding breaks.
  const double limit = SmallestBottleneck(sums, num_layers, num_stages) +
                       1e-12 * sums.Of(0, num_layers);
  const std::vector<int> needed = StagesNeeded(sums, num_layers, limit);
  Partition partition;
  partition.first.push_back(0);
  for (int left = num_stages - 1; left >= 1; --left) {
    int cut = partition.first.back() + 1;
    while (needed[cut] > left) ++cut;
    partition.first.push_back(cut);
  }
  partition.first.push_back(num_layers);
  return partition;
}

}  // namespace weir::models
