// SPDX-License-Identifier: Apache-2.0
#include "results/compare/quantities.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "results/summary.h"

namespace weir::results {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kGib = 1024.0 * kMib;

using Predicted = absl::StatusOr<double>;

double GpusOf(const Result& result) {
  return static_cast<double>(NumGpus(result));
}

absl::Status Lacks(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("a prediction from given costs has no ", what));
}

Predicted StepSeconds(const Result& result, const FlopsBasis&) {
  return result.batch_seconds();
}

Predicted Samples(const Result& result, const FlopsBasis&) {
  if (!result.has_samples_per_second()) return Lacks("samples per second");
  return result.samples_per_second();
}

Predicted SamplesPerGpu(const Result& result, const FlopsBasis&) {
  if (!result.has_samples_per_second()) return Lacks("samples per second");
  return result.samples_per_second() / GpusOf(result);
}

Predicted Tokens(const Result& result, const FlopsBasis&) {
  if (!result.has_tokens_per_second()) return Lacks("tokens per second");
  return result.tokens_per_second();
}

Predicted TokensPerGpu(const Result& result, const FlopsBasis&) {
  if (!result.has_tokens_per_second()) return Lacks("tokens per second");
  return result.tokens_per_second() / GpusOf(result);
}

Predicted FlopsOfGpu(const Result& result, const FlopsBasis& basis) {
  FlopsBasis given = basis;
  if (given.formula == FlopsFormula::kNone) {
    given.formula = FlopsFormula::kModel;
  }
  const std::optional<double> flops = FlopsOfStep(given, result);
  if (!flops.has_value()) return Lacks("FLOP");
  return *flops / (result.batch_seconds() * GpusOf(result));
}

// Without a formula: that of the formula model.
Predicted Utilization(const Result& result, const FlopsBasis& basis) {
  if (!result.has_model_flops_utilization()) return Lacks("FLOP");
  const double of_model = result.model_flops_utilization();
  if (basis.formula == FlopsFormula::kNone ||
      basis.formula == FlopsFormula::kModel) {
    return of_model;
  }
  const std::optional<double> flops = FlopsOfStep(basis, result);
  const std::optional<double> model =
      results::FlopsOfBatch(result, FlopsFormula::kModel);
  if (!flops.has_value() || !(model.value_or(0) > 0)) return Lacks("FLOP");
  return of_model * *flops / *model;
}

Predicted PeakMemory(const Result& result, const FlopsBasis&) {
  // Results of older versions have no cached memory.
  return std::max(result.used_memory_bytes(), result.peak_memory_bytes());
}

double BytesOf(const RankResult& rank, absl::string_view name) {
  double bytes = 0;
  for (const MemoryClass& memory : rank.peak_memory_classes()) {
    if (memory.name() == name) bytes += memory.bytes();
  }
  return bytes;
}

// Returns what a framework's allocator hands out: without the context and the
// libraries' own buffers.
double Allocated(const RankResult& rank) {
  return rank.peak_memory_bytes() - BytesOf(rank, "reserved") -
         BytesOf(rank, "communication_buffers");
}

Predicted MostAllocated(const Result& result, const FlopsBasis&) {
  double most = 0;
  for (const RankResult& rank : result.ranks()) {
    most = std::max(most, Allocated(rank));
  }
  return most;
}

Predicted MostReserved(const Result& result, const FlopsBasis&) {
  double most = 0;
  for (const RankResult& rank : result.ranks()) {
    most = std::max(most, Allocated(rank) + rank.cached_bytes());
  }
  return most;
}

Predicted LeastAllocated(const Result& result, const FlopsBasis&) {
  double least = HUGE_VAL;
  for (const RankResult& rank : result.ranks()) {
    least = std::min(least, Allocated(rank));
  }
  return least;
}

Predicted BlockActivations(const Result& result, const FlopsBasis&) {
  double most = 0;
  for (const RankResult& rank : result.ranks()) {
    most = std::max(most, BytesOf(rank, "activations"));
  }
  return most;
}

constexpr Quantity kQuantities[] = {
    {"step_seconds", "time of one step", 1, StepSeconds},
    {"step_ms", "time of one step", 1e-3, StepSeconds},
    {"tflops_per_gpu", "TFLOP/s by flops_formula (model)", 1e12, FlopsOfGpu},
    {"samples_per_second", "sequences, all GPUs", 1, Samples},
    {"samples_per_second_per_gpu", "sequences, per GPU", 1, SamplesPerGpu},
    {"tokens_per_second", "tokens, all GPUs", 1, Tokens},
    {"tokens_per_second_per_gpu", "tokens, per GPU", 1, TokensPerGpu},
    {"mfu", "FLOP utilization by flops_formula (model), from 0 to 1", 1,
     Utilization},
    {"peak_memory_gib", "highest peak memory of a GPU", kGib, PeakMemory,
     MemoryScope::kUsed},
    {"peak_memory_gb", "highest peak memory of a GPU", 1e9, PeakMemory,
     MemoryScope::kUsed},
    {"peak_reserved_gib",
     "highest peak memory of a GPU, as held by the allocator", kGib,
     MostReserved, MemoryScope::kReserved},
    {"peak_reserved_mib",
     "highest peak memory of a GPU, as held by the allocator", kMib,
     MostReserved, MemoryScope::kReserved},
    {"peak_allocated_gib",
     "highest peak memory of a GPU, as counted by the allocator", kGib,
     MostAllocated, MemoryScope::kAllocated},
    {"peak_allocated_gb",
     "highest peak memory of a GPU, as counted by the allocator", 1e9,
     MostAllocated, MemoryScope::kAllocated},
    {"peak_allocated_mib",
     "highest peak memory of a GPU, as counted by the allocator", kMib,
     MostAllocated, MemoryScope::kAllocated},
    {"least_allocated_mib",
     "lowest peak memory of a GPU, as counted by the allocator", kMib,
     LeastAllocated, MemoryScope::kAllocated},
    {"block_activation_gib",
     "activations of the blocks at the highest peak of a GPU", kGib,
     BlockActivations},
};

}  // namespace

Result AtBatchSeconds(const Result& result, double batch_seconds) {
  Result other = result;
  const double factor = result.batch_seconds() / batch_seconds;
  other.set_batch_seconds(batch_seconds);
  if (other.has_samples_per_second()) {
    other.set_samples_per_second(factor * other.samples_per_second());
  }
  if (other.has_tokens_per_second()) {
    other.set_tokens_per_second(factor * other.tokens_per_second());
  }
  if (other.has_model_flops_utilization()) {
    other.set_model_flops_utilization(factor * other.model_flops_utilization());
  }
  return other;
}

std::optional<double> FlopsOfStep(const FlopsBasis& basis,
                                  const Result& result) {
  const bool recomputed = basis.formula == FlopsFormula::kMegatron96;
  if (!recomputed && basis.formula != FlopsFormula::kModel72) {
    return FlopsOfBatch(result, basis.formula);
  }
  if (basis.num_layers == 0) return {};
  return MegatronFlops(result.global_batch_size(), result.sequence_length(),
                       basis.num_layers, basis.hidden_size,
                       basis.vocabulary_size, recomputed ? 4 : 3);
}

std::span<const Quantity> AllQuantities() { return kQuantities; }

const Quantity* FindQuantity(absl::string_view name) {
  for (const Quantity& quantity : kQuantities) {
    if (quantity.name == name) return &quantity;
  }
  return nullptr;
}

}  // namespace weir::results
