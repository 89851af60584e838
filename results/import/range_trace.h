// SPDX-License-Identifier: Apache-2.0
// Traces whose ranges name the passes of a pipeline, one file or process per
// rank: PyTorch's profiler with torchtitan or Megatron-LM, or any Chrome JSON.
#ifndef WEIR_RESULTS_IMPORT_RANGE_TRACE_H_
#define WEIR_RESULTS_IMPORT_RANGE_TRACE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "results/import/chrome_events.h"
#include "results/import/operation_names.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Collects ranges with names of ParseOperationName. If the profiler recorded
// them on the GPU ("gpu_user_annotation"), those are used, else those of the
// host, with a note.
class RangeTrace {
 public:
  // Requires: BeginFile() was called.
  void Take(const ChromeEvent& event);
  void BeginFile();
  // Takes the rank (distributedInfo.rank) and the clock of the file. Returns
  // InvalidArgument if a rank has two files.
  absl::Status EndFile(absl::string_view label, const ChromeTrace& trace);
  bool empty() const { return num_ranges_ == 0; }

  // Returns the run, not yet cleaned. Ranks with the same stages are replicas;
  // the n-th time that a rank runs a pass belongs to step n. Returns
  // InvalidArgument if two files have the same ranges.
  absl::StatusOr<RecordedRun> Finish(absl::string_view label);

 private:
  struct Range {
    NamedOperation operation;
    double start_microseconds = 0, microseconds = 0;
  };
  // What one process ran, and the index of its file.
  struct Ranges {
    std::vector<Range> ranges;
    size_t file = 0;
  };
  absl::Status CheckDistinct(const std::vector<Ranges>& workers) const;
  // A range on several streams of a GPU is recorded once for each: merges those
  // of one operation that overlap. Requires: they are sorted by start.
  static void MergeStreams(std::vector<Range>* ranges);
  struct Workers;  // what all processes ran
  // Sorts the files and takes their ranges, with times of one clock. Ranges of
  // the GPU belong to the process of the host, which has another number.
  Workers TakeWorkers();
  struct Pipeline;  // ranks and replicas
  // Groups the workers by the stages of their passes.
  static Pipeline FindPipeline(const std::vector<Ranges>& workers);
  // Adds what a worker ran, with times since `first_microseconds`, and the
  // stages of its passes. Requires: the number of ranks is set.
  static void AddOperations(const Ranges& worker, int replica, int rank,
                            double first_microseconds, bool has_weight,
                            RecordedRun* run);

  // The ranges of a process of a file.
  struct Worker {
    std::vector<Range> on_gpu, on_host;
  };
  struct File {
    std::map<std::string, Worker> processes;
    std::string label;
    int64_t rank = -1;  // -1: not recorded
    double base_nanoseconds = 0;
  };

  std::vector<File> files_;
  int64_t num_ranges_ = 0;
  std::set<int64_t> ranks_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_RANGE_TRACE_H_
