// SPDX-License-Identifier: Apache-2.0
// Kernel times from a profile's measurements, otherwise from its parameters.
#ifndef WEIR_CALIBRATE_PRICING_KERNEL_PRICES_H_
#define WEIR_CALIBRATE_PRICING_KERNEL_PRICES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

// Predicted time of a kernel and the basis of the prediction.
struct KernelPrice {
  enum class Basis : uint8_t { kFigures, kInterpolated, kMeasured };
  double seconds = 0;
  Basis basis = Basis::kFigures;
  // Standard deviation of the logarithm of the measured seconds.
  double relative_error = 0;
  // Distance from the measurements of an interpolated price: 0 at a
  // measurement, 1 in the middle of two or if the shape moves a different
  // number of bytes.
  double distance = 0;
  // The same GEMM or attention was measured, but only at other sizes.
  bool outside = false;
  bool throttled = false;
};

// An index of DeviceProfile::kernels for repeated lookups. The time of a kernel
// is
// - the measured median, if its shape was measured;
// - between two sizes of the same GEMM (m, or k for weight gradients) or
//   attention (sequence length), the prediction from the model parameters
//   scaled by the ratio of measured to predicted time; the logarithm of the
//   ratio is interpolated linearly in the logarithm of the size;
// - otherwise the prediction from the model parameters (KernelSeconds).
//   Measurements are never extrapolated.
//
// A kernel that only moves bytes is looked up by its part and bytes. GEMMs of
// one shape are distinguished by the bytes that they move; if only other
// variants were measured, their ratio of measured to predicted time is applied.
class KernelPrices {
 public:
  KernelPrices() = default;
  // Indexes the GEMMs and attention of one number format ("bf16"). Their times
  // are those of the slowest of `num_gpus` GPUs (slowest_gpu.h) in a training
  // step, except for profiles of replays. Requires: the profile is valid.
  KernelPrices(const DeviceProfile& profile, absl::string_view format,
               int num_gpus = 1);

  bool empty() const { return lines_.empty() && memory_.empty(); }

  // `profile` is the indexed profile or a copy with other model parameters.
  // Requires: peak_flops came from PeakFlops.
  KernelPrice Price(const DeviceProfile& profile, double peak_flops,
                    const models::Kernel& kernel) const;

 private:
  struct Point {
    double size = 0;
    models::Kernel kernel;  // the measured kernel
    double seconds = 0, relative_error = 0;
    bool throttled = false;
    int count = 1;  // measurements averaged
  };
  struct Line {
    double extra_bytes = 0;     // per element of the result
    std::vector<Point> points;  // ascending
  };
  // The dimension that varies along a line. A key adds the rest of the shape.
  enum class Along : uint8_t { kM, kK, kSequence };
  using Key = std::pair<Along, std::array<double, 4>>;
  static Key KeyOf(Along along, const models::Kernel& kernel);
  static Point PointOf(const MeasuredKernel& measured);

  // Returns the price on the median GPU.
  KernelPrice MedianPrice(const DeviceProfile& profile, double peak_flops,
                          const models::Kernel& kernel) const;
  void AddPoint(Along along, double size, Point point);
  const Line* Find(Along along, const models::Kernel& kernel) const;
  static std::optional<KernelPrice> PriceOn(const Line& line, double size,
                                            const DeviceProfile& profile,
                                            double peak_flops,
                                            const models::Kernel& kernel);

  double expected_maximum_ = 0;  // of num_gpus standard normal variables
  absl::flat_hash_map<Key, std::vector<Line>> lines_;
  // By part and rounded bytes.
  absl::flat_hash_map<std::pair<models::KernelPart, int64_t>, Point> memory_;
};

// Converts a measured kernel to a kernel of models/.
models::Kernel ShapeOf(const MeasuredKernel& measured);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_KERNEL_PRICES_H_
