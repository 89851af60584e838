// SPDX-License-Identifier: Apache-2.0
#include "sim/jobs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/engine/engine.h"
#include "sim/fill_result.h"
#include "sim/prepare.h"
#include "sim/run_size.h"

namespace weir::sim {
namespace {

// Job graphs repeated one after the other in one graph.
struct JointGraph {
  TaskGraph tasks;
  // [job][copy]: the first task; and the number of tasks of a copy.
  std::vector<std::vector<int32_t>> first;
  std::vector<int32_t> size;
};

void AppendSlowdowns(const SimulatedRun& job, const std::vector<int>& gpus,
                     int num_gpus, Slowdowns* all) {
  const Slowdowns& own = job.graph.tasks.slowdowns;
  if (own.timers.empty()) return;
  all->factors.resize(num_gpus, {1, 1});
  if (!own.physical_gpu.empty()) all->physical_gpu.resize(num_gpus, -1);
  for (const int gpu : gpus) {
    all->factors[gpu] = own.factors[gpu];
    if (!own.physical_gpu.empty()) {
      all->physical_gpu[gpu] = own.physical_gpu[gpu];
    }
  }
}

// Appends `copies` runs of a job, each after the end of the one before.
void AppendJob(const SimulatedRun& job, int copies, JointGraph* joint) {
  const TaskGraph& own = job.graph.tasks;
  TaskGraph& all = joint->tasks;
  const auto first_pair = static_cast<int32_t>(all.pairs.size());
  all.pairs.insert(all.pairs.end(), own.pairs.begin(), own.pairs.end());
  Slowdowns& slow = all.slowdowns;
  const auto first_curve = static_cast<int32_t>(slow.curves.size());
  slow.curves.insert(slow.curves.end(), own.slowdowns.curves.begin(),
                     own.slowdowns.curves.end());
  // Pairs and timers of jobs without slowdowns need entries, too.
  slow.touches.resize(first_pair);
  slow.touches.insert(slow.touches.end(), own.slowdowns.touches.begin(),
                      own.slowdowns.touches.end());
  slow.touches.resize(all.pairs.size());
  joint->first.emplace_back();
  joint->size.push_back(own.num_tasks());
  int32_t barrier = -1;
  for (int copy = 0; copy < copies; ++copy) {
    const int32_t offset = all.num_tasks();
    joint->first.back().push_back(offset);
    for (int32_t task = 0; task < own.num_tasks(); ++task) {
      if (own.is_timer(task)) {
        all.AddTimer(own.amount(task));
      } else {
        all.AddFlow(first_pair + own.pair(task), own.amount(task));
      }
    }
    slow.timers.resize(offset);
    for (Slowdowns::Timer timer : own.slowdowns.timers) {
      if (timer.curve >= 0) timer.curve += first_curve;
      slow.timers.push_back(timer);
    }
    slow.timers.resize(all.num_tasks());
    const int32_t next = copy + 1 < copies ? all.AddTimer(0) : -1;
    for (int32_t task = 0; task < own.num_tasks(); ++task) {
      for (const int32_t after : own.successors(task)) {
        all.AddEdge(offset + task, offset + after);
      }
      if (barrier >= 0 && own.num_predecessors()[task] == 0) {
        all.AddEdge(barrier, offset + task);
      }
      if (next >= 0 && own.successors(task).empty()) {
        all.AddEdge(offset + task, next);
      }
    }
    barrier = next;
  }
}

// Sets what no job needs to nothing, and completes the rest.
void FinishSlowdowns(int num_gpus, TaskGraph* tasks) {
  Slowdowns& slow = tasks->slowdowns;
  if (slow.factors.empty()) {
    slow = {};
    return;
  }
  slow.factors.resize(num_gpus, {1, 1});
  slow.timers.resize(tasks->num_tasks());
  slow.touches.resize(tasks->pairs.size());
}

// Returns the indices of jobs that share links, directly or through others.
std::vector<std::vector<int>> GroupByLinks(
    const std::vector<SimulatedRun>& runs) {
  std::vector<int> group(runs.size());
  std::iota(group.begin(), group.end(), 0);
  std::map<int32_t, int> first_user;  // by link
  for (size_t job = 0; job < runs.size(); ++job) {
    for (const GpuPair& pair : runs[job].graph.tasks.pairs) {
      for (const int32_t link : pair.route.links) {
        const auto [at, is_new] =
            first_user.emplace(link, static_cast<int>(job));
        const int one = group[at->second], other = group[job];
        if (is_new || one == other) continue;
        std::replace(group.begin(), group.end(), std::max(one, other),
                     std::min(one, other));
      }
    }
  }
  std::map<int, std::vector<int>> members;
  for (size_t job = 0; job < runs.size(); ++job) {
    members[group[job]].push_back(static_cast<int>(job));
  }
  std::vector<std::vector<int>> groups;
  for (auto& [number, jobs] : members) groups.push_back(std::move(jobs));
  return groups;
}

absl::Status CheckJobs(std::span<const scenarios::ResolvedScenario> jobs) {
  std::map<int, size_t> user;  // by GPU
  for (size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job].given_costs) {
      return absl::InvalidArgumentError(
          absl::StrCat(jobs[job].label,
                       ": has given costs, whose transfers use no links, "
                       "expected a model and a cluster"));
    }
    if (jobs[job].cluster.SerializeAsString() !=
        jobs[0].cluster.SerializeAsString()) {
      return absl::InvalidArgumentError(
          absl::StrCat(jobs[job].label, ": has another cluster than ",
                       jobs[0].label, ", expected the same for all jobs"));
    }
    for (const int gpu : jobs[job].placement.gpus) {
      const auto [first, is_new] = user.emplace(gpu, job);
      if (is_new) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(jobs[job].label, ": uses GPU ", gpu, ", which job ",
                       first->second + 1, " (", jobs[first->second].label,
                       ") also uses, expected different GPUs for each job"));
    }
  }
  return absl::OkStatus();
}

