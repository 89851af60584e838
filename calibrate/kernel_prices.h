// SPDX-License-Identifier: Apache-2.0
// Kernels that a profile has measured, before its figures.
#ifndef WEIR_CALIBRATE_KERNEL_PRICES_H_
#define WEIR_CALIBRATE_KERNEL_PRICES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir {

// What a kernel costs and how that is known.
struct KernelPrice {
  enum class Basis : uint8_t { kFigures, kInterpolated, kMeasured };
  double seconds = 0;
  Basis basis = Basis::kFigures;
  // Of what was measured: one standard deviation of the logarithm.
  double relative_error = 0;
  // Between two measurements: 0 at either of them, 1 in the middle, or where
  // the shape reads and writes otherwise.
  double distance = 0;
  // The same product or attention was measured, but only at other sizes.
  bool outside = false;
  bool throttled = false;
};

// An index of DeviceProfile::kernels, made once and asked often. A kernel is
//   * the median of its shape where that was measured;
//   * between two sizes of the same product (m, or k as products of weight
//     gradients have it) or attention (sequence length) the figures' price
//     times measured / figures, of which the logarithm is linear in that of the
//     size;
//   * else what the figures say (KernelSeconds); never beyond a last size.
// A kernel that only moves bytes is measured with its part and bytes, or not.
// Among products of one shape those count that read and write alike; where only
// others were measured, their measured / figures, as between two sizes.
class KernelPrices {
 public:
  KernelPrices() = default;
  // Of products and attention in one number format ("bf16").
  // REQUIRES: the profile is valid.
  KernelPrices(const DeviceProfile& profile, absl::string_view format);

  bool empty() const { return lines_.empty() && memory_.empty(); }

  // `profile` is the one that was indexed, or has other figures.
  // REQUIRES: peak_flops came from PeakFlops.
  KernelPrice Price(const DeviceProfile& profile, double peak_flops,
                    const Kernel& kernel) const;

 private:
  struct Point {
    double size = 0;
    Kernel kernel;  // what was measured
    double seconds = 0, relative_error = 0;
    bool throttled = false;
    int count = 1;  // measurements that it is the mean of
  };
  struct Line {
    double extra_bytes = 0;     // per element of the result
    std::vector<Point> points;  // ascending
  };
  // What stays the same along a line: what varies, and the rest of the shape.
  enum class Along : uint8_t { kM, kK, kSequence };
  using Key = std::pair<Along, std::array<double, 4>>;
  static Key KeyOf(Along along, const Kernel& kernel);
  static Point PointOf(const MeasuredKernel& measured);

  void AddPoint(Along along, double size, Point point);
  const Line* Find(Along along, const Kernel& kernel) const;
  static std::optional<KernelPrice> PriceOn(const Line& line, double size,
                                            const DeviceProfile& profile,
                                            double peak_flops,
                                            const Kernel& kernel);

  absl::flat_hash_map<Key, std::vector<Line>> lines_;
  // By part and whole bytes.
  absl::flat_hash_map<std::pair<KernelPart, int64_t>, Point> memory_;
};

// What was measured, as models/ says it.
Kernel ShapeOf(const MeasuredKernel& measured);

// The part of this name, if there is one.
std::optional<KernelPart> KernelPartOf(absl::string_view name);

}  // namespace weir

#endif  // WEIR_CALIBRATE_KERNEL_PRICES_H_
