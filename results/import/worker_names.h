// SPDX-License-Identifier: Apache-2.0
// Names of workers of a recorded run, for messages.
#ifndef WEIR_RESULTS_IMPORT_WORKER_NAMES_H_
#define WEIR_RESULTS_IMPORT_WORKER_NAMES_H_

#include <string>
#include <vector>

#include "results/import/recorded_run.h"

namespace weir::results {

// Returns "pipeline rank 1", with the replica if there are several.
std::string NameOfWorker(const RecordedRun& run, int replica, int rank);

// A clock is replica * num_ranks + rank.
std::string NameOfClock(const RecordedRun& run, int clock);

// Returns the names with commas, those after the first 5 only as their number.
std::string Named(std::vector<std::string> names);
std::string NamedClocks(const RecordedRun& run, const std::vector<int>& clocks);

// Returns "+1.5 s" or "-20 ms", with up to 6 digits.
std::string SignedSeconds(double seconds);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_WORKER_NAMES_H_