class Jobs {
 public:
  Jobs(std::span<const scenarios::ResolvedScenario> jobs,
       const scenarios::Network& network, const SimulateOptions& options)
      : jobs_(jobs),
        network_(network),
        options_(options),
        outcomes_(jobs.size()) {}

  absl::StatusOr<std::vector<JobOutcome>> Run() {
    for (const scenarios::ResolvedScenario& job : jobs_) {
      ASSIGN_OR_RETURN(SimulatedRun run, PrepareJob(job));
      runs_.push_back(std::move(run));
    }
    for (size_t job = 0; job < jobs_.size(); ++job) {
      ASSIGN_OR_RETURN(runs_[job].recording,
                       RunTaskGraph(runs_[job].graph.tasks, network_.links(),
                                    {options_.progress}));
      RETURN_IF_ERROR(FinishRun(jobs_[job], &runs_[job]));
      outcomes_[job].alone_seconds = outcomes_[job].step_seconds =
          runs_[job].window.batch_seconds();
    }
    for (const std::vector<int>& group : GroupByLinks(runs_)) {
      if (group.size() > 1) RETURN_IF_ERROR(RunGroup(group));
    }
    for (size_t job = 0; job < jobs_.size(); ++job) {
      outcomes_[job].result =
          MakeResult(jobs_[job], network_, runs_[job], options_);
    }
    return std::move(outcomes_);
  }

