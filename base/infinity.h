// SPDX-License-Identifier: Apache-2.0
// The time of what never happens and the cost of what is impossible.
#ifndef WEIR_BASE_INFINITY_H_
#define WEIR_BASE_INFINITY_H_

#include <limits>

namespace weir {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace weir

#endif  // WEIR_BASE_INFINITY_H_
