// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/collect.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "plan/sweep/shard.h"

namespace weir::plan {
namespace {

// Returns true if outcome `a` of a point is preferred to `b`: a final outcome
// to a failure. Final outcomes are alike; between failures, any choice is valid
// that does not depend on their order.
bool IsRather(const SweepOutcome& a, const SweepOutcome& b) {
  const bool a_failed = a.kind() == SWEEP_FAILED;
  const bool b_failed = b.kind() == SWEEP_FAILED;
  if (a_failed != b_failed) return b_failed;
  return a.SerializeAsString() < b.SerializeAsString();
}

absl::Status AddShard(const std::string& path, const std::string& first,
                      CollectedSweep* collected) {
  ASSIGN_OR_RETURN(ShardContents contents, ReadShardFile(path));
  collected->damage.insert(collected->damage.end(), contents.damage.begin(),
                           contents.damage.end());
  if (!contents.has_head) return absl::OkStatus();
  if (++collected->num_shards == 1) {
    collected->head = contents.head;
  } else if (const absl::Status same =
                 CheckSameSweep(collected->head, contents.head);
             !same.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": belongs to a different sweep than ", first, ":\n",
                     same.message()));
  }
  for (SweepOutcome& outcome : contents.outcomes) {
    const auto [at, added] =
        collected->outcomes.try_emplace(outcome.point(), outcome);
    if (!added && IsRather(outcome, at->second)) {
      at->second = std::move(outcome);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CollectedSweep> CollectShards(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ShardPaths(folder));
  CollectedSweep collected;
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(AddShard(path, paths.front(), &collected));
  }
  if (collected.num_shards == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": no shard has been started"));
  }
  Sweep sweep;
  RETURN_IF_ERROR(
      ParseTextProto(paths.front(), collected.head.sweep(), &sweep));
  ASSIGN_OR_RETURN(collected.sweep, ResolveSweep(paths.front(), sweep));
  auto& outcomes = collected.outcomes;
  const auto end = outcomes.lower_bound(collected.sweep.num_points);
  for (auto at = end; at != outcomes.end(); ++at) {
    collected.damage.push_back(
        absl::StrCat(folder, ": a shard contains point ", at->first,
                     ", expected points below ", collected.sweep.num_points));
  }
  outcomes.erase(end, outcomes.end());
  return collected;
}

SweepCounts CountsOf(const CollectedSweep& collected) {
  SweepCounts counts;
  counts.num_points = collected.sweep.num_points;
  for (const auto& [point, outcome] : collected.outcomes) {
    CountNow(outcome, &counts);
  }
  return counts;
}

bool IsComplete(const CollectedSweep& collected) {
  const SweepCounts counts = CountsOf(collected);
  return counts.num_ended() == counts.num_points && counts.num_failed == 0;
}

std::string CollectedText(const CollectedSweep& collected) {
  const SweepCounts counts = CountsOf(collected);
  std::string text = absl::StrCat(
      counts.num_points, " points in ", collected.num_shards,
      collected.num_shards == 1 ? " shard: " : " shards: ", counts.num_done,
      " done, ", counts.num_refused, " refused, ", counts.num_failed,
      " failed, ", counts.num_points - counts.num_ended(), " missing\n");
  if (counts.has_best) {
    absl::StrAppend(&text, "best: ", PointText(collected.sweep, counts.best),
                    "\n");
  }
  return text;
}

std::vector<uint32_t> MissingPoints(const CollectedSweep& collected,
                                    size_t limit) {
  std::vector<uint32_t> missing;
  for (uint32_t point = 0;
       point < collected.sweep.num_points && missing.size() < limit; ++point) {
    if (collected.outcomes.count(point) == 0) missing.push_back(point);
  }
  return missing;
}

}  // namespace weir::plan
