// SPDX-License-Identifier: Apache-2.0
// Launches captured into a CUDA graph, and how long they take.
#ifndef WEIR_CALIBRATE_GPU_GRAPH_H_
#define WEIR_CALIBRATE_GPU_GRAPH_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "calibrate/gpu/handles.h"

namespace weir {

// `launch` enqueues on `stream` and must have run once before: what libraries
// load at first use cannot be captured.
absl::StatusOr<GraphExec> CaptureGraph(
    cudaStream_t stream, absl::FunctionRef<absl::Status()> launch);

// A pair of events around work on a stream.
class Stopwatch {
 public:
  static absl::StatusOr<Stopwatch> Create();

  absl::Status Start(cudaStream_t stream);
  absl::Status Stop(cudaStream_t stream);
  // Waits for the end. DeadlineExceeded names `what`.
  absl::StatusOr<double> Seconds(double timeout_seconds,
                                 absl::string_view what);

  cudaEvent_t started() const { return begin_.get(); }
  cudaEvent_t stopped() const { return end_.get(); }

 private:
  Event begin_, end_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_GRAPH_H_
