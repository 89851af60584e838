// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/what_if.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quantiles.h"
#include "base/status_macros.h"
#include "plan/stragglers/recorded_graph.h"
#include "results/import/messages.h"

namespace weir::plan {
namespace {

using results::RecordedKind;
using results::RecordedOperation;
using results::RecordedRun;
using results::RecordedStep;

// A step with everything that replays need.
struct Replayed {
  RecordedStep step;
  OperationGraph graph;
  std::vector<double> seconds;  // of passes and transfers
  std::vector<double> delays;
};

absl::StatusOr<Replayed> Prepare(const RecordedRun& run,
                                 const RecordedStep& step) {
  Replayed replayed;
  replayed.step = step;
  const results::OperationGroups groups = results::GroupsOf(step);
  auto graph = GraphOfStep(step, groups);
  if (!graph.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(run.label, ": ", graph.status().message()));
  }
  replayed.graph = *std::move(graph);
  replayed.seconds = results::TransferSeconds(step, groups);
  std::vector<double> starts, ends;
  for (const auto* o = step.begin; o != step.end; ++o) {
    starts.push_back(o->start_seconds);
    ends.push_back(o->end_seconds);
  }
  replayed.delays = replayed.graph.Delays(starts, ends);
  return replayed;
}

using IdealSeconds = std::array<double, results::kNumRecordedKinds>;

IdealSeconds IdealOf(const std::vector<Replayed>& steps) {
  std::array<std::vector<double>, results::kNumRecordedKinds> all;
  for (const Replayed& replayed : steps) {
    for (size_t i = 0; i < replayed.seconds.size(); ++i) {
      all[static_cast<int>(replayed.step.begin[i].kind)].push_back(
          replayed.seconds[i]);
    }
  }
  IdealSeconds ideal{};
  for (int kind = 0; kind < results::kNumRecordedKinds; ++kind) {
    if (all[kind].empty()) continue;
    ideal[kind] =
        results::IsCommunication(static_cast<RecordedKind>(kind))
            ? Median(std::move(all[kind]))
            : std::accumulate(all[kind].begin(), all[kind].end(), 0.0) /
                  static_cast<double>(all[kind].size());
  }
  return ideal;
}

class Analyzer {
 public:
  explicit Analyzer(std::vector<Replayed> steps)
      : steps_(std::move(steps)), ideal_(IdealOf(steps_)) {}

  // Returns the step time if the operations for which `keeps` is true have
  // their recorded durations and all others ideal ones.
  template <typename Keeps>
  double Seconds(int step, const Keeps& keeps) {
    const Replayed& replayed = steps_[step];
    mixed_.resize(replayed.seconds.size());
    for (size_t i = 0; i < mixed_.size(); ++i) {
      const RecordedOperation& o = replayed.step.begin[i];
      mixed_[i] =
          keeps(o) ? replayed.seconds[i] : ideal_[static_cast<int>(o.kind)];
    }
    replayed.graph.Run(mixed_, {}, &times_);
    return times_.makespan;
  }
  template <typename Keeps>
  double Mean(const Keeps& keeps) {
    double sum = 0;
    for (int step = 0; step < num_steps(); ++step) sum += Seconds(step, keeps);
    return sum / num_steps();
  }
  double WithGaps(int step) {
    const Replayed& replayed = steps_[step];
    replayed.graph.Run(replayed.seconds, replayed.delays, &times_);
    return times_.makespan;
  }

  // Adds the slack of the step's passes, with recorded durations and without
  // gaps, to those of their rank.
  void AddSlack(int step, std::vector<std::vector<double>>* by_rank) {
    const Replayed& replayed = steps_[step];
    replayed.graph.Run(replayed.seconds, {}, &times_);
    const std::vector<double> slack =
        replayed.graph.Slack(replayed.seconds, {}, times_);
    for (size_t i = 0; i < slack.size(); ++i) {
      const RecordedOperation& o = replayed.step.begin[i];
      if (results::IsPass(o.kind)) (*by_rank)[o.rank].push_back(slack[i]);
    }
  }

  int num_steps() const { return static_cast<int>(steps_.size()); }
  const RecordedStep& step(int i) const { return steps_[i].step; }

