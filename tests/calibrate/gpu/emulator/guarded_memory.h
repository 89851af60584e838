// SPDX-License-Identifier: Apache-2.0
// Memory between two inaccessible pages. An access past its end (rounded up to
// 16 bytes), or before the page of its beginning, ends the program. The bytes
// between the memory and these pages are filled with a pattern; Intact()
// returns whether it is unchanged.
#ifndef WEIR_TESTS_CALIBRATE_GPU_EMULATOR_GUARDED_MEMORY_H_
#define WEIR_TESTS_CALIBRATE_GPU_EMULATOR_GUARDED_MEMORY_H_

#include <cstddef>

namespace weir::emulator {

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t num_bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* data() const { return data_; }  // 16-byte aligned
  size_t size() const { return num_bytes_; }
  void Poison();  // all bytes 0xFF, which is NaN in every format
  bool Intact() const;

 private:
  size_t num_bytes_;
  size_t mapped_bytes_;
  unsigned char* mapped_;
  unsigned char *begin_, *end_;  // bounds of the accessible pages
  unsigned char* data_;
};

}  // namespace weir::emulator

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_GUARDED_MEMORY_H_
