// SPDX-License-Identifier: Apache-2.0
// The parts of the fake GPU that the fake functions of CUDA share.
#ifndef WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_GPU_H_
#define WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_GPU_H_

#include "tests/calibrate/gpu/fake/fake.h"

#define LOCK_FAKE \
  const std::lock_guard<std::recursive_mutex> lock(weir::calibrate::GpuMutex())

namespace weir::calibrate {

// Returns the last error of the calling thread.
cudaError_t& LastError();

// Add and remove pinned memory. Before it is removed, its copies are completed.
void AddPinned(void* memory, size_t bytes);
void RemovePinned(void* memory);

// Completes the copies to pinned memory that the calling thread has seen to end
// because it has waited for work of this order.
void Saw(const fake::Order& order);

// Copies now. Pinned memory receives its data when the host has waited for it.
void CopyBytes(void* to, const void* from, size_t bytes, cudaStream_t stream);

// Does the work of a node unless its accesses are a fault.
void RunNode(cudaStream_t stream, const CUgraph_st::Node& node);

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_GPU_H_
