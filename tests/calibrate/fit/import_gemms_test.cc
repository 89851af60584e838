// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_gemms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "calibrate/fit/import.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::import_gemms_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string ErrorOf(absl::string_view text) {
  return std::string(
      ImportMeasurements("x.csv", text, *LoadDeviceProfile("t4"), "s")
          .status()
          .message());
}

TEST(ImportGemmsTest, ReadsEveryUnitOfTime) {
  for (const char* text :
       {"m,n,k,latency_ms\n8,16,32,2\n", "k,n,m,latency_us\n32,16,8,2000\n",
        "m,n,k,seconds,note\n8,16,32,0.002,\"a, b\"\n"}) {
    const auto gemms = ReadGemms("x.csv", text);
    ASSERT_TRUE(gemms.ok()) << gemms.status();
    const GemmSample& sample = gemms->samples[0];
    EXPECT_NEAR(sample.seconds, 2e-3, 1e-12);
    EXPECT_EQ(sample.shape.m, 8);
    EXPECT_EQ(sample.shape.n, 16);
    EXPECT_EQ(sample.shape.k, 32);
    EXPECT_EQ(sample.shape.bytes, 2 * (8 * 32 + 32 * 16 + 8 * 16));
    EXPECT_THAT(gemms->lines, ElementsAre(2));
  }
}

TEST(ImportGemmsTest, BatchAndNumberFormatCount) {
  const auto gemms =
      ReadGemms("x", "batch,m,n,k,dtype,seconds\n3,8,8,8,fp32,1\n");
  ASSERT_TRUE(gemms.ok()) << gemms.status();
  EXPECT_EQ(gemms->format, "fp32");
  EXPECT_EQ(gemms->samples[0].shape.batch, 3);
  EXPECT_EQ(gemms->samples[0].shape.bytes, 3 * 4 * 192);
}

TEST(ImportGemmsTest, TheFormatsColumnMayBeCalledType) {
  const auto gemms = ReadGemms("x", "m,n,k,type,seconds\n8,8,8,fp32,1\n");
  ASSERT_TRUE(gemms.ok()) << gemms.status();
  EXPECT_EQ(gemms->format, "fp32");
}

TEST(ImportGemmsTest, RefusesUnknownColumns) {
  EXPECT_EQ(ErrorOf("m,n,k,format,seconds,note_a\n8,8,8,fp8,1,x\n"),
            "x.csv:1: format is an unknown column, expected one of m, n, k, "
            "batch, dtype, type, latency_ms, latency_us, seconds or a name "
            "that begins with note; did you mean dtype?");
  EXPECT_THAT(ErrorOf("m,n,k,bacth,seconds\n8,8,8,2,1\n"),
              HasSubstr("bacth is an unknown column"));
  EXPECT_THAT(ErrorOf("m,n,k,bacth,seconds\n8,8,8,2,1\n"),
              HasSubstr("; did you mean batch?"));
  EXPECT_THAT(ErrorOf("kernel,bytes,launch,seconds\ncopy,1e9,1,1\n"),
              HasSubstr("x.csv:1: launch is an unknown column"));
  EXPECT_THAT(ErrorOf("pass,batch,heads,sequence_length,head_size,causal,"
                      "format,seconds\nforward,1,8,1024,64,yes,fp16,1\n"),
              HasSubstr("x.csv:1: format is an unknown column"));
}

// The T4 has 65 TFLOP/s in fp16.
TEST(ImportGemmsTest, WarnsOfRowsAboveThePeak) {
  const std::string rows =
      "m,n,k,seconds\n4096,4096,4096,4e-3\n4096,8192,4096,8e-3\n"
      "8192,8192,4096,16e-3\n";
  const auto report = [](const std::string& text) {
    const auto import =
        ImportMeasurements("x.csv", text, *LoadDeviceProfile("t4"), "s");
    EXPECT_TRUE(import.ok()) << import.status();
    return import.ok() ? import->report : "";
  };
  EXPECT_THAT(report(rows), Not(HasSubstr("warning")));
  // 2 x 4096^3 / 2 ms = 68.72 TFLOP/s.
  EXPECT_THAT(
      report(rows + "4096,4096,4096,2e-3\n"),
      HasSubstr("\nwarning: 1 of 4 rows are faster than the peak of 6.5e+13 "
                "FLOP/s in 16 bits: 6.872e+13 FLOP/s in line 5, "));
}

// Returns `num_shapes` rows, each with its own (n, k) = (128, 128 i).
std::string Gemms(int num_shapes, double seconds) {
  std::string text = "m,n,k,seconds\n";
  for (int i = 1; i <= num_shapes; ++i) {
    absl::StrAppend(&text, "4096,128,", 128 * i, ",", seconds * (1 + i), "\n");
  }
  return text;
}

