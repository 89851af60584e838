// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/emulator/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weir::emulator {
namespace {

constexpr unsigned char kPoison = 0xFF;

size_t RoundUp(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t num_bytes) : num_bytes_(num_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inner = RoundUp(std::max<size_t>(num_bytes, 1), page);
  mapped_bytes_ = inner + 2 * page;
  void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  mapped_ = static_cast<unsigned char*>(mapped);
  begin_ = mapped_ + page;
  end_ = begin_ + inner;
  if (mprotect(begin_, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
  data_ = end_ - RoundUp(num_bytes, 16);
  memset(begin_, kPoison, inner);
}

GuardedMemory::~GuardedMemory() { munmap(mapped_, mapped_bytes_); }

void GuardedMemory::Poison() { memset(data_, kPoison, num_bytes_); }

bool GuardedMemory::Intact() const {
  const auto poisoned = [](unsigned char byte) { return byte == kPoison; };
  return std::all_of(begin_, data_, poisoned) &&
         std::all_of(data_ + num_bytes_, end_, poisoned);
}

}  // namespace weir::emulator