 private:
  const std::vector<Replayed> steps_;
  const IdealSeconds ideal_;
  std::vector<double> mixed_;
  OperationGraph::Times times_;
};

bool KeepsAll(const RecordedOperation&) { return true; }
bool KeepsNone(const RecordedOperation&) { return false; }

// Sends and receives of a direction are one kind.
RecordedKind Merged(RecordedKind kind) {
  if (kind == RecordedKind::kReceiveForward) return RecordedKind::kSendForward;
  if (kind == RecordedKind::kReceiveBackward) {
    return RecordedKind::kSendBackward;
  }
  return kind;
}

std::string KindName(RecordedKind kind) {
  if (kind == RecordedKind::kSendForward) return "forward transfer";
  if (kind == RecordedKind::kSendBackward) return "backward transfer";
  return std::string(results::NameOf(kind));
}

void SortShares(std::vector<Share>* shares) {
  std::stable_sort(
      shares->begin(), shares->end(),
      [](const Share& a, const Share& b) { return a.slowdown > b.slowdown; });
}

double ShareOf(double replayed, double without, double ideal) {
  return replayed > ideal ? (replayed - without) / (replayed - ideal) : 0;
}

void AddSteps(Analyzer* analyzer, WhatIf* what_if) {
  for (int i = 0; i < analyzer->num_steps(); ++i) {
    StepWhatIf step;
    step.step = analyzer->step(i).step;
    step.recorded_seconds = analyzer->step(i).seconds();
    step.with_gaps_seconds = analyzer->WithGaps(i);
    step.replayed_seconds = analyzer->Seconds(i, KeepsAll);
    step.ideal_seconds = analyzer->Seconds(i, KeepsNone);
    what_if->steps.push_back(step);
  }
  const auto mean = [&](double StepWhatIf::*field) {
    double sum = 0;
    for (const StepWhatIf& step : what_if->steps) sum += step.*field;
    return sum / static_cast<double>(what_if->steps.size());
  };
  what_if->recorded_seconds = mean(&StepWhatIf::recorded_seconds);
  what_if->with_gaps_seconds = mean(&StepWhatIf::with_gaps_seconds);
  what_if->replayed_seconds = mean(&StepWhatIf::replayed_seconds);
  what_if->ideal_seconds = mean(&StepWhatIf::ideal_seconds);
  if (what_if->ideal_seconds > 0) {
    what_if->slowdown = what_if->replayed_seconds / what_if->ideal_seconds;
  }
}

// The slowdowns by replica and by pipeline rank, unsorted.
void AddShares(const RecordedRun& run, Analyzer* analyzer, WhatIf* what_if) {
  const auto slowdown = [&](const auto& keeps) {
    return what_if->ideal_seconds > 0
               ? analyzer->Mean(keeps) / what_if->ideal_seconds
               : 1;
  };
  std::array<bool, results::kNumRecordedKinds> found{};
  for (const RecordedOperation& o : run.operations) {
    found[static_cast<int>(Merged(o.kind))] = true;
  }
  for (int kind = 0; kind < results::kNumRecordedKinds; ++kind) {
    if (!found[kind]) continue;
    const auto merged = static_cast<RecordedKind>(kind);
    what_if->by_kind.push_back(
        {KindName(merged), slowdown([&](const RecordedOperation& o) {
           return Merged(o.kind) == merged;
         })});
  }
  for (int rank = 0; rank < run.num_ranks; ++rank) {
    what_if->by_stage.push_back(
        {absl::StrCat("stage ", rank),
         slowdown([&](const auto& o) { return o.rank == rank; })});
  }
  for (int replica = 0; replica < run.num_replicas; ++replica) {
    what_if->by_replica.push_back(
        {absl::StrCat("replica ", replica),
         slowdown([&](const auto& o) { return o.replica == replica; })});
  }
}

void AddWorkers(const RecordedRun& run, Analyzer* analyzer, WhatIf* what_if) {
  struct Worker {
    int replica, rank;
    double slowdown;
  };
  // In Megatron-LM's order of global ranks, which decides ties.
  std::vector<Worker> workers;
  for (int rank = 0; rank < run.num_ranks; ++rank) {
    for (int replica = 0; replica < run.num_replicas; ++replica) {
      workers.push_back({replica, rank,
                         std::min(what_if->by_stage[rank].slowdown,
                                  what_if->by_replica[replica].slowdown)});
    }
  }
  std::stable_sort(
      workers.begin(), workers.end(),
      [](const Worker& a, const Worker& b) { return a.slowdown > b.slowdown; });
  for (const Worker& worker : workers) {
    what_if->by_worker.push_back({WorkerName(worker.replica, worker.rank),
                                  worker.slowdown, worker.replica,
                                  worker.rank});
  }
  what_if->num_workers = static_cast<int>(workers.size());
  const size_t count = (workers.size() * kSlowWorkersPercent + 99) / 100;
  std::vector<bool> is_slow(workers.size(), false);
  for (size_t i = 0; i < count; ++i) {
    is_slow[static_cast<size_t>(workers[i].replica) * run.num_ranks +
            workers[i].rank] = true;
    what_if->slowest_workers.of.push_back(what_if->by_worker[i].name);
  }
  what_if->slowest_workers
      .seconds_without = analyzer->Mean([&](const RecordedOperation& o) {
    return !is_slow[static_cast<size_t>(o.replica) * run.num_ranks + o.rank];
  });
  const int last = run.num_ranks - 1;
  what_if->last_stage.of = {absl::StrCat("stage ", last)};
  what_if->last_stage.seconds_without =
      analyzer->Mean([&](const auto& o) { return o.rank != last; });
  for (Explained* explained :
       {&what_if->slowest_workers, &what_if->last_stage}) {
    explained->share =
        ShareOf(what_if->replayed_seconds, explained->seconds_without,
                what_if->ideal_seconds);
  }
}

}  // namespace

std::string WorkerName(int replica, int rank) {
  return absl::StrCat("replica ", replica, ", stage ", rank);
}

absl::StatusOr<WhatIf> AnalyzeRun(const RecordedRun& run) {
  std::vector<Replayed> steps;
  for (const RecordedStep& step : results::StepsOf(run)) {
    ASSIGN_OR_RETURN(Replayed replayed, Prepare(run, step));
    steps.push_back(std::move(replayed));
  }
  if (steps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(run.label, ": has no steps, expected at least one"));
  }
  Analyzer analyzer(std::move(steps));
  WhatIf what_if;
  AddSteps(&analyzer, &what_if);
  AddShares(run, &analyzer, &what_if);
  AddWorkers(run, &analyzer, &what_if);
  std::vector<std::vector<double>> slack(run.num_ranks);
  for (int i = 0; i < analyzer.num_steps(); ++i) analyzer.AddSlack(i, &slack);
  for (std::vector<double>& of_rank : slack) {
    what_if.slack_seconds.push_back(
        of_rank.empty() ? 0 : Median(std::move(of_rank)));
  }
  SortShares(&what_if.by_kind);
  SortShares(&what_if.by_stage);
  SortShares(&what_if.by_replica);
  return what_if;
}

}  // namespace weir::plan
