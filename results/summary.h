// SPDX-License-Identifier: Apache-2.0
// Conclusions of a comparison, independent of their presentation.
#ifndef WEIR_RESULTS_SUMMARY_H_
#define WEIR_RESULTS_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/result.pb.h"

namespace weir::results {

// Returns the context-parallel size of a result, and its number of GPUs.
uint32_t ContextOf(const Result& result);
uint64_t NumGpus(const Result& result);

// Returns true if the worst rank fits in memory, or if no device limits it.
bool FitsMemory(const Result& result);

// Returns the peak as a fraction of the capacity; 0 if nothing limits it.
double MemoryUse(const Result& result);

// Returns the bytes by which the worst rank's peak exceeds the device's memory;
// 0 if it does not, or if nothing limits it.
double MissingBytes(const Result& result);

// Returns the indices of the results that can be compared with each other:
// inference does a third of training's work, so it is left out if there is any
// training.
std::vector<int> Comparable(std::span<const Result> results);

// Indices of the fastest comparable results: by samples per second if all of
// them have it (their batches may differ), else by time per batch. The first
// one in case of a tie.
struct Fastest {
  std::optional<int> of_all;
  std::optional<int> that_fits;
};
Fastest FindFastest(std::span<const Result> results);

// Returns the name of a result's row: its schedule, with "v=2" if a rank has
// several stages.
std::string RowName(const Result& result);

// Returns the warnings of all results, each once, in order of appearance. A
// warning that only some results have starts with the name of their row.
std::vector<std::string> MergeWarnings(std::span<const Result> results);

// Returns the defaults of all results, each option once.
DefaultsOfResult MergeDefaults(std::span<const Result> results);

// Returns "modern (bf16, fused attention); not used: distributed optimizer
// (pipedream-2bw has no flush)"; empty if no option comes from defaults.
std::string DefaultsText(const DefaultsOfResult& defaults);

}  // namespace weir::results

#endif  // WEIR_RESULTS_SUMMARY_H_
