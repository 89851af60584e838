// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/goodput.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/goodput/estimate_runs.h"
#include "plan/goodput/interval.h"
#include "plan/goodput/investments.h"

namespace weir::plan {
namespace {

// Part by which a simulated time may exceed the best one in the flat range.
constexpr double kFlat = 1e-3;
// Simulated failures in one evaluation of the search for an interval.
constexpr double kSearchFailures = 2e4;
// Wall time over work beyond which a job counts as one without progress.
constexpr double kNoProgress = 100;
// More take minutes.
constexpr double kMostExpectedFailures = 1e5;
constexpr double kMostSimulatedFailures = 4e6;

// Searches the best number of steps between checkpoints.
class IntervalSearch {
 public:
  IntervalSearch(const GoodputRequest& request, double start_steps)
      : request_(request), least_(LeastIntervalSteps(request)) {
    request_.num_runs = SearchRuns();
    start_ = std::max(std::round(start_steps), least_);
  }

  double Best() {
    Scan(start_, 0.25, 8);
    // The best may be outside of what was tried.
    for (int i = 0; i < kMostMoves && IsAtEnd(BestSoFar()); ++i) {
      Scan(BestSoFar(), 0.25, 8);
    }
    Scan(BestSoFar(), 1.0 / 16, 4);
    return BestSoFar();
  }

  // Returns the smallest or largest tried number of steps that is about as
  // good as the best.
  double FlatEnd(bool largest) const {
    double end = BestSoFar();
    const double best_seconds = tried_.at(end).wall_seconds;
    for (const auto& [steps, tried] : tried_) {
      if (tried.wall_seconds <= best_seconds * (1 + kFlat)) {
        end = largest ? std::max(end, steps) : std::min(end, steps);
      }
    }
    return end;
  }

  std::vector<TriedInterval> Tried() const {
    std::vector<TriedInterval> all;
    for (const auto& [steps, tried] : tried_) all.push_back(tried);
    return all;
  }

 private:
  static constexpr int kMostMoves = 8;

  bool IsAtEnd(double steps) const {
    return (steps == tried_.begin()->first && steps > least_) ||
           steps == tried_.rbegin()->first;
  }

  int SearchRuns() const {
    const double failures =
        WorkSecondsOf(request_) /
        MeanSecondsBetween(FailuresOfJob(request_.reliability, request_.job));
    return static_cast<int>(
        std::clamp(kSearchFailures / std::max(failures, 1.0), 8.0,
                   std::max(8.0, 1.0 * request_.num_runs)));
  }

  void Scan(double center, double octaves, int count) {
    for (int i = -count; i <= count; ++i) {
      const double steps =
          std::max(std::round(center * std::exp2(i * octaves)), least_);
      if (tried_.contains(steps)) continue;
      const GoodputEstimate estimate = EstimateRuns(request_, steps);
      tried_[steps] = {steps, estimate.wall_seconds.mean,
                       estimate.shares.useful};
    }
  }

  double BestSoFar() const {
    return std::min_element(tried_.begin(), tried_.end(),
                            [](const auto& a, const auto& b) {
                              return a.second.wall_seconds <
                                     b.second.wall_seconds;
                            })
        ->first;
  }

