// SPDX-License-Identifier: Apache-2.0
// Work that keeps a stream busy while other work is measured concurrently.
// Functions return the errors of errors.h, and DeadlineExceeded if the GPU does
// not finish in time.
#ifndef WEIR_CALIBRATE_GPU_BACKGROUND_LOAD_H_
#define WEIR_CALIBRATE_GPU_BACKGROUND_LOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/graph.h"
#include "calibrate/gpu/graph_timer.h"

namespace weir::calibrate {

// Repeats one round of work from a graph. The number of rounds is fixed, so it
// always ends.
class BackgroundLoad {
 public:
  // `launch` enqueues a round of `num_ops` on `stream`; everything it uses
  // outlives the load. Runs some rounds to time them. Here and below, returns
  // DeadlineExceeded, with `what`, after `timeout_seconds`.
  static absl::StatusOr<std::unique_ptr<BackgroundLoad>> Create(
      std::string what, cudaStream_t stream, double timeout_seconds,
      int num_ops, const std::function<absl::Status()>& launch);

  // Returns the number of replays, of some milliseconds each, that take
  // `seconds` uncontended.
  int NumGraphLaunches(double seconds) const;
  absl::Status Begin();
  absl::Status EnqueueGraph();
  absl::Status End();

  absl::Status WaitUntilBegun();
  absl::StatusOr<bool> IsRunning() const;
  absl::Status WaitUntilEnded();

 private:
  BackgroundLoad() = default;

  std::string what_;
  cudaStream_t stream_ = nullptr;
  double timeout_seconds_ = 0;
  Stopwatch watch_;
  GraphExec graph_;
  double graph_seconds_ = 0;  // uncontended
};

// Runs the replayer's launches while all loads run from before their start
// until after their end, and repeats with a longer load if one ended too early.
// `key` is used in errors. Returns when the loads have ended. Returns Internal
// if a load ended too early several times.
absl::StatusOr<LaunchBatch> RunOverlapped(
    const std::vector<std::unique_ptr<BackgroundLoad>>& loads,
    absl::string_view key, GraphTimer* timer, int num_launches);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_BACKGROUND_LOAD_H_
