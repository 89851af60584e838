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
#include "sim/report/batch_ends.h"
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

// A job and its latest run.
struct SimulatedJob {
  const scenarios::ResolvedScenario* scenario = nullptr;
  SimulatedRun run;
  // A run without flush, or of batches that overlap, continues with further
  // batches. Others are repeated.
  bool continues = false;
  int num_batches = 1;
  // Steps that end in the run alone: one, or the batches before the drain.
  size_t num_first_steps = 1;
};

// Returns the indices of jobs that share links, directly or through others.
std::vector<std::vector<int>> GroupByLinks(
    const std::vector<SimulatedJob>& jobs) {
  std::vector<int> group(jobs.size());
  std::iota(group.begin(), group.end(), 0);
  std::map<int32_t, int> first_user;  // by link
  for (size_t job = 0; job < jobs.size(); ++job) {
    for (const GpuPair& pair : jobs[job].run.graph.tasks.pairs) {
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
  for (size_t job = 0; job < jobs.size(); ++job) {
    members[group[job]].push_back(static_cast<int>(job));
  }
  std::vector<std::vector<int>> groups;
  for (auto& [number, own] : members) groups.push_back(std::move(own));
  return groups;
}

// Returns when each batch of a run ended, of those before the drain.
std::vector<double> EndsOfBatches(const SimulatedRun& run) {
  std::vector<double> ends;
  for (const auto& tasks : BatchEndTasks(run.schedule, run.graph)) {
    double end = 0;
    for (const int32_t task : tasks) {
      end = std::max(end, run.recording.end_seconds()[task]);
    }
    if (end <= run.window.end_seconds * (1 + 1e-12)) ends.push_back(end);
  }
  return ends;
}

class Jobs {
 public:
  Jobs(std::span<const scenarios::ResolvedScenario> jobs,
       const scenarios::Network& network, const SimulateOptions& options)
      : network_(network), options_(options), outcomes_(jobs.size()) {
    for (const scenarios::ResolvedScenario& job : jobs) {
      jobs_.emplace_back().scenario = &job;
    }
  }

  absl::StatusOr<std::vector<JobOutcome>> Run() {
    for (SimulatedJob& job : jobs_) RETURN_IF_ERROR(RunAlone(&job));
    for (size_t i = 0; i < jobs_.size(); ++i) {
      outcomes_[i].alone_seconds = outcomes_[i].step_seconds =
          jobs_[i].run.window.batch_seconds();
    }
    for (const std::vector<int>& group : GroupByLinks(jobs_)) {
      if (group.size() > 1) RETURN_IF_ERROR(RunGroup(group));
    }
    for (size_t i = 0; i < jobs_.size(); ++i) {
      outcomes_[i].result =
          MakeResult(*jobs_[i].scenario, network_, jobs_[i].run, options_);
    }
    return std::move(outcomes_);
  }

 private:
  absl::Status RunAlone(SimulatedJob* job) {
    const scenarios::ResolvedScenario& scenario = *job->scenario;
    ASSIGN_OR_RETURN(const int given, GivenBatches(scenario));
    if (given > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          scenario.label, ": has ", given,
          " batches, expected several jobs to run as many as they need: no "
          "num_batches, and no file of a schedule without flush"));
    }
    job->continues = given == 0;
    const auto run_batches = [&](int num_batches) {
      job->num_batches = num_batches;
      return RunBatches(scenario, num_batches);
    };
    ASSIGN_OR_RETURN(job->run, RunToSteadyState(scenario, run_batches));
    if (job->continues) {
      job->num_first_steps =
          std::max<size_t>(EndsOfBatches(job->run).size(), 1);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SimulatedRun> RunBatches(
      const scenarios::ResolvedScenario& scenario, int num_batches) {
    ASSIGN_OR_RETURN(SimulatedRun run, Prepare(scenario, num_batches));
    ASSIGN_OR_RETURN(
        run.recording,
        RunTaskGraph(run.graph.tasks, network_.links(), {options_.progress}));
    RETURN_IF_ERROR(FinishRun(scenario, &run));
    return run;
  }

  absl::StatusOr<SimulatedRun> Prepare(
      const scenarios::ResolvedScenario& scenario, int num_batches) {
    RETURN_IF_ERROR(CheckFullRun(scenario, num_batches));
    ASSIGN_OR_RETURN(schedules::Schedule schedule,
                     ScheduleOf(scenario, network_, num_batches));
    return PrepareRun(scenario, network_, std::move(schedule));
  }

  // Runs a group together, again with more steps of jobs that end too early.
  absl::Status RunGroup(const std::vector<int>& group) {
    std::vector<int> copies(group.size(), 1);
    double longest = 0;
    for (const int job : group) {
      longest = std::max(longest, FirstStepsSeconds(job));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      if (jobs_[group[i]].continues) continue;
      copies[i] = std::max(
          1, static_cast<int>(longest / FirstStepsSeconds(group[i]) + 1e-9));
    }
    while (true) {
      double num_tasks = 0, num_gpus = 0;
      JointGraph joint;
      for (size_t i = 0; i < group.size(); ++i) {
        const SimulatedJob& job = jobs_[group[i]];
        num_tasks += job.run.num_tasks() * copies[i];
        num_gpus += job.scenario->placement.num_gpus();
      }
      RETURN_IF_ERROR(
          CheckTasks(*jobs_[group[0]].scenario, num_tasks, num_gpus));
      for (size_t i = 0; i < group.size(); ++i) {
        const SimulatedJob& job = jobs_[group[i]];
        AppendSlowdowns(job.run, job.scenario->placement.gpus,
                        network_.num_gpus(), &joint.tasks.slowdowns);
        AppendJob(job.run, copies[i], &joint);
      }
      FinishSlowdowns(network_.num_gpus(), &joint.tasks);
      joint.tasks.Finish();
      ASSIGN_OR_RETURN(
          const Recording recording,
          RunTaskGraph(joint.tasks, network_.links(), {options_.progress}));
      if (!recording.complete()) {
        return absl::InternalError("several jobs wait for each other");
      }
      std::vector<std::vector<double>> ends;
      double last_first = 0;
      for (size_t i = 0; i < group.size(); ++i) {
        SimulatedJob& job = jobs_[group[i]];
        RETURN_IF_ERROR(TakeTimes(joint, i, recording, &job));
        ends.push_back(job.continues ? EndsOfBatches(job.run)
                                     : EndsOfCopies(joint, i, recording));
        const size_t first = std::min(job.num_first_steps, ends[i].size());
        last_first = std::max(last_first, ends[i][first - 1]);
      }
      bool is_long_enough = true;
      for (size_t i = 0; i < group.size(); ++i) {
        if (ends[i].back() >= last_first * (1 - 1e-9)) continue;
        is_long_enough = false;
        const double factor = last_first / ends[i].back();
        SimulatedJob& job = jobs_[group[i]];
        if (!job.continues) {
          copies[i] = static_cast<int>(std::ceil(copies[i] * factor));
          continue;
        }
        job.num_batches =
            static_cast<int>(std::ceil(job.num_batches * factor)) + 1;
        ASSIGN_OR_RETURN(job.run, Prepare(*job.scenario, job.num_batches));
      }
      if (is_long_enough) {
        TakeGroup(group, ends);
        return absl::OkStatus();
      }
    }
  }

  // Returns how long the first steps of a job take alone.
  double FirstStepsSeconds(int job) const {
    return jobs_[job].continues ? jobs_[job].run.window.end_seconds
                                : outcomes_[job].alone_seconds;
  }

  // Gives the first copy of the i-th job of a group its times.
  static absl::Status TakeTimes(const JointGraph& joint, size_t i,
                                const Recording& recording, SimulatedJob* job) {
    const auto first = static_cast<size_t>(joint.first[i][0]);
    const auto size = static_cast<size_t>(joint.size[i]);
    SimulatedRun& run = job->run;
    Recording own(size, !run.graph.tasks.slowdowns.curves.empty());
    if (!own.valid()) {
      return absl::ResourceExhaustedError("the simulation ran out of memory");
    }
    const auto copy = [&](auto from, auto to) {
      if (to.empty()) return;
      const auto part = from.subspan(first, size);
      std::copy(part.begin(), part.end(), to.begin());
    };
    copy(recording.start_seconds(), own.start_seconds());
    copy(recording.end_seconds(), own.end_seconds());
    copy(recording.sharing_seconds(), own.sharing_seconds());
    own.set_num_ended(size);
    run.recording = std::move(own);
    return FinishRun(*job->scenario, &run);
  }

  // Returns the end of each copy of the i-th job of a group.
  static std::vector<double> EndsOfCopies(const JointGraph& joint, size_t i,
                                          const Recording& recording) {
    std::vector<double> ends;
    for (const int32_t first : joint.first[i]) {
      const auto all = recording.end_seconds().subspan(
          first, static_cast<size_t>(joint.size[i]));
      ends.push_back(*std::max_element(all.begin(), all.end()));
    }
    return ends;
  }

  // Sets the outcomes of a group from the ends of its steps.
  void TakeGroup(const std::vector<int>& group,
                 const std::vector<std::vector<double>>& ends) {
    double all_run_until = ends[0].back();
    for (const auto& own : ends) {
      all_run_until = std::min(all_run_until, own.back());
    }
    for (size_t i = 0; i < group.size(); ++i) {
      JobOutcome& outcome = outcomes_[group[i]];
      const SimulatedJob& job = jobs_[group[i]];
      int num_ended = 1;
      while (num_ended < std::ssize(ends[i]) &&
             ends[i][num_ended] <= all_run_until * (1 + 1e-9)) {
        ++num_ended;
      }
      const Window& window = job.run.window;
      if (!job.continues) {
        outcome.num_steps = num_ended;
        outcome.step_seconds = ends[i][num_ended - 1] / num_ended;
      } else if (num_ended == std::ssize(ends[i]) && window.steady) {
        outcome.num_steps = window.num_batches;
        outcome.step_seconds = window.batch_seconds();
      } else {
        // Without the warm-up.
        const int half = num_ended / 2;
        const double begin = half == 0 ? 0 : ends[i][half - 1];
        outcome.num_steps = num_ended - half;
        outcome.step_seconds =
            (ends[i][num_ended - 1] - begin) / outcome.num_steps +
            window.rollback_seconds;
      }
      for (const int other : group) {
        if (other != group[i]) outcome.shares_with.push_back(other);
      }
    }
  }

  const scenarios::Network& network_;
  const SimulateOptions& options_;
  std::vector<SimulatedJob> jobs_;
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
