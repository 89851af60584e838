// SPDX-License-Identifier: Apache-2.0
#include "results/compare/execution_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "results/metrics.h"
#include "results/summary.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr int kMaxNamed = 3;  // actions in an error, and errors

// (op, stage, microbatch, num_microbatches)
using ActionKey = std::tuple<uint32_t, int32_t, int32_t, uint32_t>;

ActionKey KeyOf(const TimelineAction& action) {
  return {action.op, action.stage, action.microbatch, action.num_microbatches};
}

// The paired actions of a rank, in measured order, and names of unpaired ones.
struct RankPairs {
  std::vector<ComparedAction> pairs;
  std::vector<std::string> only_predicted, only_measured;
};

bool HasSteps(const PipelineEvents& timeline) {
  for (const auto& actions : timeline.ranks) {
    for (const TimelineAction& action : actions) {
      if (action.op == Timeline::Actions::OPTIMIZER_STEP) return true;
    }
  }
  return false;
}

// `without_steps`: leaves out measured optimizer steps.
RankPairs PairUp(int rank, const std::vector<TimelineAction>& predicted,
                 const std::vector<TimelineAction>& measured,
                 bool without_steps) {
  std::multimap<ActionKey, const TimelineAction*> left;
  for (const TimelineAction& action : predicted) {
    left.emplace(KeyOf(action), &action);  // equal keys stay in order
  }
  RankPairs pairs;
  for (const TimelineAction& action : measured) {
    if (without_steps && action.op == Timeline::Actions::OPTIMIZER_STEP) {
      continue;
    }
    const auto partner = left.lower_bound(KeyOf(action));
    if (partner == left.end() || partner->first != KeyOf(action)) {
      pairs.only_measured.push_back(ActionText(action));
      continue;
    }
    pairs.pairs.push_back({rank, *partner->second, action});
    left.erase(partner);
  }
  for (const TimelineAction& action : predicted) {
    const auto [first, last] = left.equal_range(KeyOf(action));
    for (auto at = first; at != last; ++at) {
      if (at->second == &action) {
        pairs.only_predicted.push_back(ActionText(action));
      }
    }
  }
  return pairs;
}

std::string FirstOf(const std::vector<std::string>& names) {
  const auto shown = std::min<size_t>(names.size(), kMaxNamed);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      names.size() > shown
                          ? absl::StrCat(" and ", names.size() - shown, " more")
                          : "");
}

// Returns the flags for simulating what was executed.
std::string Advice(const Result& predicted, const Result& measured) {
  std::vector<std::string> flags;
  const auto differ = [&](uint32_t p, uint32_t m, const char* flag) {
    if (m > 0 && p != m) flags.push_back(absl::StrCat(flag, " ", m));
  };
  if (measured.method() == "replay" &&
      predicted.schedule() != measured.schedule()) {
    flags.push_back(absl::StrCat("--schedule ", measured.schedule()));
  }
  differ(predicted.pipeline_parallel(), measured.pipeline_parallel(), "--pp");
  differ(predicted.chunks(), measured.chunks(), "--chunks");
  differ(predicted.num_microbatches(), measured.num_microbatches(),
         "--microbatches");
  differ(predicted.num_batches(), measured.num_batches(), "--batches");
  return flags.empty() ? "expected the same schedule and passes in both"
                       : absl::StrCat("simulate with ",
                                      absl::StrJoin(flags, " "), " and --out");
}

