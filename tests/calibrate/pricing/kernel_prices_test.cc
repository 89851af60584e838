// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/kernel_prices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "models/model.h"
#include "tests/toy_profile.h"

namespace weir::calibrate::kernel_prices_test {

using Basis = KernelPrice::Basis;

const DeviceProfile& Figures() {
  static const auto& figures = *[] {
    auto* profile = new DeviceProfile(*LoadDeviceProfile("a100-sxm-80gb"));
    profile->clear_training_slowdown();
    return profile;
  }();
  return figures;
}

double Peak() { return *PeakFlops(Figures(), "bf16"); }

double Formula(const models::Kernel& kernel) {
  return KernelSeconds(Figures(), Peak(), kernel);
}

// A kernel measured at `ratio` times the model's estimate.
struct Row {
  models::Kernel kernel;
  double ratio = 1;
};
KernelPrice PriceOf(const std::vector<Row>& rows,
                    const models::Kernel& kernel) {
  DeviceProfile profile = Figures();
  for (const auto& [measured, ratio] : rows) {
    *profile.add_kernels() = weir::Measure(measured, ratio * Formula(measured));
  }
  return KernelPrices(profile, "bf16").Price(profile, Peak(), kernel);
}

models::Kernel MakeGemm(double m, double n = 4096, double k = 1024) {
  return models::GemmKernel(1, m, n, k, 2, models::KernelPart::kProjectionGemm);
}

models::Kernel Attention(double s, double gemms = 2) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.part = models::KernelPart::kAttentionCore;
  kernel.batch = 16;
  kernel.m = kernel.n = s;
  kernel.k = 64;
  kernel.num_gemms = static_cast<int>(gemms);
  kernel.flops = 2 * gemms * 16 * s * s * 64;
  kernel.performed_flops = kernel.flops / 2;
  kernel.bytes = 8.0 * 16 * s * 64;
  return kernel;
}

TEST(KernelPricesTest, AProfileWithoutKernelsIsItsFigures) {
  const KernelPrices prices(Figures(), "bf16");
  EXPECT_TRUE(prices.empty());
  const KernelPrice price = prices.Price(Figures(), Peak(), MakeGemm(1000));
  EXPECT_EQ(price.seconds, Formula(MakeGemm(1000)));
  EXPECT_EQ(price.basis, Basis::kFigures);
}

TEST(KernelPricesTest, TheExactShapeIsTheMedian) {
  const KernelPrice price = PriceOf({{MakeGemm(1024), 1.3}}, MakeGemm(1024));
  EXPECT_DOUBLE_EQ(price.seconds, 1.3 * Formula(MakeGemm(1024)));
  EXPECT_EQ(price.basis, Basis::kMeasured);
  EXPECT_NEAR(price.relative_error, std::hypot(0.02, 0.002 / 1.96), 1e-6);
}

TEST(KernelPricesTest, BetweenTwoLengthsEfficiencyIsLogLinear) {
  const std::vector<Row> rows = {{MakeGemm(1024), 1.3}, {MakeGemm(4096), 0.9}};
  // At the middle of the logarithms, it is the geometric mean.
  const KernelPrice middle = PriceOf(rows, MakeGemm(2048));
  EXPECT_NEAR(middle.seconds, std::sqrt(1.3 * 0.9) * Formula(MakeGemm(2048)),
              1e-12 * middle.seconds);
  EXPECT_EQ(middle.basis, Basis::kInterpolated);
  EXPECT_DOUBLE_EQ(middle.distance, 1);
  const double part = std::log(1.5) / std::log(4.0);
  const KernelPrice third = PriceOf(rows, MakeGemm(1536));
  EXPECT_NEAR(
      third.seconds,
      std::pow(1.3, 1 - part) * std::pow(0.9, part) * Formula(MakeGemm(1536)),
      1e-12 * third.seconds);
}

