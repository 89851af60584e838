// SPDX-License-Identifier: Apache-2.0
// A fake GPU on the host: the functions of CUDA, cuBLASLt and NCCL that
// calibrate/gpu/ calls, and the launchers of its kernels. Work runs when it is
// enqueued, in double precision. This is one of the orders that streams and
// events allow; fake_order.h reports accesses that they do not order. The
// host sees copies to pinned memory once it has waited for them. Time is
// simulated: a stream is busy for the duration of its work, and the clock
// advances when the host polls. All functions are thread-safe.
#ifndef WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_H_
#define WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "calibrate/execute/stage/stage_op.h"
#include "tests/calibrate/gpu/fake/fake_order.h"

struct CUgraph_st {
  struct Node {
    double seconds;
    std::function<void()> work;
    weir::fake::Accesses accesses;
  };
  std::vector<Node> nodes;
};
struct CUgraphExec_st : CUgraph_st {};
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name.
struct CUgreenCtx_st {
  unsigned num_multiprocessors;
  int num_streams = 0;
};
struct CUstream_st {
  CUstream_st();
  const int id;
  double busy_until = 0;
  weir::fake::Order order;  // what its next work comes after
  CUgraph_st* captured = nullptr;
  CUgreenCtx_st* part = nullptr;  // null: the whole GPU
};

namespace weir::calibrate {

struct FakeState {
  // Set by tests.
  double kernel_seconds = 1e-5;
  double copy_seconds = 2e-6, copy_bytes_per_second = 1e12;
  double library_algorithm_seconds[2] = {3e-5, 2e-5};  // the second is faster
  bool has_gelu_epilogues = true;
  bool hangs = false;             // no further work ends
  int64_t hangs_from = -1;        // hangs from this kernel on
  double kernels_are_off_by = 1;  // factor on all values that kernels write
  // Partitions as documented for compute capability 9.0: sizes are multiples
  // of a step.
  unsigned num_multiprocessors = 132, multiprocessor_step = 8;
  unsigned least_part = 1;             // smallest context that can be created
  bool small_part_is_invalid = false;  // the driver's error for smaller ones
  double slowdown_per_busy_part = 0;   // added by each other busy partition
  int driver_version = 13000;
  std::string missing_entry;  // missing function of the driver
  // Read by tests.
  int64_t num_kernels = 0, num_gemms = 0;
  std::set<int> gemms_fill;  // multiprocessors; 0: all
  int num_destroyed = 0;
  std::vector<std::string> faults;   // see fake_order.h
  int num_streams_without_part = 0;  // left when their partition was destroyed
  std::set<cudaStream_t> streams;
  std::set<CUgreenCtx_st*> parts;

  double now = 0;
  int64_t total_bytes = int64_t{1} << 30, used_bytes = 0;
  std::map<void*, int64_t> allocations;
};
FakeState& Gpu();
std::recursive_mutex& GpuMutex();  // guards all of the fake GPU

// Runs the work, or records it in the graph that the stream is capturing.
void Enqueue(cudaStream_t stream, double seconds, std::function<void()> work,
             fake::Accesses accesses = {});
// Returns the seconds that the work takes if it starts when the stream is free,
// which is longer while other partitions of the GPU are busy.
double Slowed(cudaStream_t stream, double seconds);

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_H_
