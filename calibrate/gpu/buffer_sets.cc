// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/buffer_sets.h"

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/rotation.h"

namespace weir {
namespace {

// As cudaMalloc aligns: StageExecutor counts on it.
constexpr int64_t kAlignment = 256;

int64_t Rounded(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<BufferSets> BufferSets::Create(const BenchDevice& device,
                                              const StageProgram& program,
                                              const std::vector<int>& buffers,
                                              int64_t touched_bytes,
                                              bool is_pass) {
  int64_t set_bytes = 0;
  for (int buffer : buffers) {
    set_bytes += Rounded(program.buffers[buffer].bytes());
  }
  ASSIGN_OR_RETURN(const int64_t free, FreeMemory());
  ASSIGN_OR_RETURN(
      const int num_sets,
      NumSets(touched_bytes, set_bytes, device.facts.l2_bytes, free, is_pass));
  BufferSets sets;
  ASSIGN_OR_RETURN(sets.memory_,
                   Allocate(num_sets * set_bytes, "the buffers of a workload"));
  const std::vector<Fill> fills = FillsOf(program);
  auto* next = static_cast<char*>(sets.memory_.get());
  uint64_t seed = device.options.seed;
  for (int set = 0; set < num_sets; ++set) {
    BufferTable table(program.buffers.size(), nullptr);
    for (int buffer : buffers) {
      table[buffer] = next;
      RETURN_IF_ERROR(FillBuffer(device.launch(), fills[buffer],
                                 program.buffers[buffer], next, ++seed));
      next += Rounded(program.buffers[buffer].bytes());
    }
    sets.tables_.push_back(std::move(table));
  }
  RETURN_IF_ERROR(device.Wait("filling buffers with random data"));
  return sets;
}

}  // namespace weir
