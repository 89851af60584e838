// SPDX-License-Identifier: Apache-2.0
#include "plan/search/search_workers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/interrupt.h"
#include "base/status_macros.h"
#include "plan/search/evaluate.h"
#include "schedules/source.h"

namespace weir::plan {
namespace {

constexpr size_t kShapesPerJob = 256;
constexpr size_t kFewShapesPerJob = 8;  // that may differ in layers
constexpr int kBoundsPerJob = 4;

int NumRequests(const SearchJob& job) {
  return job.shapes_size() + job.scenarios_size();
}

// Returns true if the job's only order is derived from costs and may need a
// search, which takes about a thousand times as long as other orders.
bool IsExpensive(const SearchJob& job) {
  return job.scenarios_size() == 1 &&
         schedules::OrdersByCosts(job.scenarios(0).schedule());
}

// Batches scenarios into jobs. An expensive scenario gets a job of its own, so
// that others do not wait for it.
std::vector<SearchJob> JobsOf(SearchJob::Kind kind,
                              const std::vector<Scenario>& scenarios,
                              int each) {
  std::vector<SearchJob> jobs;
  for (const Scenario& scenario : scenarios) {
    if (jobs.empty() || jobs.back().scenarios_size() >= each ||
        IsExpensive(jobs.back()) ||
        schedules::OrdersByCosts(scenario.schedule())) {
      jobs.emplace_back().set_kind(kind);
    }
    *jobs.back().add_scenarios() = scenario;
  }
  return jobs;
}

// Splits a job into jobs of one question each.
std::vector<SearchJob> OneByOne(const SearchJob& job) {
  std::vector<SearchJob> jobs;
  for (const uint32_t shape : job.shapes()) {
    jobs.emplace_back().set_kind(job.kind());
    jobs.back().add_shapes(shape);
  }
  for (const Scenario& scenario : job.scenarios()) {
    jobs.emplace_back().set_kind(job.kind());
    jobs.back().set_limit_bytes(job.limit_bytes());
    *jobs.back().add_scenarios() = scenario;
  }
  return jobs;
}

Workers::Work WorkOf(const Space& space) {
  auto evaluator = std::make_shared<std::unique_ptr<Evaluator>>();
  return [&space,
          evaluator](const std::string& input) -> absl::StatusOr<std::string> {
    if (*evaluator == nullptr) *evaluator = std::make_unique<Evaluator>(space);
    SearchJob job;
    job.ParseFromString(input);
    return (*evaluator)->Evaluate(job).SerializeAsString();
  };
}

}  // namespace

SearchWorkers::SearchWorkers(const Space& space, const SearchOptions& options)
    : space_(space),
      options_(options),
      workers_(std::max(options.num_processes, 1), WorkOf(space)) {}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::RunJobs(
    const std::vector<SearchJob>& jobs) {
  std::vector<absl::StatusOr<std::string>> answers(
      jobs.size(), absl::UnknownError("no reply"));
  // Expensive jobs start first, so that no process idles at the end waiting for
  // one.
  for (const bool expensive : {true, false}) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (IsExpensive(jobs[i]) != expensive) continue;
      workers_.Give(static_cast<int>(i), jobs[i].SerializeAsString());
    }
  }
  while (workers_.num_unfinished() > 0) {
    if (MustEnd(options_)) {
      workers_.Clear();
      return absl::CancelledError("interrupted");
    }
    if (tick_) tick_();
    RETURN_IF_ERROR(
        workers_.Wait([&](int job, absl::StatusOr<std::string> output) {
          answers[job] = std::move(output);
        }));
  }
  std::vector<SearchEstimate> estimates;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (answers[i].ok()) {
      SearchResult answer;
      answer.ParseFromString(*answers[i]);
      for (SearchEstimate& one : *answer.mutable_estimates()) {
        estimates.push_back(std::move(one));
      }
    } else if (Interrupted() || absl::IsCancelled(answers[i].status())) {
      return absl::CancelledError("interrupted");
    } else if (NumRequests(jobs[i]) > 1) {
      ASSIGN_OR_RETURN(const auto singles, RunJobs(OneByOne(jobs[i])));
      estimates.insert(estimates.end(), singles.begin(), singles.end());
    } else {
      estimates.emplace_back().set_problem(
          std::string(answers[i].status().message()));
    }
  }
  return estimates;
}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::OfShapes() {
  std::vector<SearchJob> jobs;
  for (size_t i = 0; i < space_.shapes.size(); ++i) {
    if (i % kShapesPerJob == 0) jobs.emplace_back();
    jobs.back().add_shapes(static_cast<uint32_t>(i));
  }
  return RunJobs(jobs);
}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::OfShapes(
    const std::vector<int>& indices) {
  std::vector<SearchJob> jobs;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i % kFewShapesPerJob == 0) jobs.emplace_back();
    jobs.back().add_shapes(static_cast<uint32_t>(indices[i]));
  }
  return RunJobs(jobs);
}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::Bounds(
    const std::vector<Scenario>& scenarios, double limit_bytes) {
  std::vector<SearchJob> jobs =
      JobsOf(SearchJob::BOUNDS, scenarios, kBoundsPerJob);
  if (limit_bytes < kInfinity) {
    for (SearchJob& job : jobs) job.set_limit_bytes(limit_bytes);
  }
  return RunJobs(jobs);
}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::Orders(
    const std::vector<Scenario>& scenarios) {
  return RunJobs(JobsOf(SearchJob::ORDERS, scenarios, kBoundsPerJob));
}

absl::StatusOr<std::vector<SearchEstimate>> SearchWorkers::Ranks(
    const std::vector<Scenario>& scenarios) {
  return RunJobs(JobsOf(SearchJob::RANKS, scenarios, 1));
}

}  // namespace weir::plan
