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
#include "results/import/worker_ranges.h"

namespace weir::results {

// Collects ranges with names of ParseOperationName. If the profiler recorded
// them on the GPU ("gpu_user_annotation"), those are used, else those of the
// host, with a note. Also takes "ProfilerStep#N" of PyTorch's profiler.
class RangeTrace {
 public:
  // Requires: BeginFile() was called.
  void Take(const ChromeEvent& event);
  void BeginFile();
  // Takes the rank and the number of ranks (distributedInfo), and the clock of
  // the file. Returns InvalidArgument if a rank has two files.
  absl::Status EndFile(absl::string_view label, const ChromeTrace& trace);
  int64_t size() const { return num_ranges_; }
  bool empty() const { return num_ranges_ == 0; }

  // Returns the run, not yet cleaned. Ranks with the same stages are replicas;
  // the n-th time that a rank runs a pass belongs to step n, unless it lacks or
  // repeats one (FindSteps). Returns InvalidArgument if two files have the
  // same ranges, or replicas run different microbatches.
  absl::StatusOr<RecordedRun> Finish(absl::string_view label);

 private:
  absl::Status CheckDistinct(const std::vector<WorkerRanges>& workers) const;
  struct Workers;  // what all processes ran
  // Sorts the files and takes their ranges, with times of one clock. Ranges of
  // the GPU belong to the process of the host, which has another number.
  Workers TakeWorkers();
  struct Pipeline;  // ranks and replicas
  // Groups the workers by the stages of their passes.
  static Pipeline FindPipeline(const std::vector<WorkerRanges>& workers);
  // Returns InvalidArgument if workers with the same stages run different
  // microbatches: they are no replicas, but run a pipeline in two directions.
  absl::Status CheckReplicas(const Workers& workers,
                             const Pipeline& pipeline) const;
  // Notes what was repaired, assumed or is missing.
  void AddNotes(const Workers& workers, const Pipeline& pipeline,
                RecordedRun* run) const;
  // Adds what a worker ran, with times since `first_microseconds`, and the
  // stages of its passes. Requires: the number of ranks is set.
  static void AddOperations(const WorkerRanges& worker, int replica, int rank,
                            double first_microseconds, bool has_weight,
                            RecordedRun* run);

  // The ranges of a process of a file.
  struct Worker {
    std::vector<NamedRange> on_gpu, on_host;
    std::map<std::string, double> gpu_steps, host_steps;  // name: first start
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
  int64_t world_size_ = 0;  // 0: not recorded
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_RANGE_TRACE_H_
