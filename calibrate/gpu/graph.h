// SPDX-License-Identifier: Apache-2.0
// CUDA graphs captured from launches, and timing of work on a stream. Functions
// return the errors of errors.h.
#ifndef WEIR_CALIBRATE_GPU_GRAPH_H_
#define WEIR_CALIBRATE_GPU_GRAPH_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "calibrate/gpu/handles.h"

namespace weir::calibrate {

// Captures `launch`, which enqueues on `stream`. Requires: it has run once
// before, as modules that libraries load at first use cannot be captured.
absl::StatusOr<GraphExec> CaptureGraph(
    cudaStream_t stream, absl::FunctionRef<absl::Status()> launch);

// A pair of events around work on a stream.
class Stopwatch {
 public:
  static absl::StatusOr<Stopwatch> Create();

  absl::Status Start(cudaStream_t stream);
  absl::Status Stop(cudaStream_t stream);
  // Waits for the end and returns the time in seconds, or DeadlineExceeded with
  // `what`.
  absl::StatusOr<double> Seconds(double timeout_seconds,
                                 absl::string_view what);

  cudaEvent_t started() const { return begin_.get(); }
  cudaEvent_t stopped() const { return end_.get(); }

 private:
  Event begin_, end_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_GRAPH_H_
