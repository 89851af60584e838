// SPDX-License-Identifier: Apache-2.0
// Ranks that use the whole GPU in turn (execution_device.h: serial). Errors are
// those of calibrate/gpu/errors.h.
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_SERIAL_EXECUTION_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_SERIAL_EXECUTION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/execute/gpu/cuda_rank.h"
#include "calibrate/execute/gpu/execution_device.h"
#include "calibrate/execute/gpu/spilled_memory.h"
#include "calibrate/gpu/graph.h"

namespace weir::calibrate {

// Accumulated seconds of work, measured on the device. A piece of work lasts
// from a Begin() to the next End(); copies run ahead of it for as long as its
// launch took the last time.
class WorkClock {
 public:
  // Requires: the device outlives the clock.
  static absl::StatusOr<WorkClock> Create(const BenchDevice* device);

  // Begins a piece of work. All work of one `kind` takes about the same time to
  // launch; `what` is used in messages.
  absl::Status Begin(int64_t kind, int num_launches, const std::string& what);
  // Waits for the work to finish. Returns DeadlineExceeded, with the work's
  // name, if it takes too long.
  absl::Status End();
  bool is_running() const { return running_; }
  double seconds() const { return seconds_; }
  int num_pieces() const { return num_pieces_; }
  // Pieces whose first event had passed before all of the piece was launched.
  int num_late() const { return num_late_; }

 private:
  const BenchDevice* device_ = nullptr;
  Stopwatch watch_;
  bool running_ = false;
  int64_t kind_ = 0;
  std::string what_;
  std::chrono::steady_clock::time_point launched_;
  std::map<int64_t, double> host_seconds_;  // launch time by kind
  double seconds_ = 0;
  int num_pieces_ = 0, num_late_ = 0;
};

class SerialRank;

class SerialExecution : public ExecutionDevice {
 public:
  static absl::StatusOr<std::unique_ptr<SerialExecution>> Open(
      const ExecutionPlan& plan, std::unique_ptr<BenchDevice> bench,
      const CudaExecutionOptions& options);
  ~SerialExecution() override;

  RankDevice* rank(int rank) override;
  bool concurrent() const override { return false; }
  absl::Status Start() override;
  const Provenance& provenance() const override { return provenance_; }
  std::string description() const override;

 private:
  friend class SerialRank;
  SerialExecution() = default;
  // Trims the pools and sets `*trimmed`. If it was set, spills the rank other
  // than `keep` that has been idle for longest instead, or returns false if all
  // others are spilled.
  absl::StatusOr<bool> MakeRoom(const SerialRank* keep, bool* trimmed);

  std::unique_ptr<BenchDevice> bench_;
  Provenance provenance_;
  std::shared_ptr<EventPool> events_;
  StageExecutors executors_;
  PinnedBlocks host_;
  WorkClock clock_;
  double started_ = 0;  // seconds of `clock_` at Start
  int64_t num_attended_ = 0;
  int num_spills_ = 0;
  const SerialRank* at_work_ = nullptr;
  std::vector<std::unique_ptr<SerialRank>> ranks_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_SERIAL_EXECUTION_H_