// Measured kernels do not say how their rows are aligned: the measured ratio
// holds for the alignment of the kernel that is priced.
TEST(KernelPricesTest, AlignmentCountsOnBothSidesOfTheRatio) {
  DeviceProfile profile = Figures();
  Figure* rate = profile.mutable_gemm()->mutable_rate_aligned_to_4_bytes();
  rate->set_value(0.5);
  for (const double m : {1024.0, 4096.0}) {
    models::Kernel measured = MakeGemm(m);
    measured.row_alignment = 2;
    *profile.add_kernels() =
        weir::Measure(measured, 1.2 * KernelSeconds(profile, Peak(), measured));
  }
  models::Kernel kernel = MakeGemm(2048);
  kernel.row_alignment = 2;
  const double formula = KernelSeconds(profile, Peak(), kernel);
  EXPECT_GT(formula, 1.2 * Formula(MakeGemm(2048)));
  EXPECT_NEAR(
      KernelPrices(profile, "bf16").Price(profile, Peak(), kernel).seconds,
      1.2 * formula, 1e-12);
}

TEST(KernelPricesTest, NeverBeyondWhatWasMeasured) {
  const std::vector<Row> rows = {{MakeGemm(1024), 1.3}, {MakeGemm(4096), 0.9}};
  for (double m : {1023.0, 4097.0, 8192.0}) {
    const KernelPrice price = PriceOf(rows, MakeGemm(m));
    EXPECT_EQ(price.seconds, Formula(MakeGemm(m)));
    EXPECT_EQ(price.basis, Basis::kFigures);
    EXPECT_TRUE(price.outside);
  }
  const KernelPrice other = PriceOf(rows, MakeGemm(2048, 4096, 2048));
  EXPECT_EQ(other.basis, Basis::kFigures);
  EXPECT_FALSE(other.outside);  // never measured at all
}

TEST(KernelPricesTest, WeightGradientsGrowAlongK) {
  const std::vector<Row> rows = {{MakeGemm(1024, 4096, 512), 1.2},
                                 {MakeGemm(1024, 4096, 2048), 1.2}};
  const KernelPrice price = PriceOf(rows, MakeGemm(1024, 4096, 1024));
  EXPECT_EQ(price.basis, Basis::kInterpolated);
  EXPECT_NEAR(price.seconds, 1.2 * Formula(MakeGemm(1024, 4096, 1024)),
              1e-12 * price.seconds);
}

TEST(KernelPricesTest, GemmsThatAddToTheirResultAreAnotherKind) {
  models::Kernel adds = MakeGemm(1024);
  adds.bytes += 6.0 * adds.m * adds.n;
  const std::vector<Row> rows = {{MakeGemm(1024), 1}, {adds, 2}};
  EXPECT_DOUBLE_EQ(PriceOf(rows, MakeGemm(1024)).seconds,
                   Formula(MakeGemm(1024)));
  EXPECT_DOUBLE_EQ(PriceOf(rows, adds).seconds, 2 * Formula(adds));
  // If only one kind is measured, the other has the same ratio to its formula
  // and counts as interpolated.
  const KernelPrice other = PriceOf({{adds, 2}}, MakeGemm(1024));
  EXPECT_DOUBLE_EQ(other.seconds, 2 * Formula(MakeGemm(1024)));
  EXPECT_EQ(other.basis, Basis::kInterpolated);
  EXPECT_EQ(other.distance, 1);
}

TEST(KernelPricesTest, MeasurementsOfOneShapeAreAveraged) {
  const KernelPrice price =
      PriceOf({{MakeGemm(1024), 1}, {MakeGemm(1024), 2}}, MakeGemm(1024));
  EXPECT_NEAR(price.seconds, 1.5 * Formula(MakeGemm(1024)),
              1e-12 * price.seconds);
}

TEST(KernelPricesTest, AttentionGrowsAlongTheSequence) {
  const std::vector<Row> rows = {{Attention(1024), 1.1},
                                 {Attention(4096), 1.1}};
  const KernelPrice price = PriceOf(rows, Attention(2048));
  EXPECT_EQ(price.basis, Basis::kInterpolated);
  EXPECT_NEAR(price.seconds, 1.1 * Formula(Attention(2048)),
              1e-12 * price.seconds);
  EXPECT_EQ(PriceOf(rows, Attention(2048, 5)).basis, Basis::kFigures);
  models::Kernel full = Attention(2048);
  full.performed_flops = full.flops;
  EXPECT_EQ(PriceOf(rows, full).basis, Basis::kFigures);
}