TEST(ImportGemmsTest, ElevenShapesAreLeftOutAFoldAtATime) {
  const DeviceProfile start = *LoadDeviceProfile("t4");
  const auto import = ImportMeasurements("x.csv", Gemms(11, 1e-5), start, "s");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_THAT(import->report, HasSubstr("cross-validation (10 folds by n, k)"));
}

TEST(ImportGemmsTest, AFitThatNothingChecksKeepsTheResidual) {
  const DeviceProfile start = *LoadDeviceProfile("h100-sxm");
  const auto import = ImportMeasurements("x.csv", Gemms(1, 1e-5), start, "s");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->profile.gemm_residual().value(),
            start.gemm_residual().value());
  EXPECT_THAT(import->report,
              HasSubstr("warning: all rows have the same (n, k)"));
}

TEST(ImportGemmsTest, TimesOfAnotherDeviceAreRefused) {
  EXPECT_THAT(
      ErrorOf(Gemms(20, 1e-9)),
      AllOf(HasSubstr("x.csv: no parameters can explain these times: fit:"),
            HasSubstr("x.csv: was not measured on T4")));
}

TEST(ImportGemmsTest, FiguresBecomeFittedAndSayFromWhat) {
  const DeviceProfile start = *LoadDeviceProfile("t4");
  std::string text = "m,n,k,latency_us\n";
  for (double m : {256, 1024, 4096}) {
    for (double n : {128, 1024, 4096}) {
      for (double k : {128, 1024, 4096}) {
        absl::StrAppend(&text, m, ",", n, ",", k, ",",
                        1e6 * GemmSeconds(start, *PeakFlops(start, "fp16"),
                                          MakeGemmSize(m, n, k), Clock::kBurst),
                        "\n");
      }
    }
  }
  const auto import = ImportMeasurements("x.csv", text, start, "my cluster");
  ASSERT_TRUE(import.ok()) << import.status();
  const Figure& rate = import->profile.gemm().matrix_rate();
  EXPECT_EQ(rate.kind(), Figure::FITTED);
  EXPECT_THAT(rate.source(), HasSubstr("my cluster: 27 GEMMs, mean |error|"));
  EXPECT_NEAR(rate.value(), start.gemm().matrix_rate().value(), 1e-2);
  EXPECT_EQ(import->profile.gemm().sustained_rate().kind(), Figure::ASSUMED);
  const Coverage& coverage = import->profile.coverage();
  EXPECT_EQ(coverage.gemm_m().low(), 256);
  EXPECT_EQ(coverage.gemm_k().high(), 4096);
  EXPECT_FALSE(coverage.batched_gemms());
  EXPECT_EQ(import->profile.gemm_residual().kind(), Figure::FITTED);
  EXPECT_LT(import->profile.gemm_residual().value(), 0.01);
  EXPECT_THAT(import->report,
              AllOf(HasSubstr("fit: mean |error| 0.0 %"),
                    HasSubstr("cross-validation (10 folds by n, k): mean")));
}

TEST(ImportGemmsTest, ErrorsNameLineColumnFoundAndExpected) {
  EXPECT_EQ(ErrorOf("m,n,k,latency_ms\n8,8,8,1\n8,-1,8,1\n8,x,8,1\n"),
            "x.csv:3: n is \"-1\", expected 1 to 1e+09\n"
            "x.csv:4: n is \"x\", expected a number");
  EXPECT_THAT(ErrorOf("m,n,k,latency_ms\n8,8,8,0\n"),
              HasSubstr("x.csv:2: latency_ms is \"0\", expected"));
  EXPECT_THAT(ErrorOf("m,n,k,time\n8,8,8,1\n"),
              HasSubstr("x.csv:1: has no column with times, expected one of "
                        "latency_ms, latency_us, seconds"));
  EXPECT_THAT(ErrorOf("m,n,k,seconds\n"), HasSubstr("x.csv:2: has no rows"));
  EXPECT_THAT(ErrorOf("m,n,k,seconds\n8,8,8\n"),
              HasSubstr("x.csv:2: has 3 fields, expected 4"));
  EXPECT_THAT(
      ErrorOf("m,n,k,seconds,dtype\n8,8,8,1,fp16\n8,8,8,1,fp32\n"),
      HasSubstr("x.csv:3: dtype is \"fp32\", expected \"fp16\" as in the"));
  EXPECT_THAT(ErrorOf("m,n,k,seconds,dtype\n8,8,8,1,bf16\n"),
              HasSubstr("has no rate for number format \"bf16\""));
}

TEST(ImportGemmsTest, UnknownContentListsTheFormats) {
  EXPECT_THAT(ErrorOf("hello\n"),
              AllOf(HasSubstr("x.csv:1: is in an unknown format"),
                    HasSubstr("a CSV with the columns m, n, k")));
}

}  // namespace weir::calibrate::import_gemms_test
