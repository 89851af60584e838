// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cut_costs.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/repeated_ptr_field.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantiles.h"

namespace weir::scenarios {
namespace {

using google::protobuf::FieldDescriptor;
using Stages = google::protobuf::RepeatedPtrField<GivenCosts::Stage>;

constexpr uint32_t kMaxBlocks = 1'000'000;  // of a model

// Returns the values of a field by stage, or nothing if a stage lacks it.
std::vector<double> ValuesOf(const Stages& stages,
                             const FieldDescriptor* field) {
  std::vector<double> values;
  for (const GivenCosts::Stage& stage : stages) {
    const auto* reflection = stage.GetReflection();
    if (field->has_presence() && !reflection->HasField(stage, field)) return {};
    values.push_back(reflection->GetDouble(stage, field));
  }
  return values;
}

// Costs of the blocks, and of what comes before and after them.
struct BlockCosts {
  double first = 0;
  std::vector<double> blocks;
  double last = 0;
};

// Returns the rest of a stage at an end, whose blocks take at most `typical`.
double TakeRest(double value, uint32_t num_blocks, double typical,
                double* block) {
  *block = num_blocks == 0 ? 0 : std::min(typical, value / num_blocks);
  return std::max(0.0, value - num_blocks * *block);
}

BlockCosts DivideIntoBlocks(const std::vector<double>& values,
                            const std::vector<uint32_t>& blocks) {
  std::vector<double> each(values.size());
  for (size_t s = 0; s < values.size(); ++s) {
    each[s] = values[s] / std::max(blocks[s], 1u);
  }
  BlockCosts costs;
  if (values.size() >= 3) {
    const double typical =
        Median(std::vector<double>(each.begin() + 1, each.end() - 1));
    costs.first = TakeRest(values.front(), blocks.front(), typical, &each[0]);
    costs.last = TakeRest(values.back(), blocks.back(), typical, &each.back());
  }
  for (size_t s = 0; s < values.size(); ++s) {
    costs.blocks.insert(costs.blocks.end(), blocks[s], each[s]);
  }
  return costs;
}

// Divides `values` in the proportions of the `usual` values of the stages, so
// that a slow stage is slow by the same factor in all its parts.
BlockCosts DivideAsUsual(const std::vector<double>& values,
                         const std::vector<double>& usual,
                         const std::vector<uint32_t>& blocks) {
  std::vector<double> ratios;
  for (size_t s = 0; s < values.size(); ++s) {
    // Without a usual value, the recorded one cannot be compared.
    if (!(usual[s] > 0)) return DivideIntoBlocks(values, blocks);
    ratios.push_back(values[s] / usual[s]);
  }
  BlockCosts costs = DivideIntoBlocks(usual, blocks);
  costs.first *= ratios.front();
  costs.last *= ratios.back();
  auto block = costs.blocks.begin();
  for (size_t s = 0; s < values.size(); ++s) {
    for (uint32_t i = 0; i < blocks[s]; ++i) *block++ *= ratios[s];
  }
  return costs;
}

std::vector<double> SumBlocks(const BlockCosts& costs,
                              const std::vector<uint32_t>& blocks) {
  std::vector<double> sums;
  auto from = costs.blocks.begin();
  for (const uint32_t n : blocks) {
    sums.push_back(std::accumulate(from, from + n, 0.0));
    from += n;
  }
  sums.front() += costs.first;
  sums.back() += costs.last;
  return sums;
}

// Returns, for each new stage, the old one with most of its blocks.
std::vector<int> LargestSources(const std::vector<uint32_t>& old_blocks,
                                const std::vector<uint32_t>& new_blocks) {
  std::vector<int> sources;
  uint64_t begin = 0;
  for (const uint32_t n : new_blocks) {
    const uint64_t end = begin + n;
    int best = 0;
    int64_t most = -1;
    uint64_t old_begin = 0;
    for (size_t s = 0; s < old_blocks.size(); ++s) {
      const uint64_t old_end = old_begin + old_blocks[s];
      const int64_t shared = static_cast<int64_t>(std::min(end, old_end)) -
                             static_cast<int64_t>(std::max(begin, old_begin));
      if (shared > most) {
        most = shared;
        best = static_cast<int>(s);
      }
      old_begin = old_end;
    }
    sources.push_back(best);
    begin = end;
  }
  return sources;
}

// Costs by stage, for each field that is divided. Empty: not known.
using UsualCosts = std::map<const FieldDescriptor*, std::vector<double>>;

// Returns the fields whose values are divided among blocks.
std::vector<const FieldDescriptor*> DividedFields() {
  std::vector<const FieldDescriptor*> fields;
  const auto* type = GivenCosts::Stage::descriptor();
  for (int f = 0; f < type->field_count(); ++f) {
    const FieldDescriptor* field = type->field(f);
    if (!field->is_repeated() &&
        field->number() != GivenCosts::Stage::kCodecSecondsFieldNumber) {
      fields.push_back(field);
    }
  }
  return fields;
}

// Returns the lower medians of the replicas: the usual values of each stage,
// unless half of the replicas or more are slow there.
std::vector<double> UsualValues(const GivenCosts& costs,
                                const FieldDescriptor* field) {
  std::vector<std::vector<double>> by_stage(costs.stages_size());
  for (const GivenCosts::Replica& replica : costs.replicas()) {
    const std::vector<double> values = ValuesOf(replica.stages(), field);
    if (values.size() != by_stage.size()) return {};
    for (size_t s = 0; s < values.size(); ++s) by_stage[s].push_back(values[s]);
  }
  std::vector<double> usual;
  for (std::vector<double>& values : by_stage) {
    if (values.empty()) return {};
    usual.push_back(LowerMedian(std::move(values)));
  }
  return usual;
}

// Divides stages: those of the costs, or of a replica.
Stages CutStages(const Stages& stages, const UsualCosts& usual_costs,
                 const std::vector<uint32_t>& old_blocks,
                 const std::vector<uint32_t>& new_blocks) {
  Stages cut;
  for (const int source : LargestSources(old_blocks, new_blocks)) {
    *cut.Add() = stages[source];
  }
  for (const auto& [field, usual] : usual_costs) {
    const std::vector<double> values = ValuesOf(stages, field);
    std::vector<double> sums;
    if (!values.empty()) {
      sums = SumBlocks(usual.empty() ? DivideIntoBlocks(values, old_blocks)
                                     : DivideAsUsual(values, usual, old_blocks),
                       new_blocks);
    }
    for (int s = 0; s < cut.size(); ++s) {
      const auto* reflection = cut[s].GetReflection();
      if (sums.empty()) {
        reflection->ClearField(&cut[s], field);
      } else {
        reflection->SetDouble(&cut[s], field, sums[s]);
      }
    }
  }
  return cut;
}

std::vector<uint32_t> ToVector(
    const google::protobuf::RepeatedField<uint32_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Returns the numbers of blocks that the parallelism asks for; nothing if they
// are those of the costs, or if there is a problem.
std::optional<std::vector<uint32_t>> WantedBlocks(Problems& problems,
                                                  const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const std::vector<uint32_t> old =
      ToVector(scenario.costs().blocks_per_stage());
  const uint64_t total = std::accumulate(old.begin(), old.end(), uint64_t{0});
  const uint64_t num_stages =
      uint64_t{parallelism.pipeline()} * std::max(parallelism.chunks(), 1u);
  std::vector<uint32_t> wanted = ToVector(parallelism.blocks_per_stage());
  if (wanted.empty()) {
    if (num_stages == old.size()) return {};
    if (num_stages == 0 || total % num_stages != 0) {
      problems.Add("parallelism.blocks_per_stage",
                   absl::StrFormat(
                       "is missing, expected %d numbers, since the %d blocks "
                       "of costs.blocks_per_stage are not a multiple of "
                       "pipeline %d x chunks %d",
                       num_stages, total, parallelism.pipeline(),
                       std::max(parallelism.chunks(), 1u)));
      return {};
    }
    return std::vector<uint32_t>(num_stages,
                                 static_cast<uint32_t>(total / num_stages));
  }
  const uint64_t sum =
      std::accumulate(wanted.begin(), wanted.end(), uint64_t{0});
  if (sum != total) {
    problems.Add("parallelism.blocks_per_stage",
                 absl::StrCat("has ", sum, " blocks, expected ", total,
                              ", the sum of costs.blocks_per_stage"));
    return {};
  }
  if (wanted == old) return {};
  return wanted;
}

}  // namespace

void CheckCostBlocks(Problems& problems, absl::string_view prefix,
                     const GivenCosts& costs) {
  const auto& blocks = costs.blocks_per_stage();
  if (blocks.empty()) return;
  const std::string path = absl::StrCat(prefix, "blocks_per_stage");
  if (blocks.size() != costs.stages_size() || blocks.size() < 2) {
    problems.Add(path,
                 absl::StrCat("has ", blocks.size(), " entries, expected ",
                              std::max(costs.stages_size(), 2),
                              costs.stages_size() < 2
                                  ? " or more, one for each of as many stages"
                                  : ", one for each of stages"));
  }
  for (int i = 0; i < blocks.size(); ++i) {
    // Embedding, or head and loss, may be stages of their own.
    const bool is_end = i == 0 || i == blocks.size() - 1;
    problems.CheckRange(absl::StrFormat("%s[%d]", path, i), blocks[i],
                        is_end ? 0 : 1, kMaxBlocks);
  }
  const uint64_t total =
      std::accumulate(blocks.begin(), blocks.end(), uint64_t{0});
  problems.CheckRange(absl::StrCat("the sum of ", path),
                      static_cast<double>(total), 1, kMaxBlocks);
  for (int s = 1; s < costs.stages_size(); ++s) {
    if (costs.stages(s).has_backward_seconds() !=
        costs.stages(0).has_backward_seconds()) {
      problems.Add(
          absl::StrFormat("%sstages[%d]", prefix, s),
          absl::StrFormat("has %s, expected the same as in %sstages[0], since "
                          "%sblocks_per_stage is given",
                          costs.stages(s).has_backward_seconds()
                              ? "backward_seconds"
                              : "the parts of a backward",
                          prefix, prefix));
    }
  }
}

GivenCosts CutCosts(const GivenCosts& costs,
                    const std::vector<uint32_t>& blocks) {
  const std::vector<uint32_t> old = ToVector(costs.blocks_per_stage());
  UsualCosts usual;
  for (const FieldDescriptor* field : DividedFields()) {
    usual[field] = UsualValues(costs, field);
  }
  GivenCosts cut = costs;
  *cut.mutable_stages() = CutStages(costs.stages(), usual, old, blocks);
  for (auto& replica : *cut.mutable_replicas()) {
    *replica.mutable_stages() = CutStages(replica.stages(), usual, old, blocks);
  }
  cut.mutable_blocks_per_stage()->Assign(blocks.begin(), blocks.end());
  return cut;
}

std::string CutGivenCosts(Problems& problems, Scenario* scenario) {
  if (scenario->costs().blocks_per_stage().empty()) return "";
  const auto wanted = WantedBlocks(problems, *scenario);
  scenario->mutable_parallelism()->clear_blocks_per_stage();
  if (!wanted.has_value()) return "";
  const int recorded = scenario->costs().stages_size();
  *scenario->mutable_costs() = CutCosts(scenario->costs(), *wanted);
  return absl::StrFormat(
      "costs of %d recorded stages are divided into %s: all blocks of a stage "
      "are assumed to take the same time%s",
      recorded,
      wanted->size() <= 16
          ? absl::StrCat("stages of ", absl::StrJoin(*wanted, ", "), " blocks")
          : absl::StrCat(wanted->size(), " stages"),
      recorded < 3
          ? ", with embedding and head as parts of them"
          : "; what the first and the last stage take longer than "
            "the blocks of others is assumed to be embedding and head");
}

}  // namespace weir::scenarios