 private:
  absl::StatusOr<SimulatedRun> PrepareJob(
      const scenarios::ResolvedScenario& job) {
    ASSIGN_OR_RETURN(schedules::Schedule schedule,
                     ScheduleOf(job, network_, 1));
    if (!schedule.flush || schedule.num_batches > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          job.label, ": schedule ", schedule.name,
          schedule.flush ? " has batches that overlap" : " has no flush",
          ", expected one with a flush for several jobs"));
    }
    return PrepareRun(job, network_, std::move(schedule));
  }

  // Runs a group together, again with more copies of jobs that end too early.
  absl::Status RunGroup(const std::vector<int>& group) {
    std::vector<int> copies(group.size(), 1);
    double longest = 0;
    for (const int job : group) {
      longest = std::max(longest, outcomes_[job].alone_seconds);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      const double alone = outcomes_[group[i]].alone_seconds;
      copies[i] = std::max(1, static_cast<int>(longest / alone + 1e-9));
    }
    while (true) {
      double num_tasks = 0, num_gpus = 0;
      JointGraph joint;
      for (size_t i = 0; i < group.size(); ++i) {
        const SimulatedRun& run = runs_[group[i]];
        num_tasks += run.num_tasks() * copies[i];
        num_gpus += jobs_[group[i]].placement.num_gpus();
      }
      RETURN_IF_ERROR(CheckTasks(jobs_[group[0]], num_tasks, num_gpus));
      for (size_t i = 0; i < group.size(); ++i) {
        AppendSlowdowns(runs_[group[i]], jobs_[group[i]].placement.gpus,
                        network_.num_gpus(), &joint.tasks.slowdowns);
        AppendJob(runs_[group[i]], copies[i], &joint);
      }
      FinishSlowdowns(network_.num_gpus(), &joint.tasks);
      joint.tasks.Finish();
      ASSIGN_OR_RETURN(
          const Recording recording,
          RunTaskGraph(joint.tasks, network_.links(), {options_.progress}));
      if (!recording.complete()) {
        return absl::InternalError("several jobs wait for each other");
      }
      const std::vector<std::vector<double>> ends = EndsOf(joint, recording);
      double last_first = 0;
      for (const auto& own : ends) last_first = std::max(last_first, own[0]);
      bool is_long_enough = true;
      for (size_t i = 0; i < group.size(); ++i) {
        if (ends[i].back() >= last_first * (1 - 1e-9)) continue;
        is_long_enough = false;
        copies[i] = static_cast<int>(
            std::ceil(copies[i] * last_first / ends[i].back()));
      }
      if (is_long_enough) return TakeGroup(group, joint, recording, ends);
    }
  }

  // Returns the end of each copy of each job.
  static std::vector<std::vector<double>> EndsOf(const JointGraph& joint,
                                                 const Recording& recording) {
    std::vector<std::vector<double>> ends;
    for (size_t i = 0; i < joint.first.size(); ++i) {
      ends.emplace_back();
      for (const int32_t first : joint.first[i]) {
        const auto all = recording.end_seconds().subspan(
            first, static_cast<size_t>(joint.size[i]));
        ends.back().push_back(*std::max_element(all.begin(), all.end()));
      }
    }
    return ends;
  }

  absl::Status TakeGroup(const std::vector<int>& group, const JointGraph& joint,
                         const Recording& recording,
                         const std::vector<std::vector<double>>& ends) {
    double all_run_until = ends[0].back();
    for (const auto& own : ends) {
      all_run_until = std::min(all_run_until, own.back());
    }
    for (size_t i = 0; i < group.size(); ++i) {
      JobOutcome& outcome = outcomes_[group[i]];
      outcome.num_steps = 1;
      while (outcome.num_steps < std::ssize(ends[i]) &&
             ends[i][outcome.num_steps] <= all_run_until * (1 + 1e-9)) {
        ++outcome.num_steps;
      }
      outcome.step_seconds = ends[i][outcome.num_steps - 1] / outcome.num_steps;
      for (const int other : group) {
        if (other != group[i]) outcome.shares_with.push_back(other);
      }
      // The result is that of the first copy.
      SimulatedRun& run = runs_[group[i]];
      const auto first = static_cast<size_t>(joint.first[i][0]);
      const auto size = static_cast<size_t>(joint.size[i]);
      const auto copy = [&](auto from, auto to) {
        if (to.empty()) return;
        const auto part = from.subspan(first, size);
        std::copy(part.begin(), part.end(), to.begin());
      };
      copy(recording.start_seconds(), run.recording.start_seconds());
      copy(recording.end_seconds(), run.recording.end_seconds());
      copy(recording.sharing_seconds(), run.recording.sharing_seconds());
      RETURN_IF_ERROR(FinishRun(jobs_[group[i]], &run));
    }
    return absl::OkStatus();
  }

  std::span<const scenarios::ResolvedScenario> jobs_;
  const scenarios::Network& network_;
  const SimulateOptions& options_;
  std::vector<SimulatedRun> runs_;
  std::vector<JobOutcome> outcomes_;
};

}  // namespace

absl::StatusOr<std::vector<JobOutcome>> SimulateJobs(
    std::span<const scenarios::ResolvedScenario> jobs,
    const SimulateOptions& options) {
  if (jobs.empty()) return std::vector<JobOutcome>();
  RETURN_IF_ERROR(CheckJobs(jobs));
  const scenarios::Network network = NetworkOf(jobs[0]);
  return Jobs(jobs, network, options).Run();
}

}  // namespace weir::sim