absl::StatusOr<std::vector<ComparedAction>> Match(
    absl::string_view predicted_label, const Result& predicted,
    const PipelineEvents& predicted_timeline, absl::string_view measured_label,
    const Result& measured, const PipelineEvents& measured_timeline) {
  const std::string advice = Advice(predicted, measured);
  Problems problems(predicted_label);
  if (predicted_timeline.num_ranks() != measured_timeline.num_ranks()) {
    problems.Add("ranks",
                 absl::StrCat("are ", predicted_timeline.num_ranks(),
                              ", expected ", measured_timeline.num_ranks(),
                              " as in ", measured_label, ": ", advice));
    return problems.ToStatus();
  }
  const bool without_steps = !HasSteps(predicted_timeline);
  std::vector<ComparedAction> all;
  int num_wrong = 0;  // ranks; usually all differ in the same way
  for (int rank = 0; rank < measured_timeline.num_ranks(); ++rank) {
    RankPairs pairs = PairUp(rank, predicted_timeline.ranks[rank],
                             measured_timeline.ranks[rank], without_steps);
    all.insert(all.end(), pairs.pairs.begin(), pairs.pairs.end());
    const auto add = [&](const std::vector<std::string>& names,
                         absl::string_view what) {
      if (names.empty() || ++num_wrong > kMaxNamed) return;
      problems.Add(absl::StrCat("rank ", rank),
                   absl::StrCat(what, FirstOf(names), ": ", advice));
    };
    add(pairs.only_measured,
        absl::StrCat("lacks actions that ", measured_label, " ran, "));
    add(pairs.only_predicted,
        absl::StrCat("has actions that ", measured_label, " did not run, "));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  if (all.empty()) problems.Add("timeline", "has no actions");
  RETURN_IF_ERROR(problems.ToStatus());
  return all;
}

ActionErrors ErrorsOf(absl::string_view op, double makespan_seconds,
                      const std::vector<const ComparedAction*>& actions) {
  ActionErrors errors;
  errors.op = std::string(op);
  errors.num_actions = static_cast<int>(actions.size());
  std::vector<double> durations, starts, ends;
  std::vector<const ComparedAction*> with_duration;
  for (const ComparedAction* action : actions) {
    const auto part = [&](double seconds) {
      return makespan_seconds > 0 ? seconds / makespan_seconds : 0;
    };
    starts.push_back(part(action->start_error_seconds()));
    ends.push_back(part(action->end_error_seconds()));
    if (!action->has_duration()) continue;
    durations.push_back(action->duration_error());
    with_duration.push_back(action);
  }
  errors.durations = Summarize(durations);
  errors.starts = Summarize(starts);
  errors.ends = Summarize(ends);
  if (errors.durations.worst_row >= 0) {
    errors.worst_duration = with_duration[errors.durations.worst_row]->name();
  }
  if (errors.starts.worst_row >= 0) {
    errors.worst_start = actions[errors.starts.worst_row]->name();
  }
  return errors;
}

std::vector<ActionErrors> ErrorsByOp(const ExecutionComparison& comparison) {
  static constexpr const char* kOps[Timeline::Actions::Op_ARRAYSIZE] = {
      "F", "B", "I", "W", "step", "O", "R"};
  std::array<std::vector<const ComparedAction*>,
             Timeline::Actions::Op_ARRAYSIZE>
      by_op;
  std::vector<const ComparedAction*> all;
  for (const ComparedAction& action : comparison.actions) {
    by_op[action.measured.op].push_back(&action);
    if (action.measured.computes()) all.push_back(&action);
  }
  std::vector<ActionErrors> errors;
  const double makespan = comparison.makespan.measured;
  for (size_t op = 0; op < by_op.size(); ++op) {
    if (by_op[op].empty()) continue;
    errors.push_back(ErrorsOf(kOps[op], makespan, by_op[op]));
  }
  errors.push_back(ErrorsOf("all", makespan, all));
  return errors;
}

// Returns the longest time of a rank from its first pass to the end of its
// last, without steps (Result.span_seconds).
double SpanOf(const PipelineEvents& timeline) {
  double span = 0;
  for (const auto& actions : timeline.ranks) {
    double first = -1, last = 0;
    for (const TimelineAction& action : actions) {
      if (action.op >= Timeline::Actions::OPTIMIZER_STEP) continue;
      if (first < 0) first = action.start_seconds;
      last = std::max(last, action.end_seconds);
    }
    if (first >= 0) span = std::max(span, last - first);
  }
  return span;
}

double BubbleOf(const std::vector<RankIdle>& idle, double makespan_seconds) {
  std::vector<double> seconds;
  for (const RankIdle& rank : idle) seconds.push_back(rank.idle_seconds());
  return IdleRatio(seconds, makespan_seconds);
}

std::string GpuText(absl::string_view name, absl::string_view hash) {
  return absl::StrCat(name, " (", hash, ")");
}

// A replay on a GPU is only predicted by a profile of the same GPU.
void AddWarnings(ExecutionComparison* comparison) {
  const Replay& replay = comparison->measured.replay();
  const ResultProvenance& profile = comparison->predicted.provenance();
  if (replay.gpu_hash().empty() || comparison->predicted.has_replay()) return;
  const std::string executed =
      absl::StrCat(comparison->measured_label, " was executed on ",
                   GpuText(replay.gpu_name(), replay.gpu_hash()));
  if (profile.gpu_hash().empty()) {
    comparison->warnings.push_back(absl::StrCat(
        executed, ", but the profile of ", comparison->predicted_label,
        " was not measured on a GPU (weir-calibrate run --for replays)"));
  } else if (profile.gpu_hash() != replay.gpu_hash()) {
    comparison->warnings.push_back(absl::StrCat(
        executed, ", but the profile of ", comparison->predicted_label,
        " was measured on ", GpuText(profile.gpu_name(), profile.gpu_hash()),
        ": times of different GPUs differ by some percent"));
  } else if (!profile.of_replays()) {
    comparison->warnings.push_back(absl::StrCat(
        "the profile of ", comparison->predicted_label,
        " predicts frameworks, whose attention is not that of replays "
        "(weir-calibrate run --for replays)"));
  }
}

void AddNotes(const PipelineEvents& measured_timeline,
              ExecutionComparison* comparison) {
  const auto add = [&](std::string note) {
    comparison->notes.push_back(std::move(note));
  };
  if (comparison->predicted.has_replay() &&
      !comparison->measured.has_replay()) {
    add(absl::StrCat(comparison->predicted_label, " was executed, ",
                     comparison->measured_label,
                     " was not: errors are relative to the simulation (are "
                     "--replay and --against swapped?)"));
  }
  for (const Result* side : {&comparison->predicted, &comparison->measured}) {
    const uint32_t tensor = std::max(side->tensor_parallel(), 1u);
    const uint32_t data =
        std::max(side->data_parallel(), 1u) * ContextOf(*side);
    if (tensor * data == 1) continue;
    add(absl::StrCat(
        "only replica 0 of ", data, " and tensor rank 0 of ", tensor, " of ",
        side == &comparison->predicted ? comparison->predicted_label
                                       : comparison->measured_label,
        " are compared"));
  }
  if (measured_timeline.transfers.empty() &&
      measured_timeline.num_ranks() > 1) {
    add(absl::StrCat(comparison->measured_label,
                     " has no transfers: their time is counted as `other`"));
  }
  if (comparison->memory.empty()) {
    add("memory is not compared: not both results contain it");
  }
  const ClockErrors& clocks = comparison->clocks;
  if (clocks.num_early > 0) {
    add(absl::StrCat(clocks.num_early, " of ", clocks.num_inputs, " passes of ",
                     comparison->measured_label,
                     " start before their input is ready, by up to ",
                     FormatSeconds(clocks.largest_seconds),
                     ": the clocks of its ranks are not synchronized"));
  }
}

}  // namespace

