// SPDX-License-Identifier: Apache-2.0
// Merges the shards of a sweep into one table. The same points give the same
// bytes for any number of processes and of repeated runs.
#ifndef WEIR_PLAN_SWEEP_COLLECT_H_
#define WEIR_PLAN_SWEEP_COLLECT_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/sweep/counts.h"
#include "plan/sweep/sweep.h"

namespace weir::plan {

struct CollectedSweep {
  SweepHead head;
  ResolvedSweep sweep;
  std::map<uint32_t, SweepOutcome> outcomes;  // by point
  int num_shards = 0;                         // files
  std::vector<std::string> damage;            // records that were skipped
};

// Returns InvalidArgument if the shards belong to different sweeps.
absl::StatusOr<CollectedSweep> CollectShards(const std::string& folder);

SweepCounts CountsOf(const CollectedSweep& collected);

// Returns true if every point is done or refused.
bool IsComplete(const CollectedSweep& collected);

// Returns two lines: the counts and the best point.
std::string CollectedText(const CollectedSweep& collected);

// Returns the first points that no shard has, at most `limit`.
std::vector<uint32_t> MissingPoints(const CollectedSweep& collected,
                                    size_t limit);

// An empty cell, a boolean, an integer, a real number or text.
using SweepCell =
    std::variant<std::monostate, bool, int64_t, double, std::string>;

struct SweepTable {
  enum class Kind { kInteger, kReal, kText };
  std::vector<std::string> names;  // point, swept fields, results
  std::vector<Kind> kinds;
};
SweepTable TableOf(const ResolvedSweep& sweep);
// Returns a cell for each column.
std::vector<SweepCell> RowOf(const ResolvedSweep& sweep,
                             const SweepOutcome& outcome);

std::string SweepCsv(const CollectedSweep& collected);
// Returns true if `line` is the header line of the table of a sweep.
bool IsSweepHeader(absl::string_view line);

// Writes the tables "points" and "sweep". Replaces the file as a whole; for a
// symbolic link, the target. Returns InvalidArgument if it cannot be written.
absl::Status WriteSqlite(const std::string& path,
                         const CollectedSweep& collected);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_COLLECT_H_
