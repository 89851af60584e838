// SPDX-License-Identifier: Apache-2.0
// A measured profile that no GPU has: numbers made up so that tests know what
// must come out.
#ifndef WEIR_TESTS_TOY_PROFILE_H_
#define WEIR_TESTS_TOY_PROFILE_H_

#include "calibrate/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir {

// How the stages below were "measured": gpt2 with fused attention, as
// Megatron-LM runs it.
WorkSpec ToyWork(int microbatch_size, int sequence_length);

// What every kernel took, over what the figures say.
inline constexpr double kToyRatioOf1 = 1.1;  // microbatches of 1
inline constexpr double kToyRatioOf4 = 1.2;

// Valid. Has the figures of an A100 with sources of its own; the kernels of
// gpt2 with microbatches of 1 and 4, sequences of 1024 and bf16, each once;
// stages, memory, links, provenance, parts of reserved_bytes, kernel gaps of
// 1 us, slowdowns of 1.05 and 1.2.
DeviceProfile ToyProfile();

// A measurement of one kernel: the median, and what belongs to it.
MeasuredKernel Measure(const Kernel& kernel, double seconds);

// Of `samples` runs that all took about this long.
Quantiles QuantilesAround(double seconds);

}  // namespace weir

#endif  // WEIR_TESTS_TOY_PROFILE_H_