  GoodputRequest request_;
  double least_, start_;
  std::map<double, TriedInterval> tried_;  // [steps]
};

void CheckRates(const GoodputRequest& request, Problems* problems) {
  const CheckpointSpec& checkpoint = request.checkpoint;
  problems->CheckRange("--checkpoint-bytes", checkpoint.bytes, 1, 1e18);
  if (checkpoint.mode != CheckpointMode::kInMemory) {
    problems->CheckRange("--checkpoint-bandwidth",
                         checkpoint.storage_bytes_per_second, 1, 1e18);
  }
  problems->CheckRange("--snapshot-bandwidth",
                       checkpoint.snapshot_bytes_per_second, 1, 1e18);
  problems->CheckRange("--peer-bandwidth", checkpoint.peer_bytes_per_second, 1,
                       1e18);
}

void CheckSteps(const GoodputRequest& request, Problems* problems) {
  problems->CheckRange("step time", request.step.seconds, 1e-6, 1e9);
  if (request.tokens > 0 && request.tokens_per_step == 0) {
    problems->Add("--tokens",
                  "is given, expected --tokens-per-step or a scenario, too");
  }
  const double steps = WorkSecondsOf(request) / request.step.seconds;
  if (!(steps >= 1) || steps > 1e12) {
    problems->Add(
        request.tokens > 0 ? "--tokens" : "",
        absl::StrCat(request.tokens > 0 ? "gives a run of " : "the run has ",
                     steps, " steps, expected 1 to 1e12"));
  }
}

// Checks that the job makes progress with this number of steps between
// checkpoints, and that its failures can be simulated.
absl::Status CheckProgress(const GoodputRequest& request,
                           double interval_steps) {
  const double mean =
      MeanSecondsBetween(FailuresOfJob(request.reliability, request.job));
  const double interval_seconds = interval_steps * request.step.seconds;
  const double stall_seconds =
      TimesOfCheckpoint(request.checkpoint, request.job).stall_seconds;
  const double restart_seconds = RecoverySeconds(request);
  // Expected wall time over work.
  const double slowdown = ExpectedSeconds(1, interval_seconds, stall_seconds,
                                          restart_seconds, mean);
  if (!(slowdown < kNoProgress)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: the job makes no progress: a failure every ",
        FormatSeconds(mean),
        ", expected much more than the time between "
        "checkpoints (",
        FormatSeconds(interval_seconds), "), a restart (",
        FormatSeconds(restart_seconds), ") and a checkpoint (",
        FormatSeconds(stall_seconds), ")"));
  }
  const double failures = slowdown * WorkSecondsOf(request) / mean;
  if (failures > kMostExpectedFailures ||
      failures * request.num_runs > kMostSimulatedFailures) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: a run has about ", FormatCount(failures),
        " failures, expected at most ", FormatCount(kMostExpectedFailures),
        ", and ", FormatCount(kMostSimulatedFailures),
        " in all --runs together"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGoodputRequest(const GoodputRequest& request) {
  Problems problems("command line");
  if (request.job.num_gpus < 1 || request.job.num_nodes < 1 ||
      request.job.num_nodes > request.job.num_gpus) {
    problems.Add("", absl::StrCat("the job has ", request.job.num_gpus,
                                  " GPUs in ", request.job.num_nodes,
                                  " nodes, expected at least one GPU a node"));
  }
  CheckRates(request, &problems);
  CheckSteps(request, &problems);
  if (request.target_goodput != 0) {
    problems.CheckRange("--target-goodput", request.target_goodput, 1e-6, 1);
  }
  problems.CheckRange("--runs", request.num_runs, 2, 100'000);
  if (request.num_elastic_replicas > 1 && request.num_spares < 0) {
    problems.Add("--elastic", "is given without --spares, expected both");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  const double least = LeastIntervalSteps(request);
  if (request.interval_steps > 0 && request.interval_steps < least) {
    problems.Add(
        "--interval-steps",
        absl::StrCat("is ", request.interval_steps, ", expected ", least,
                     " or more: a checkpoint must be safe "
                     "before the next one is"));
  }
  return problems.ToStatus();
}

absl::StatusOr<GoodputReport> PredictGoodput(const GoodputRequest& request) {
  RETURN_IF_ERROR(ValidateReliability("--reliability", request.reliability));
  RETURN_IF_ERROR(CheckGoodputRequest(request));
  GoodputReport report;
  report.request = request;
  report.failures = FailuresOfJob(request.reliability, request.job);
  const double mean = MeanSecondsBetween(report.failures);
  report.mean_seconds_between_failures = mean;
  report.checkpoint = TimesOfCheckpoint(request.checkpoint, request.job);
  report.work_seconds = WorkSecondsOf(request);
  const double stall = report.checkpoint.stall_seconds;
  report.young_seconds = YoungInterval(stall, mean);
  report.daly_seconds = DalyInterval(stall, mean);
  report.exact_seconds = ExactInterval(stall, mean);

  const double restart = RecoverySeconds(request);
  const double start = std::max(report.exact_seconds / request.step.seconds,
                                LeastIntervalSteps(request));
  RETURN_IF_ERROR(CheckProgress(request, start));
  if (request.interval_steps > 0) {
    RETURN_IF_ERROR(CheckProgress(request, request.interval_steps));
  }
  IntervalSearch search(request, start);
  const double best = search.Best();
  report.flat_from_steps = search.FlatEnd(/*largest=*/false);
  report.flat_to_steps = search.FlatEnd(/*largest=*/true);
  report.tried_intervals = search.Tried();
  const double steps =
      request.interval_steps > 0 ? request.interval_steps : best;
  report.estimate = EstimateRuns(request, steps);
  const double interval = steps * request.step.seconds;
  if (request.checkpoint.mode == CheckpointMode::kSync &&
      request.num_spares < 0) {
    report.expected_goodput =
        1 / ExpectedSeconds(1, interval, stall, restart, mean);
  }
  report.most_lost_seconds = interval + report.checkpoint.safe_seconds;
  report.mean_loss_seconds =
      report.estimate.wall_seconds.mean * (1 - report.goodput()) /
      std::max(report.estimate.num_failures.mean, 1e-300);
  if (request.target_goodput > 0) {
    report.largest_loss_seconds =
        LargestLossSeconds(request.target_goodput, mean);
  }
  report.investments = InvestmentsOf(report);
  return report;
}

}  // namespace weir::plan
