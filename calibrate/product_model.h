// SPDX-License-Identifier: Apache-2.0
// The figures of a ProductModel, by name.
#ifndef WEIR_CALIBRATE_PRODUCT_MODEL_H_
#define WEIR_CALIBRATE_PRODUCT_MODEL_H_

#include <vector>

#include "calibrate/product_model.pb.h"

namespace weir {

// One figure of the message and what it may be.
struct ProductFigure {
  const char* name;
  const Figure& (ProductModel::*get)() const;
  Figure* (ProductModel::*mutate)();
  double low, high;
  double scale;  // of a figure that may be 0: a change by this much matters
};

// All of them, in the order of the message; sustained_rate, which short
// measurements do not show, is the last.
const std::vector<ProductFigure>& ProductFigures();

}  // namespace weir

#endif  // WEIR_CALIBRATE_PRODUCT_MODEL_H_
