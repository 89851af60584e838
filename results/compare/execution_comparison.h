// SPDX-License-Identifier: Apache-2.0
// Comparison of a prediction with an execution of the same schedule, action by
// action. Errors are predicted / measured - 1 unless stated otherwise.
#ifndef WEIR_RESULTS_COMPARE_EXECUTION_COMPARISON_H_
#define WEIR_RESULTS_COMPARE_EXECUTION_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/error_statistics.h"
#include "results/compare/idle_causes.h"
#include "results/compare/memory_comparison.h"
#include "results/pipeline_events.h"
#include "results/result.pb.h"

namespace weir::results {

struct ComparedAction {
  int rank = 0;
  TimelineAction predicted, measured;

  std::string name() const;  // "rank 2 2F3"
  double start_error_seconds() const {
    return predicted.start_seconds - measured.start_seconds;
  }
  double end_error_seconds() const {
    return predicted.end_seconds - measured.end_seconds;
  }
  bool has_duration() const { return measured.seconds() > 0; }
  double duration_error() const {
    return predicted.seconds() / measured.seconds() - 1;
  }
};

// Errors of all actions of one op, or of all passes and steps.
struct ActionErrors {
  std::string op;  // "F", "step", "all"
  int num_actions = 0;
  // For actions that were measured to take time.
  ErrorStatistics durations;
  // Predicted minus measured, as fractions of the measured makespan.
  ErrorStatistics starts, ends;
  std::string worst_duration, worst_start;  // ComparedAction::name
};

struct ComparedSeconds {
  double predicted = 0, measured = 0;

  double error() const { return measured > 0 ? predicted / measured - 1 : 0; }
};

struct ExecutionComparison {
  std::string predicted_label, measured_label;
  // Without their timelines.
  Result predicted, measured;
  ComparedSeconds makespan;
  ComparedSeconds batch;  // 0 where one of the results has none
  // The longest time of a rank from its first pass to the end of its last.
  ComparedSeconds span;
  // Idle fraction of all ranks over the makespan (results/metrics.h).
  ComparedSeconds idle_ratio;
  std::vector<ComparedAction> actions;  // rank by rank, in measured order
  std::vector<ActionErrors> errors;     // "all" is the last
  std::vector<RankIdle> predicted_idle, measured_idle;  // [rank]
  TransferTimes predicted_transfers, measured_transfers;
  ClockErrors clocks;  // the measurement's
  std::vector<RankMemory> memory;
  std::vector<std::string> notes;  // what was not compared, and why
  // Why the prediction may not be one of this execution: its profile was
  // measured on another GPU, on none, or predicts frameworks.
  std::vector<std::string> warnings;
};

// Compares replica 0, tensor rank 0 of both. Returns InvalidArgument if their
// actions differ, with the first actions that only one of them has and what to
// simulate instead. Also returns the errors of PipelineEventsOf.
absl::StatusOr<ExecutionComparison> CompareExecution(
    absl::string_view predicted_label, const Result& predicted,
    absl::string_view measured_label, const Result& measured);

// An error that --tolerance checks: that of the makespan, or of the peak memory
// of a rank, by the replay's count and by its allocator's.
struct JudgedError {
  std::string what;  // "makespan", "peak memory of rank 2"
  double error = 0;
  bool of_memory = false;
};
std::vector<JudgedError> JudgedErrors(const ExecutionComparison& comparison);

// Largest accepted relative errors; 0: any.
struct ExecutionTolerance {
  double makespan = 0;
  double memory = 0;
};

// Returns the errors above the tolerance, such as "makespan +3.10 %".
std::vector<std::string> ErrorsAbove(const ExecutionComparison& comparison,
                                     const ExecutionTolerance& tolerance);

// Returns one screen with the worst ranks and classes, or everything.
std::string ExecutionTable(const ExecutionComparison& comparison, bool all);

// Returns everything as a JSON object.
std::string ExecutionJson(const ExecutionComparison& comparison);

// Returns one CSV line per action, with the columns
// rank,action,predicted_start_seconds,predicted_seconds,
// measured_start_seconds,measured_seconds,start_error_seconds,duration_error.
std::string ExecutionCsv(const ExecutionComparison& comparison);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_EXECUTION_COMPARISON_H_
