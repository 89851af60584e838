// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/graph.h"

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"

namespace weir::calibrate {

absl::StatusOr<GraphExec> CaptureGraph(
    cudaStream_t stream, absl::FunctionRef<absl::Status()> launch) {
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
      "starting to capture a graph"));
  const absl::Status launched = launch();
  Graph graph;
  const cudaError_t ended = cudaStreamEndCapture(stream, graph.receive());
  // A failed capture leaves its error set.
  if (!launched.ok() || ended != cudaSuccess) cudaGetLastError();
  RETURN_IF_ERROR(launched);
  RETURN_IF_ERROR(CudaStatus(ended, "capturing a graph"));
  GraphExec exec;
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphInstantiate(exec.receive(), graph.get(), 0),
                 "instantiating a graph"));
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphUpload(exec.get(), stream), "uploading a graph"));
  return exec;
}

absl::StatusOr<Stopwatch> Stopwatch::Create() {
  Stopwatch watch;
  ASSIGN_OR_RETURN(watch.begin_, MakeEvent());
  ASSIGN_OR_RETURN(watch.end_, MakeEvent());
  return watch;
}

absl::Status Stopwatch::Start(cudaStream_t stream) {
  return CudaStatus(cudaEventRecord(begin_.get(), stream),
                    "recording an event");
}

absl::Status Stopwatch::Stop(cudaStream_t stream) {
  return CudaStatus(cudaEventRecord(end_.get(), stream), "recording an event");
}

absl::StatusOr<double> Stopwatch::Seconds(double timeout_seconds,
                                          absl::string_view what) {
  RETURN_IF_ERROR(WaitFor(end_.get(), timeout_seconds, what));
  float milliseconds = 0;
  RETURN_IF_ERROR(CudaStatus(
      cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), what));
  return 1e-3 * milliseconds;
}

}  // namespace weir::calibrate
