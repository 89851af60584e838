// SPDX-License-Identifier: Apache-2.0
#include "results/summary.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::results {

uint32_t ContextOf(const Result& result) {
  return std::max(result.context_parallel(), 1u);
}

uint64_t NumGpus(const Result& result) {
  return uint64_t{result.tensor_parallel()} * result.pipeline_parallel() *
         result.data_parallel() * ContextOf(result);
}

bool FitsMemory(const Result& result) {
  return !result.has_memory_capacity_bytes() || result.fits_memory();
}

double MemoryUse(const Result& result) {
  const double capacity = result.memory_capacity_bytes();
  return capacity > 0 ? result.peak_memory_bytes() / capacity : 0;
}

double MissingBytes(const Result& result) {
  if (!result.has_memory_capacity_bytes()) return 0;
  return std::max(0.0,
                  result.peak_memory_bytes() - result.memory_capacity_bytes());
}

std::vector<int> Comparable(std::span<const Result> results) {
  const bool all_infer =
      std::all_of(results.begin(), results.end(),
                  [](const Result& result) { return result.forward_only(); });
  std::vector<int> indices;
  for (int i = 0; i < static_cast<int>(results.size()); ++i) {
    if (all_infer || !results[i].forward_only()) indices.push_back(i);
  }
  return indices;
}

Fastest FindFastest(std::span<const Result> results) {
  const std::vector<int> comparable = Comparable(results);
  const bool by_samples =
      std::all_of(comparable.begin(), comparable.end(),
                  [&](int i) { return results[i].has_samples_per_second(); });
  const auto faster = [&](const Result& a, const Result& b) {
    return by_samples ? a.samples_per_second() > b.samples_per_second()
                      : a.batch_seconds() < b.batch_seconds();
  };
  Fastest fastest;
  for (const int i : comparable) {
    const auto improve = [&](std::optional<int>* best) {
      if (!best->has_value() || faster(results[i], results[**best])) *best = i;
    };
    improve(&fastest.of_all);
    if (FitsMemory(results[i])) improve(&fastest.that_fits);
  }
  return fastest;
}

std::string RowName(const Result& result) {
  return result.chunks() > 1
             ? absl::StrCat(result.schedule(), " v=", result.chunks())
             : result.schedule();
}

std::vector<std::string> MergeWarnings(std::span<const Result> results) {
  absl::flat_hash_map<std::string, size_t> num_results;
  for (const Result& result : results) {
    const absl::flat_hash_set<std::string> distinct(result.warnings().begin(),
                                                    result.warnings().end());
    for (const std::string& warning : distinct) ++num_results[warning];
  }
  std::vector<std::string> merged;
  absl::flat_hash_set<std::string> seen;
  for (const Result& result : results) {
    for (const std::string& warning : result.warnings()) {
      std::string line = num_results[warning] == results.size()
                             ? warning
                             : absl::StrCat(RowName(result), ": ", warning);
      if (seen.insert(line).second) merged.push_back(std::move(line));
    }
  }
  return merged;
}

DefaultsOfResult MergeDefaults(std::span<const Result> results) {
  DefaultsOfResult merged;
  const auto add = [](const auto& texts, auto* all) {
    for (const std::string& text : texts) {
      if (std::find(all->begin(), all->end(), text) == all->end()) {
        all->Add(std::string(text));
      }
    }
  };
  for (const Result& result : results) {
    if (!result.has_defaults()) continue;
    merged.set_set(result.defaults().set());
    add(result.defaults().used(), merged.mutable_used());
    add(result.defaults().not_used(), merged.mutable_not_used());
  }
  return merged;
}

std::string DefaultsText(const DefaultsOfResult& defaults) {
  if (defaults.used().empty() && defaults.not_used().empty()) return "";
  std::string text = defaults.set();
  if (!defaults.used().empty()) {
    absl::StrAppend(&text, " (", absl::StrJoin(defaults.used(), ", "), ")");
  }
  if (!defaults.not_used().empty()) {
    absl::StrAppend(&text,
                    "; not used: ", absl::StrJoin(defaults.not_used(), ", "));
  }
  return text;
}

}  // namespace weir::results
