// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <cmath>
#include <iterator>

#include "absl/strings/str_format.h"

namespace weir {
namespace {

struct Unit {
  double size;
  const char* name;
};

// Formats a value with three significant digits in the largest unit in which it
// is at least 1.
template <int n>
std::string Format(double value, const Unit (&units)[n]) {
  const Unit* unit = &units[n - 1];
  for (const Unit& candidate : units) {
    if (std::fabs(value) >= candidate.size * 0.9995) {
      unit = &candidate;
      break;
    }
  }
  const double scaled = value / unit->size;
  const double magnitude = std::fabs(scaled);
  const int digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  const bool whole = scaled == std::floor(scaled) && unit->size == 1;
  return absl::StrFormat("%.*f%s%s", whole ? 0 : digits, scaled,
                         *unit->name == 0 ? "" : " ", unit->name);
}

}  // namespace

std::string FormatSeconds(double seconds) {
  static constexpr Unit kUnits[] = {
      {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  return seconds == 0 ? "0 s" : Format(seconds, kUnits);
}

std::string FormatBytes(double bytes) {
  static constexpr Unit kUnits[] = {{1099511627776.0, "TiB"},
                                    {1073741824.0, "GiB"},
                                    {1048576.0, "MiB"},
                                    {1024.0, "KiB"},
                                    {1, "B"}};
  return Format(bytes, kUnits);
}

std::string FormatCount(double count) {
  static constexpr Unit kUnits[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "B"},
                                    {1e6, "M"},  {1e3, "k"},  {1, ""}};
  return Format(count, kUnits);
}

std::string FormatFlops(double flops) {
  static constexpr Unit kUnits[] = {
      {1e18, "EFLOP"}, {1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"},
      {1e6, "MFLOP"},  {1e3, "kFLOP"},  {1, "FLOP"}};
  return Format(flops, kUnits);
}

std::string FormatPercent(double ratio) {
  return absl::StrFormat("%.1f %%", 100 * ratio);
}

}  // namespace weir
