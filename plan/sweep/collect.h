// SPDX-License-Identifier: Apache-2.0
// The shards of a sweep as one table. The same points give the same bytes,
// however many processes found them and however often they were found.
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

namespace weir {

struct CollectedSweep {
  SweepHead head;
  ResolvedSweep sweep;
  std::map<uint32_t, SweepOutcome> outcomes;  // by point
  int num_shards = 0;                         // files
  std::vector<std::string> damage;            // records that are left out
};

// InvalidArgument where the shards are of different sweeps.
absl::StatusOr<CollectedSweep> CollectShards(const std::string& folder);

SweepCounts CountsOf(const CollectedSweep& collected);

// Every point is done or refused.
bool IsComplete(const CollectedSweep& collected);

// Two lines: counts, and the best point.
std::string CollectedText(const CollectedSweep& collected);

// The first points that no shard holds, at most `limit`.
std::vector<uint32_t> MissingPoints(const CollectedSweep& collected,
                                    size_t limit);

// Nothing, a truth, a whole number, a number, text.
using SweepCell =
    std::variant<std::monostate, bool, int64_t, double, std::string>;

struct SweepTable {
  enum class Kind { kInteger, kReal, kText };
  std::vector<std::string> names;  // point, the fields swept, what was found
  std::vector<Kind> kinds;
};
SweepTable TableOf(const ResolvedSweep& sweep);
// A cell for each column.
std::vector<SweepCell> RowOf(const ResolvedSweep& sweep,
                             const SweepOutcome& outcome);

std::string SweepCsv(const CollectedSweep& collected);
// Whether the first line of a file is that of the table of any sweep.
bool IsSweepHeader(absl::string_view line);

// Replaces the file, whole: tables "points" and "sweep". A symbolic link stays
// and its target is written.
absl::Status WriteSqlite(const std::string& path,
                         const CollectedSweep& collected);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_COLLECT_H_