TEST(KernelPricesTest, KernelsThatMoveBytesAreMeasuredOrNot) {
  const models::Kernel norm =
      models::MemoryKernel(1e6, models::KernelPart::kNorm);
  const std::vector<Row> rows = {{norm, 1.5}};
  EXPECT_DOUBLE_EQ(PriceOf(rows, norm).seconds, 1.5 * Formula(norm));
  EXPECT_EQ(PriceOf(rows, norm).basis, Basis::kMeasured);
  for (const models::Kernel& other :
       {models::MemoryKernel(1e6, models::KernelPart::kSoftmax),
        models::MemoryKernel(2e6, models::KernelPart::kNorm)}) {
    EXPECT_EQ(PriceOf(rows, other).seconds, Formula(other));
    EXPECT_EQ(PriceOf(rows, other).basis, Basis::kFigures);
  }
}

TEST(KernelPricesTest, AnotherNumberFormatWasNotMeasured) {
  DeviceProfile profile = Figures();
  *profile.add_kernels() = weir::Measure(MakeGemm(1024), 1);
  EXPECT_TRUE(KernelPrices(profile, "fp16").empty());
}

TEST(KernelPricesTest, AFigureThatMovesHardlyMovesWhatLiesBetween) {
  DeviceProfile profile = Figures();
  const auto large = [](double m) { return MakeGemm(m, 8192, 8192); };
  for (double m : {4096.0, 16384.0}) {
    *profile.add_kernels() = weir::Measure(large(m), Formula(large(m)));
  }
  const KernelPrices prices(profile, "bf16");
  const double before = prices.Price(profile, Peak(), large(8192)).seconds;
  Figure* rate = profile.mutable_gemm()->mutable_matrix_rate();
  rate->set_value(0.9 * rate->value());
  const double after = prices.Price(profile, Peak(), large(8192)).seconds;
  // A tenth less of the rate is a tenth more of the formula. Interpolated
  // values change only as far as the shape of the formula changes.
  EXPECT_GT(KernelSeconds(profile, Peak(), large(8192)), 1.05 * before);
  EXPECT_LT(std::abs(after - before), 0.02 * before);
}

// Checks that every kernel that was measured for the toy is found.
TEST(KernelPricesTest, TheToysKernelsAreFound) {
  const DeviceProfile toy = ToyProfile();
  const KernelPrices prices(toy, "bf16");
  for (const models::LayerWork& layer :
       models::LayersOf(*models::LoadModel("gpt2"), ToyWork(1, 1024))) {
    for (const models::Kernel& kernel : layer.forward) {
      const KernelPrice price = prices.Price(toy, Peak(), kernel);
      EXPECT_EQ(price.basis, Basis::kMeasured) << models::Name(kernel.part);
      EXPECT_NEAR(price.seconds,
                  kToyRatioOf1 * KernelSeconds(toy, Peak(), kernel),
                  1e-12 * price.seconds);
    }
  }
}

// A price between two measured shapes is throttled if either measurement was.
TEST(KernelPricesTest, BetweenTwoShapesEitherMayHaveThrottled) {
  for (const bool low : {false, true}) {
    for (const bool high : {false, true}) {
      DeviceProfile profile = Figures();
      for (const auto& [m, throttled] :
           {std::pair(1024.0, low), std::pair(4096.0, high)}) {
        MeasuredKernel& kernel = *profile.add_kernels();
        kernel = weir::Measure(MakeGemm(m), Formula(MakeGemm(m)));
        kernel.set_throttled(throttled);
      }
      const KernelPrices prices(profile, "bf16");
      const auto throttled = [&](double m) {
        return prices.Price(profile, Peak(), MakeGemm(m)).throttled;
      };
      EXPECT_EQ(throttled(1024), low);
      EXPECT_EQ(throttled(2048), low || high);
      EXPECT_EQ(throttled(4096), high);
      EXPECT_FALSE(throttled(8192));  // beyond the measured shapes
    }
  }
}

}  // namespace weir::calibrate::kernel_prices_test
