// SPDX-License-Identifier: Apache-2.0
// Initial data of a stage's buffers, and the operations that must run before
// one that is measured alone.
#ifndef WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_
#define WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_

#include <vector>

#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

struct Fill {
  enum class Kind {
    kNormal,  // random numbers of mean 0 and standard deviation `deviation`
    kTokens,  // random whole numbers in [0, limit)
    kBytes,   // all bytes are `byte`
  };
  Kind kind = Kind::kNormal;
  float deviation = 1;
  int32_t limit = 1;
  int byte = 0;
};

// A part of a buffer: elements [first, first + num_elements).
struct Piece {
  int buffer = 0;
  int64_t first = 0, num_elements = 0;
};

struct PieceFill {
  Piece piece;
  Fill fill;
};

// Returns fills for all buffers, to be applied in order. Activations and gains
// of norms have deviation 1, other weights 0.02. Gradients are as large as the
// values that a GEMM adds to them, so that a missing addition is detected.
// Second moments are positive.
std::vector<PieceFill> FillsOf(const StageProgram& program);

struct OpIndex {
  ProgramPass pass = ProgramPass::kForward;
  int op = 0;

  bool operator==(const OpIndex&) const = default;
};

// Returns the operations whose results must be consistent with this one's
// inputs (statistics of norms and attention, masks), in execution order.
std::vector<OpIndex> ProducersOf(const StageProgram& program, OpIndex op);

// Returns the parts of buffers that the operations access: one piece per
// buffer, from the first to the last accessed element, beginning at a multiple
// of 256 elements. Ascending by buffer.
std::vector<Piece> PiecesOf(const StageProgram& program,
                            const std::vector<OpIndex>& ops);
std::vector<OpIndex> OpsOf(const StageProgram& program, ProgramPass pass);

// Returns the bytes that the operation reads and writes, counting each view
// once.
int64_t TouchedBytes(const StageProgram& program, OpIndex op);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_
