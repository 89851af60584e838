// SPDX-License-Identifier: Apache-2.0
// Formats quantities for display. Code and files use seconds, bytes and FLOP.
#ifndef WEIR_BASE_UNITS_H_
#define WEIR_BASE_UNITS_H_

#include <string>

namespace weir {

std::string FormatSeconds(double seconds);  // "1.23 s", "45.6 ms", "7.80 us"
std::string FormatBytes(double bytes);      // "1.50 GiB", "12.0 MiB", "17 B"
std::string FormatCount(double count);      // "2.21 B", "350 M", "1.50 k", "7"
std::string FormatFlops(double flops);      // "1.93 TFLOP", "17.7 GFLOP"
std::string FormatPercent(double ratio);    // 0.123 -> "12.3 %"

}  // namespace weir

#endif  // WEIR_BASE_UNITS_H_
