// SPDX-License-Identifier: Apache-2.0
// What data the buffers of a stage begin with, and which operations must have
// run before one that is measured alone.
#ifndef WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_
#define WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_

#include <vector>

#include "calibrate/stage/stage_program.h"

namespace weir {

struct Fill {
  enum class Kind {
    kNormal,  // random numbers, mean 0, of `deviation`
    kTokens,  // random whole numbers in [0, limit)
    kBytes,   // all bytes `byte`
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

// For all buffers, later ones on top of earlier ones. Activations and gains of
// norms have the deviation 1, other weights 0.02; gradients as much as a
// product adds to them, so that one that does not add shows; second moments are
// above 0.
std::vector<PieceFill> FillsOf(const StageProgram& program);

struct OpIndex {
  StagePass pass = StagePass::kForward;
  int op = 0;

  bool operator==(const OpIndex&) const = default;
};

// The operations whose results must fit together with this one's inputs:
// statistics of norms and attention, masks. In the order in which they run.
std::vector<OpIndex> ProducersOf(const StageProgram& program, OpIndex op);

// What the operations touch: one piece of a buffer, from the first element that
// any of them needs to the last; it begins at a multiple of 256 elements.
// Ascending by buffer.
std::vector<Piece> PiecesOf(const StageProgram& program,
                            const std::vector<OpIndex>& ops);
std::vector<OpIndex> OpsOf(const StageProgram& program, StagePass pass);

// Bytes that the operation reads and writes, views counted once.
int64_t TouchedBytes(const StageProgram& program, OpIndex op);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_FILL_PLAN_H_
