// SPDX-License-Identifier: Apache-2.0
// A measured profile that no GPU has. Its values are made up so that tests know
// the expected results.
#ifndef WEIR_TESTS_TOY_PROFILE_H_
#define WEIR_TESTS_TOY_PROFILE_H_

#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir {

// Returns the work for which the stages below were "measured": gpt2 with fused
// attention, as Megatron-LM runs it.
models::WorkSpec ToyWork(int microbatch_size, int sequence_length);

// Ratio of every kernel's measured seconds to the estimate of the GEMM model.
inline constexpr double kToyRatioOf1 = 1.1;  // microbatches of 1
inline constexpr double kToyRatioOf4 = 1.2;

// Returns a valid profile with the model parameters of an A100 but its own
// sources. It has the kernels of gpt2 with microbatches of 1 and 4, sequences
// of 1024 and bf16, each once; stages, memory, links, provenance, the parts of
// reserved_bytes, kernel gaps of 1 us, and slowdowns of 1.05 and 1.2.
DeviceProfile ToyProfile();

// Returns a measurement of one kernel with `seconds` as its median.
MeasuredKernel Measure(const models::Kernel& kernel, double seconds);

// Returns the quantiles of 100 runs that all took about `seconds`.
Quantiles QuantilesAround(double seconds);

}  // namespace weir

#endif  // WEIR_TESTS_TOY_PROFILE_H_