std::string ComparedAction::name() const {
  return absl::StrCat("rank ", rank, " ", ActionText(measured));
}

absl::StatusOr<ExecutionComparison> CompareExecution(
    absl::string_view predicted_label, const Result& predicted,
    absl::string_view measured_label, const Result& measured) {
  ASSIGN_OR_RETURN(PipelineEvents measured_timeline,
                   PipelineEventsOf(measured_label, measured));
  auto read = PipelineEventsOf(predicted_label, predicted);
  if (!read.ok() && predicted.timeline().from_seconds() > 0 &&
      measured.num_batches() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        read.status().message(), " (", Advice(predicted, measured), ")"));
  }
  RETURN_IF_ERROR(read.status());
  PipelineEvents predicted_timeline = *std::move(read);
  // Few runtimes record the sum of a tied embedding's gradients.
  predicted_timeline.tied |= measured_timeline.tied;
  measured_timeline.tied |= predicted_timeline.tied;

  ExecutionComparison comparison;
  comparison.predicted_label = std::string(predicted_label);
  comparison.measured_label = std::string(measured_label);
  ASSIGN_OR_RETURN(comparison.actions,
                   Match(predicted_label, predicted, predicted_timeline,
                         measured_label, measured, measured_timeline));
  comparison.predicted = WithoutTimeline(predicted);
  comparison.measured = WithoutTimeline(measured);
  comparison.makespan = {predicted_timeline.makespan_seconds,
                         measured_timeline.makespan_seconds};
  if (predicted.batch_seconds() > 0 && measured.batch_seconds() > 0) {
    comparison.batch = {predicted.batch_seconds(), measured.batch_seconds()};
  }
  comparison.span = {SpanOf(predicted_timeline), SpanOf(measured_timeline)};
  comparison.errors = ErrorsByOp(comparison);
  comparison.predicted_idle = FindIdleCauses(predicted_timeline);
  comparison.measured_idle = FindIdleCauses(measured_timeline);
  comparison.idle_ratio = {
      BubbleOf(comparison.predicted_idle, comparison.makespan.predicted),
      BubbleOf(comparison.measured_idle, comparison.makespan.measured)};
  comparison.predicted_transfers =
      TimesOf(predicted_timeline, comparison.predicted_idle);
  comparison.measured_transfers =
      TimesOf(measured_timeline, comparison.measured_idle);
  comparison.clocks = FindClockErrors(measured_timeline);
  comparison.memory =
      CompareMemory(predicted, predicted_timeline, measured, measured_timeline);
  if (HasSteps(measured_timeline) && !HasSteps(predicted_timeline)) {
    comparison.notes.push_back(absl::StrCat(
        "optimizer steps of ", measured_label, " are not compared: ",
        predicted_label, " has none, as with given costs"));
  }
  AddNotes(measured_timeline, &comparison);
  AddWarnings(&comparison);
  return comparison;
}

std::vector<JudgedError> JudgedErrors(const ExecutionComparison& comparison) {
  std::vector<JudgedError> judged = {{"makespan", comparison.makespan.error()}};
  for (const RankMemory& memory : comparison.memory) {
    const std::string what = absl::StrCat("peak memory of rank ", memory.rank);
    judged.push_back({what, memory.error(), true});
    if (memory.allocator_bytes > 0) {
      judged.push_back({absl::StrCat(what, " by the allocator's count"),
                        memory.allocator_error(), true});
    }
  }
  return judged;
}

std::vector<std::string> ErrorsAbove(const ExecutionComparison& comparison,
                                     const ExecutionTolerance& tolerance) {
  std::vector<std::string> above;
  for (const JudgedError& judged : JudgedErrors(comparison)) {
    const double limit =
        judged.of_memory ? tolerance.memory : tolerance.makespan;
    if (limit == 0 || std::abs(judged.error) <= limit) continue;
    above.push_back(absl::StrCat(
        judged.what, absl::StrFormat(" %+.2f %%", 100 * judged.error)));
  }
  return above;
}

}  // namespace weir::results
