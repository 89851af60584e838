// SPDX-License-Identifier: Apache-2.0
// The parameters of a GemmModel, by name.
#ifndef WEIR_CALIBRATE_PROFILE_GEMM_MODEL_H_
#define WEIR_CALIBRATE_PROFILE_GEMM_MODEL_H_

#include <vector>

#include "calibrate/profile/gemm_model.pb.h"

namespace weir::calibrate {

// One parameter of the message and its valid range.
struct GemmFigure {
  const char* name;
  const Figure& (GemmModel::*get)() const;
  Figure* (GemmModel::*mutate)();
  double low, high;
  // The smallest change that matters for a parameter that may be 0.
  double scale;
};

// Returns all required parameters in the order of the message. The last is
// sustained_rate, which short measurements do not show.
const std::vector<GemmFigure>& GemmFigures();

// Returns the optional rates of unaligned GEMMs: rows that are multiples of 8,
// 4 and 2 bytes.
const std::vector<GemmFigure>& AlignmentFigures();

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_GEMM_MODEL_H_
