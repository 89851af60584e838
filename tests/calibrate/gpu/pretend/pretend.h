// SPDX-License-Identifier: Apache-2.0
// A pretended GPU on the host: the functions of CUDA, cuBLASLt and NCCL that
// calibrate/gpu/ calls, and the launchers of its kernels. Work is done when it
// is enqueued, in double precision: an order that streams and events allow, and
// pretend_order.h notes what they do not. Copies to pinned memory are seen by
// the host when it has waited for them. Time is pretended: a stream is busy for
// as long as its work takes, and the clock goes on while the host asks. Any
// thread may call.
#ifndef WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_H_
#define WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "calibrate/stage/stage_op.h"
#include "tests/calibrate/gpu/pretend/pretend_order.h"

struct CUgraph_st {
  struct Node {
    double seconds;
    std::function<void()> work;
    weir::pretend::Accesses accesses;
  };
  std::vector<Node> nodes;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUgreenCtx_st {
  unsigned num_multiprocessors;
  int num_streams = 0;
};
struct CUstream_st {
  CUstream_st();
  const int id;
  double busy_until = 0;
  weir::pretend::Order order;  // what its next work comes after
  CUgraph_st* captured = nullptr;
  CUgreenCtx_st* part = nullptr;  // of the card; null: all of it
};

namespace weir {

struct Pretended {
  // Set by tests.
  double kernel_seconds = 1e-5;
  double copy_seconds = 2e-6, copy_bytes_per_second = 1e12;
  double library_algorithm_seconds[2] = {3e-5, 2e-5};  // the second is faster
  bool has_gelu_epilogues = true;
  bool hangs = false;             // no work ends any more
  int64_t hangs_from = -1;        // so from this kernel on
  double kernels_are_off_by = 1;  // a factor of all that kernels write
  // Parts of the card, as an H200's: sizes are multiples of a step.
  unsigned num_multiprocessors = 132, multiprocessor_step = 8;
  unsigned least_part = 1;             // a context of fewer cannot be made
  bool small_part_is_invalid = false;  // as the driver then says
  double slowdown_per_busy_part = 0;   // what others that work cost, each
  int driver_version = 13000;
  std::string missing_entry;  // of the driver
  // Seen by tests.
  int64_t num_kernels = 0, num_products = 0;
  std::set<int> products_fill;  // multiprocessors; 0: all that there are
  int num_destroyed = 0;
  std::vector<std::string> faults;   // pretend_order.h
  int num_streams_without_part = 0;  // left when their part was destroyed
  std::set<cudaStream_t> streams;
  std::set<CUgreenCtx_st*> parts;

  double now = 0;
  int64_t total_bytes = int64_t{1} << 30, used_bytes = 0;
  std::map<void*, int64_t> allocations;
};
Pretended& Gpu();
std::recursive_mutex& GpuMutex();  // of all that is pretended

// Does the work, or notes it in the graph that the stream captures.
void Enqueue(cudaStream_t stream, double seconds, std::function<void()> work,
             pretend::Accesses accesses = {});
// What that much work takes if it begins when the stream is free: longer while
// other parts of the card are busy.
double Slowed(cudaStream_t stream, double seconds);

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_H_
