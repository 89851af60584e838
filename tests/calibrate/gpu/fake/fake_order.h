// SPDX-License-Identifier: Apache-2.0
// The order of work on the fake GPU: stream order, events, and the work that
// the host has seen to end. Work that accesses memory which other work may
// still be using is reported in FakeState::faults, independent of the simulated
// times.
#ifndef WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_ORDER_H_
#define WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_ORDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::fake {

// For each stream, the number of its work items that have ended.
using Order = std::map<int, uint64_t>;
void Merge(const Order& from, Order* into);

// A range of memory that a work item reads or writes.
struct Access {
  const void* begin = nullptr;
  int64_t num_bytes = 0;
  bool writes = false;
};
using Accesses = std::vector<Access>;
inline Access Reads(const void* begin, int64_t num_bytes) {
  return {begin, begin == nullptr ? 0 : num_bytes, false};
}
inline Access Writes(const void* begin, int64_t num_bytes) {
  return {begin, begin == nullptr ? 0 : num_bytes, true};
}

// Records the next work item of a stream. `order` holds the work before it and
// is extended by it. Returns false if it accesses memory that is not allocated;
// it must then not run.
bool Note(int stream, const Accesses& accesses, Order* order);

// Record the allocation and release of device or pinned memory, in the `order`
// of a stream or immediately (null).
void NoteTaken(const void* memory, int64_t num_bytes, int stream, Order* order);
void NoteGivenBack(const void* memory, int stream, Order* order);
bool IsThere(const void* memory, int64_t num_bytes);

// Returns the work that the calling thread knows to have ended.
Order& SeenByHost();
// Records that all previous work has ended.
void ForgetAll();

}  // namespace weir::fake

#endif  // WEIR_TESTS_CALIBRATE_GPU_FAKE_FAKE_ORDER_H_
