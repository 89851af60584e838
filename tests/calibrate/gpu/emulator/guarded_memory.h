// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that must not be touched: reads and writes past its
// end, rounded up to 16 bytes, or far before its begin end the program. What
// lies nearer is filled with a pattern, and Intact() says whether it still is.
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
  void Poison();  // all bytes 0xFF: NaN in every format
  bool Intact() const;

 private:
  size_t num_bytes_;
  size_t mapped_bytes_;
  unsigned char* mapped_;
  unsigned char *begin_, *end_;  // of the pages that may be touched
  unsigned char* data_;
};

}  // namespace weir::emulator

#endif  // WEIR_TESTS_CALIBRATE_GPU_EMULATOR_GUARDED_MEMORY_H_
