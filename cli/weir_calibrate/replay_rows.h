// SPDX-License-Identifier: Apache-2.0
// Chooses what a GPU of any kind replays: which schedules fit into its memory,
// with which model, sequence length and batch, one rank at a time and on
// partitions. Needs no GPU.
#ifndef WEIR_CLI_WEIR_CALIBRATE_REPLAY_ROWS_H_
#define WEIR_CLI_WEIR_CALIBRATE_REPLAY_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"

namespace weir::cli {

struct GpuSize {
  double memory_bytes = 0;
  int num_multiprocessors = 0;
};

// One replay and the simulation that predicts it.
struct ReplayRow {
  int num_partitions = 1;  // 1: one rank at a time on the whole GPU
  std::string schedule;
  int num_ranks = 0;
  // Multiprocessors of a partition; with one rank at a time, of the GPU.
  int num_multiprocessors = 0;
  // Predicted peaks of all ranks together with kPoolMargin, and the memory that
  // is left for them.
  double needed_bytes = 0, available_bytes = 0;
  std::string why_not;  // empty: it fits
  // Options of `weir simulate` and `weir-calibrate replay`.
  std::vector<std::string> options;

  bool fits() const { return why_not.empty(); }
};

struct ReplayRows {
  // Of all rows, so that one calibration suffices for a number of partitions.
  std::string model;
  uint32_t sequence_length = 0, global_batch_size = 0;
  GpuSize gpu;
  std::vector<ReplayRow> rows;  // by number of partitions, important ones first

  int num_fitting() const;
};

struct ReplayRowsRequest {
  GpuSize gpu;
  ScenarioFlags scenario;  // names a scenario; its profile predicts times
  // The options of `scenario` as typed, which the options of rows begin with.
  std::vector<std::string> scenario_options;
  int num_partitions = 0;  // 0: one rank at a time, 4, 2 and 8
};

// Plans the schedules of `scenario`, or the seven of docs/replay.md. Chooses
// the largest model, sequence length and batch of a fixed list with which at
// least three quarters of the rows fit, otherwise those with which most fit;
// values that the flags set are kept, and a scenario other than the default is
// never changed. Returns the errors of scenarios and of Simulate().
absl::StatusOr<ReplayRows> PlanReplays(const ReplayRowsRequest& request);

// Returns a table, and a line for each row that does not fit.
std::string ReplayRowsTable(const ReplayRows& rows);
// Returns CSV with the columns partitions, schedule, ranks, multiprocessors,
// model, sequence_length, needed_bytes, available_bytes, fits (yes or no),
// options (separated by spaces).
std::string ReplayRowsCsv(const ReplayRows& rows);
std::string ReplayRowsJson(const std::string& command, const ReplayRows& rows);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_REPLAY_ROWS_H_
