// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/run_sweep.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "plan/sweep/point.h"

namespace weir::plan {
namespace {

// Returns an error if this sweep cannot continue the shard.
absl::Status CheckShard(const std::string& path, const ShardContents& contents,
                        const SweepHead& head, bool resume) {
  if (!contents.has_head) return absl::OkStatus();
  const absl::Status same = CheckSameSweep(contents.head, head);
  if (!same.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": belongs to a different sweep; choose another --out:\n",
        same.message()));
  }
  if (resume || contents.outcomes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": already contains points; give --resume or choose another --out"));
}

// The points of the sweep that need no further run.
class Ended {
 public:
  Ended(const Shard& shard, uint32_t num_points, double time_limit_seconds,
        SweepCounts* counts)
      : shard_(shard),
        ended_(num_points, false),
        time_limit_seconds_(time_limit_seconds),
        counts_(counts) {}

  bool operator[](uint32_t point) const { return ended_[point]; }

  void Add(const ShardContents& contents) {
    for (const SweepOutcome& outcome : contents.outcomes) {
      const uint32_t point = outcome.point();
      if (point >= ended_.size() || ended_[point]) continue;
      if (outcome.kind() != SWEEP_FAILED) {
        End(outcome);
      } else if (outcome.has_time_limit_seconds() &&
                 outcome.time_limit_seconds() >= time_limit_seconds_) {
        over_time_.push_back(outcome);
      }
    }
  }

  // Must be called after all shards are added, as one may have completed a
  // point that failed in another.
  void AddOverTime() {
    for (const SweepOutcome& outcome : over_time_) {
      if (!ended_[outcome.point()]) End(outcome);
    }
  }

 private:
  void End(const SweepOutcome& outcome) {
    ended_[outcome.point()] = true;
    const auto num_shards = static_cast<uint32_t>(shard_.num_shards);
    if (outcome.point() % num_shards == static_cast<uint32_t>(shard_.index)) {
      CountBefore(outcome, counts_);
    }
  }

  Shard shard_;
  std::vector<bool> ended_;
  double time_limit_seconds_;
  std::vector<SweepOutcome> over_time_;
  SweepCounts* counts_;
};

// Adds the other shards of the folder, which other processes may be writing.
absl::Status AddOthers(const SweepOptions& options, const std::string& own,
                       const SweepHead& head, Ended* ended) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   ShardPaths(options.folder));
  for (const std::string& path : paths) {
    // Closing any descriptor of the own file would release its lock.
    std::error_code error;
    if (std::filesystem::equivalent(path, own, error)) continue;
    ASSIGN_OR_RETURN(const ShardContents contents, ReadShardFile(path));
    RETURN_IF_ERROR(CheckShard(path, contents, head, /*resume=*/true));
    for (const std::string& damage : contents.damage) options.warn(damage);
    ended->Add(contents);
  }
  return absl::OkStatus();
}

SweepOutcome OutcomeOf(uint32_t point, double time_limit_seconds,
                       const absl::StatusOr<std::string>& output) {
  SweepOutcome outcome;
  if (!output.ok()) {
    outcome = OutcomeOfError(point, output.status());
    if (absl::IsDeadlineExceeded(output.status())) {
      outcome.set_time_limit_seconds(time_limit_seconds);
    }
    return outcome;
  }
  if (outcome.ParseFromString(*output)) return outcome;
  return OutcomeOfError(point,
                        absl::InternalError("the worker process returned "
                                            "an unreadable result"));
}

}  // namespace

absl::Status CheckSweepFolder(const ResolvedSweep& sweep,
                              const std::string& folder, bool resume) {
  const auto paths = ShardPaths(folder);
  if (!paths.ok()) return absl::OkStatus();  // no folder yet
  const SweepHead head = HeadOf(sweep);
  for (const std::string& path : *paths) {
    ASSIGN_OR_RETURN(const ShardContents contents, ReadShardFile(path));
    RETURN_IF_ERROR(CheckShard(path, contents, head, resume));
  }
  return absl::OkStatus();
}

absl::StatusOr<SweepCounts> RunSweep(const ResolvedSweep& sweep,
                                     const SweepOptions& options) {
  const std::string path = ShardPath(options.folder, options.shard);
  const SweepHead head = HeadOf(sweep);
  SweepCounts counts;
  Ended ended(options.shard, sweep.num_points, options.time_limit_seconds,
              &counts);
  ASSIGN_OR_RETURN(ShardWriter writer, ShardWriter::Open(path, options.force));
  RETURN_IF_ERROR(CheckShard(path, writer.contents(), head, options.resume));
  for (const std::string& damage : writer.contents().damage) {
    options.warn(damage);
  }
  ended.Add(writer.contents());
  RETURN_IF_ERROR(AddOthers(options, path, head, &ended));
  ended.AddOverTime();
  if (!writer.contents().has_head) RETURN_IF_ERROR(writer.Append(head));

  std::vector<uint32_t> points;
  const auto num_shards = static_cast<uint32_t>(options.shard.num_shards);
  for (uint32_t point = options.shard.index; point < sweep.num_points;
       point += num_shards) {
    ++counts.num_points;
    if (!ended[point]) points.push_back(point);
  }
  std::optional<PointRunner> runner;  // one per worker
  absl::Status written;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(points.size());
  jobs.num_processes = options.num_processes;
  jobs.time_limit_seconds = options.time_limit_seconds;
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    if (!runner) runner.emplace(sweep.sweep.method());
    const uint32_t point = points[job];
    return runner
        ->Run(point, options.resolve(absl::StrCat("point ", point),
                                     ScenarioOfPoint(sweep, point)))
        .SerializeAsString();
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    if (absl::IsCancelled(output.status()) || !written.ok()) return;
    const SweepOutcome outcome =
        OutcomeOf(points[job], options.time_limit_seconds, output);
    written = writer.Append(outcome);
    CountNow(outcome, &counts);
    if (options.progress) options.progress(counts);
  };
  jobs.stop = [&] {
    if (options.progress) options.progress(counts);
    written.Update(writer.SyncIfDue());
    return !written.ok() || options.stop();
  };
  const absl::Status ran = RunJobs(jobs);
  written.Update(writer.Sync());
  RETURN_IF_ERROR(ran);
  RETURN_IF_ERROR(written);
  return counts;
}

}  // namespace weir::plan
