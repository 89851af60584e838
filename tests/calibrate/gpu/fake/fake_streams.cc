// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs.
#include <algorithm>
#include <limits>

#include "tests/calibrate/gpu/fake/fake_gpu.h"

struct CUevent_st {
  double at = 0;
  weir::fake::Order order;
};
using weir::calibrate::Gpu;
using weir::calibrate::LastError;

namespace {

cudaError_t Poll(double until, const weir::fake::Order& order) {
  LOCK_FAKE;
  Gpu().now += 1e-4;
  if (until <= Gpu().now) {
    weir::calibrate::Saw(order);
    return cudaSuccess;
  }
  return LastError() = cudaErrorNotReady;  // as CUDA's queries do
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  LOCK_FAKE;
  *stream = new CUstream_st;
  Gpu().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LOCK_FAKE;
  ++Gpu().num_destroyed;
  Gpu().streams.erase(stream);
  if (stream->part != nullptr) --stream->part->num_streams;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  LOCK_FAKE;
  return Poll(stream->busy_until, stream->order);
}
cudaError_t cudaDeviceSynchronize() {
  LOCK_FAKE;
  for (const CUstream_st* stream : Gpu().streams) {
    Gpu().now = std::max(Gpu().now, stream->busy_until);
    weir::calibrate::Saw(stream->order);
  }
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LOCK_FAKE;
  event->at = std::max(stream->busy_until, Gpu().now);
  event->order = stream->order;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  LOCK_FAKE;
  stream->busy_until = std::max(stream->busy_until, event->at);
  weir::fake::Merge(event->order, &stream->order);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  LOCK_FAKE;
  return Poll(event->at, event->order);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end) {
  LOCK_FAKE;
  *milliseconds = static_cast<float>(1e3 * (end->at - begin->at));
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->captured = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->captured;
  stream->captured = nullptr;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(
    cudaGraphExec_t* exec, cudaGraph_t graph,
    unsigned long long) {  // NOLINT(google-runtime-int): CUDA's signature.
  *exec = new CUgraphExec_st{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  LOCK_FAKE;
  Gpu().now += 1e-5;
  for (const auto& node : exec->nodes) {
    weir::calibrate::RunNode(stream, node);
    stream->busy_until = std::max(stream->busy_until, Gpu().now) +
                         weir::calibrate::Slowed(stream, node.seconds);
  }
  if (Gpu().hangs) {
    stream->busy_until = std::numeric_limits<double>::infinity();
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
