// SPDX-License-Identifier: Apache-2.0
// A file of a dump of Primus: a JSON object with an object for each step, which
// has lists of the start and end of passes; or the configuration.
#ifndef WEIR_RESULTS_IMPORT_PRIMUS_FILE_H_
#define WEIR_RESULTS_IMPORT_PRIMUS_FILE_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/import/trace_source.h"

namespace weir::results {

// The passes of one kind of a rank in a step, in the order in which they ran.
// Microbatches and chunks are empty if the runtime recorded none.
struct PrimusPasses {
  std::vector<double> start_milliseconds, end_milliseconds, microbatches,
      chunks;

  auto operator<=>(const PrimusPasses&) const = default;
};
// Forward, backward and weight gradient.
inline constexpr int kNumPrimusKinds = 3;
using PrimusStep = std::array<PrimusPasses, kNumPrimusKinds>;
inline constexpr const char* kPrimusPrefixes[kNumPrimusKinds] = {"fwd_", "bwd_",
                                                                 "wgrad_"};

struct PrimusFile {
  std::map<int32_t, PrimusStep> steps;    // complete ones, by number
  std::map<std::string, double> numbers;  // outside of steps: config.json
  bool cut_off = false;
};

// Returns true for the first bytes of pp_rank_N.json or config.json.
bool IsPrimusDump(absl::string_view bytes);

// Returns InvalidArgument if the file is not JSON of this form, or has a time
// that is not a finite number.
absl::StatusOr<PrimusFile> ReadPrimusFile(TraceSource* source);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_PRIMUS_FILE_H_
