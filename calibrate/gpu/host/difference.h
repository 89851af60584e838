// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_GPU_HOST_DIFFERENCE_H_
#define WEIR_CALIBRATE_GPU_HOST_DIFFERENCE_H_

#include <cmath>
#include <limits>

namespace weir::calibrate {

// Accumulates norm(got - expected) / norm(expected).
class Difference {
 public:
  void Add(double got, double expected) {
    difference_ += (got - expected) * (got - expected);
    expected_ += expected * expected;
  }
  double relative() const {
    if (std::isnan(difference_)) return std::numeric_limits<double>::infinity();
    if (difference_ == 0) return 0;
    return expected_ == 0 ? std::numeric_limits<double>::infinity()
                          : std::sqrt(difference_ / expected_);
  }

 private:
  double difference_ = 0, expected_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_DIFFERENCE_H_
