// SPDX-License-Identifier: Apache-2.0
// The slowest of several GPUs of one kind. GPUs of one kind differ in speed,
// because the voltage that a chip needs and its cooling decide which clock its
// power limit allows. Sinha et al., "Not All GPUs Are Created Equal", SC 2022,
// measured the spread on five clusters.
#ifndef WEIR_CALIBRATE_PRICING_SLOWEST_GPU_H_
#define WEIR_CALIBRATE_PRICING_SLOWEST_GPU_H_

namespace weir::calibrate {

// Returns the expected maximum of `count` independent standard normal
// variables: 0 for one, 1 / sqrt(pi) for two. All GPUs of a synchronous step
// wait for the slowest, whose GEMMs and attention take 1 + speed_spread x
// ExpectedMaximum(number of GPUs) times as long as on the median GPU. Requires:
// count >= 1.
double ExpectedMaximum(int count);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_SLOWEST_GPU_H_
