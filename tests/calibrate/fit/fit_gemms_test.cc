// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_gemms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/gemm_model.h"

namespace weir::calibrate::fit_gemms_test {

using testing::HasSubstr;

const std::vector<double> kSizes = {32,   64,   128,  256,   512,  1024,
                                    2048, 4096, 8192, 16384, 65536};

// Returns GEMMs of many sizes with the seconds that `model` predicts.
std::vector<GemmSample> Samples(const GemmMachine& machine,
                                const GemmModel& model,
                                Clock clock = Clock::kBurst) {
  std::vector<GemmSample> samples;
  for (double m : {512, 2048, 8192}) {
    for (double n : kSizes) {
      for (double k : kSizes) samples.push_back({MakeGemmSize(m, n, k), 0});
    }
  }
  const std::vector<double> seconds =
      PredictGemms(machine, model, samples, clock);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].seconds = seconds[i];
  return samples;
}

TEST(FitGemmsTest, PlantedFiguresComeBack) {
  const DeviceProfile profile = *LoadDeviceProfile("a100-sxm-80gb");
  const GemmMachine machine = *MachineOf(profile, "bf16");
  GemmModel planted = profile.gemm();
  planted.mutable_throttling()->set_value(0.1);
  planted.mutable_wave_quantization()->set_value(0.8);
  planted.mutable_cache_bytes()->set_value(3e7);
  GemmModel start = planted;
  int sign = 1;
  for (const GemmFigure& figure : GemmFigures()) {
    Figure* value = (start.*figure.mutate)();
    value->set_value(value->value() * (1 + 0.1 * sign));
    sign = -sign;
  }
  start.mutable_matrix_rate()->set_value(0.88);
  const auto fit =
      FitGemms(machine, start, Samples(machine, planted), "planted");
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(fit->errors.mean_absolute, 1e-3);
  for (const GemmFigure& figure : GemmFigures()) {
    const Figure& found = (fit->model.*figure.get)();
    if (std::string(figure.name) == "sustained_rate") {
      EXPECT_EQ(found.value(), start.sustained_rate().value());
      continue;
    }
    const double expected = (planted.*figure.get)().value();
    EXPECT_NEAR(found.value() / expected, 1, 0.05) << figure.name;
    EXPECT_EQ(found.kind(), Figure::FITTED);
    EXPECT_EQ(found.source(), "planted");
  }
}

TEST(FitGemmsTest, RatesOfUnalignedRowsAreUsedAndKept) {
  const DeviceProfile profile = *LoadDeviceProfile("a100-sxm-80gb");
  const GemmMachine machine = *MachineOf(profile, "bf16");
  std::vector<GemmSample> samples = Samples(machine, profile.gemm());
  samples.push_back({MakeGemmSize(8192, 51201, 8192), 0});
  samples.back().seconds =
      PredictGemms(machine, profile.gemm(), samples).back();
  const auto fit = FitGemms(machine, profile.gemm(), samples, "planted");
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(std::abs(fit->errors.worst), 1e-3);
  EXPECT_EQ(fit->model.rate_aligned_to_2_bytes().SerializeAsString(),
            profile.gemm().rate_aligned_to_2_bytes().SerializeAsString());
  EXPECT_GT(samples.back().seconds,
            3 * PredictGemms(machine, profile.gemm(),
                             {{MakeGemmSize(8192, 51200, 8192), 1}})[0]);
}

TEST(FitGemmsTest, SteadyMeasurementsMoveOnlyWhatTheyShow) {
  const DeviceProfile profile = *LoadDeviceProfile("h100-sxm");
  const GemmMachine machine = *MachineOf(profile, "bf16");
  GemmModel planted = profile.gemm();
  planted.mutable_wave_quantization()->set_value(0.6);
  planted.mutable_matrix_rate()->set_value(0.75);
  planted.mutable_launch_seconds()->set_value(3.5e-6);
  const std::vector<GemmSample> samples =
      Samples(machine, planted, Clock::kSustained);
  const auto fit =
      FitGemms(machine, profile.gemm(), samples, "planted", Clock::kSustained);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(fit->errors.mean_absolute, 1e-3);
  EXPECT_NEAR(fit->model.matrix_rate().value(), 0.75, 0.01);
  EXPECT_NEAR(fit->model.launch_seconds().value(), 3.5e-6, 5e-8);
  EXPECT_EQ(fit->model.matrix_rate().source(), "planted");
  for (const auto get : {&GemmModel::cache_bytes, &GemmModel::throttling,
                         &GemmModel::sustained_rate}) {
    EXPECT_EQ((fit->model.*get)().SerializeAsString(),
              (profile.gemm().*get)().SerializeAsString());
  }
}

TEST(FitGemmsTest, SameSamplesSameBytes) {
  const DeviceProfile profile = *LoadDeviceProfile("h200-sxm");
  const GemmMachine machine = *MachineOf(profile, "");
  std::vector<GemmSample> samples = Samples(machine, profile.gemm());
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].seconds *= 1 + 0.1 * std::sin(static_cast<double>(i));
  }
  const auto once = FitGemms(machine, profile.gemm(), samples, "x");
  const auto twice = FitGemms(machine, profile.gemm(), samples, "x");
  EXPECT_EQ(once->model.SerializeAsString(), twice->model.SerializeAsString());
}

TEST(FitGemmsTest, ALeftOutOutlierDoesNotReachItsPrediction) {
  const DeviceProfile profile = *LoadDeviceProfile("h100-sxm");
  const GemmMachine machine = *MachineOf(profile, "bf16");
  std::vector<GemmSample> samples = Samples(machine, profile.gemm());
  const double seconds = samples[100].seconds;
  samples[100].seconds *= 50;
  std::vector<int> groups(samples.size(), 0);
  groups[100] = 1;
  // Only the left-out sample is wrong, so the fit to the others is exact.
  const auto predicted =
      CrossValidateGemms(machine, profile.gemm(), samples, groups);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_NEAR((*predicted)[100] / seconds, 1, 1e-6);
}

TEST(FitGemmsTest, RefusesWhatCannotBeFitted) {
  const DeviceProfile profile = *LoadDeviceProfile("h100-sxm");
  const GemmMachine machine = *MachineOf(profile, "bf16");
  EXPECT_THAT(
      std::string(
          FitGemms(machine, profile.gemm(), {}, "x").status().message()),
      HasSubstr("no GEMM"));
  const std::vector<GemmSample> samples = {{MakeGemmSize(8, 8, 8), 1e-6},
                                           {MakeGemmSize(8, 8, 8), 0}};
  EXPECT_THAT(
      std::string(
          FitGemms(machine, profile.gemm(), samples, "x").status().message()),
      HasSubstr("GEMM 1 has"));
}

}  // namespace weir::calibrate::fit_gemms_test
