// SPDX-License-Identifier: Apache-2.0
// What a comparison concludes, apart from how it is shown.
#ifndef WEIR_RESULTS_COMPARE_H_
#define WEIR_RESULTS_COMPARE_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/result.pb.h"

namespace weir {

// Whether the worst rank fits; where no device limits it, everything does.
bool FitsMemory(const Result& result);

// Bytes by which the worst rank's peak passes the device's memory; 0 where it
// does not or nothing limits it.
double MissingBytes(const Result& result);

// Indices of the results that can be measured against one another: inference
// does a third of training's work, so beside training it is left out.
std::vector<int> Comparable(std::span<const Result> results);

// Indices of the fastest that are comparable: by samples per second where all
// of them have them (their batches may differ), else by time per batch. The
// first of equals.
struct Fastest {
  std::optional<int> of_all;
  std::optional<int> that_fits;
};
Fastest FindFastest(std::span<const Result> results);

// The name of a result's row: its schedule, "v=2" where a rank has several
// stages.
std::string RowName(const Result& result);

// The warnings of all results, each once, in order of appearance; one that
// only some results have starts with their row's name.
std::vector<std::string> MergeWarnings(std::span<const Result> results);

}  // namespace weir

#endif  // WEIR_RESULTS_COMPARE_H_
