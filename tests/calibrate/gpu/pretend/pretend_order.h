// SPDX-License-Identifier: Apache-2.0
// What pretended work happens before what: streams in order, events, and what
// the host has seen to end. Work that touches memory which other work may still
// be using is noted in Pretended::faults, whatever the pretended times are.
#ifndef WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_ORDER_H_
#define WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_ORDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::pretend {

// [stream] -> so many of its pieces of work have ended.
using Order = std::map<int, uint64_t>;
void Merge(const Order& from, Order* into);

// A stretch of memory that a piece of work reads or writes.
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

// The next piece of work of a stream; `order` is what happens before it, and
// then holds it too. False: memory that is not there, and it must not be run.
bool Note(int stream, const Accesses& accesses, Order* order);

// Device or pinned memory that comes and goes; within `order` of a stream, or
// at once (null).
void NoteTaken(const void* memory, int64_t num_bytes, int stream, Order* order);
void NoteGivenBack(const void* memory, int stream, Order* order);
bool IsThere(const void* memory, int64_t num_bytes);

// What the calling thread knows to have ended.
Order& SeenByHost();
// All that ever happened has ended.
void ForgetAll();

}  // namespace weir::pretend

#endif  // WEIR_TESTS_CALIBRATE_GPU_PRETEND_PRETEND_ORDER_H_
