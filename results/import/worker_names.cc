// SPDX-License-Identifier: Apache-2.0
#include "results/import/worker_names.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace weir::results {
namespace {

constexpr size_t kMaxNamedWorkers = 5;

}  // namespace

std::string NameOfWorker(const RecordedRun& run, int replica, int rank) {
  return absl::StrCat(
      "pipeline rank ", rank,
      run.num_replicas > 1 ? absl::StrCat(" of replica ", replica) : "");
}

std::string NameOfClock(const RecordedRun& run, int clock) {
  return NameOfWorker(run, clock / run.num_ranks, clock % run.num_ranks);
}

std::string Named(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count > kMaxNamedWorkers + 1) {
    names.resize(kMaxNamedWorkers);
    names.push_back(absl::StrCat(count - kMaxNamedWorkers, " others"));
  }
  return absl::StrJoin(names, ", ");
}

std::string NamedClocks(const RecordedRun& run,
                        const std::vector<int>& clocks) {
  std::vector<std::string> names;
  for (const int clock : clocks) names.push_back(NameOfClock(run, clock));
  return Named(std::move(names));
}

std::string SignedSeconds(double seconds) {
  const double size = std::abs(seconds);
  // Seconds since 1970 have ten digits.
  if (size >= 1e6) return absl::StrFormat("%+.0f s", seconds);
  if (size >= 1) return absl::StrFormat("%+.6g s", seconds);
  if (size >= 1e-3) return absl::StrFormat("%+.6g ms", 1e3 * seconds);
  return absl::StrFormat("%+.6g us", 1e6 * seconds);
}

}  // namespace weir::results
