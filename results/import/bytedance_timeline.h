// SPDX-License-Identifier: Apache-2.0
// ByteDance's timelines: every operation of every worker, by step. Format:
// github.com/ByteDance-Seed/StragglerAnalysis (Apache-2.0).
#ifndef WEIR_RESULTS_IMPORT_BYTEDANCE_TIMELINE_H_
#define WEIR_RESULTS_IMPORT_BYTEDANCE_TIMELINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "results/import/chrome_events.h"
#include "results/import/recorded_run.h"
#include "results/import/trace_source.h"

namespace weir::results {

// Collects the operations of Chrome JSON: pid is the replica, the name of the
// thread has the pipeline rank ("PP rank 0, TP rank 0, compute"), and args have
// step, model_chunk, mb_id and seq_id.
class ByteDanceTimeline {
 public:
  // Ignores events of other kinds. Returns InvalidArgument for operations with
  // invalid fields.
  absl::Status Take(absl::string_view label, const ChromeEvent& event);
  size_t size() const { return operations_.size(); }  // operations
  bool empty() const { return operations_.empty(); }

  // Returns the run, not yet cleaned. `cut_off`: the end of the file is
  // missing, where these timelines have the names of threads. Returns
  // InvalidArgument if the thread of an operation has no name.
  absl::StatusOr<RecordedRun> Finish(absl::string_view label, bool cut_off);

 private:
  using Thread = std::pair<std::string, std::string>;  // process, thread
  struct Operation {
    RecordedOperation recorded;  // without rank, stage
    int32_t thread = 0;
    int32_t chunk = -1;
  };
  std::map<Thread, int32_t> thread_numbers_;
  std::map<Thread, int32_t> ranks_;
  std::vector<Operation> operations_;
};

// Reads the same as CSV, with seconds: columns step, dp_rank, stage (pipeline
// rank), optype, start_ts, duration, and of passes mc and mb_id.
// Returns the run, not yet cleaned, or InvalidArgument with the first 20
// errors.
absl::StatusOr<RecordedRun> ReadByteDanceCsv(TraceSource* source);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_BYTEDANCE_TIMELINE_H_
