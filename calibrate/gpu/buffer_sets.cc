// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/buffer_sets.h"

#include <cstdint>

#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/rotation.h"

namespace weir::calibrate {
namespace {

// The alignment of cudaMalloc, which StageExecutor relies on.
constexpr int64_t kAlignment = 256;

int64_t Rounded(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<BufferSets> BufferSets::Create(const BenchDevice& device,
                                              const StageProgram& program,
                                              const std::vector<Piece>& pieces,
                                              int64_t touched_bytes,
                                              bool is_pass) {
  const auto element_bytes = [&](const Piece& piece) {
    return BytesOf(program.buffers[piece.buffer].format);
  };
  int64_t set_bytes = 0;
  for (const Piece& piece : pieces) {
    set_bytes += Rounded(piece.num_elements * element_bytes(piece));
  }
  ASSIGN_OR_RETURN(const int64_t free, FreeMemory());
  ASSIGN_OR_RETURN(
      const int num_sets,
      NumSets(touched_bytes, set_bytes, device.facts.l2_bytes, free, is_pass));
  BufferSets sets;
  ASSIGN_OR_RETURN(sets.memory_,
                   Allocate(num_sets * set_bytes, "the buffers of a workload"));
  sets.pieces_ = pieces;
  sets.fills_ = FillsOf(program);
  auto next = reinterpret_cast<uintptr_t>(sets.memory_.get());
  for (int set = 0; set < num_sets; ++set) {
    BufferTable table(program.buffers.size(), nullptr);
    for (const Piece& piece : pieces) {
      const int64_t bytes = element_bytes(piece);
      // NOLINTNEXTLINE(performance-no-int-to-ptr): outside the allocation
      table[piece.buffer] = reinterpret_cast<void*>(next - piece.first * bytes);
      next += Rounded(piece.num_elements * bytes);
    }
    sets.tables_.push_back(std::move(table));
    RETURN_IF_ERROR(sets.Refill(device, program, set));
  }
  return sets;
}

absl::Status BufferSets::Refill(const BenchDevice& device,
                                const StageProgram& program, int set) const {
  // A different seed for each piece of each set.
  uint64_t seed = device.options.seed + set * pieces_.size();
  for (const Piece& piece : pieces_) {
    const auto begin =
        reinterpret_cast<uintptr_t>(tables_[set][piece.buffer]) +
        piece.first * BytesOf(program.buffers[piece.buffer].format);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the table is outside it
    auto* const elements = reinterpret_cast<void*>(begin);
    RETURN_IF_ERROR(
        FillPiece(device.launch(), program, fills_, piece, elements, ++seed));
  }
  return device.Wait("filling buffers with random data");
}

}  // namespace weir::calibrate
