// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/profile_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"

namespace weir::calibrate::profile_base_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

DeviceProfile Parse(absl::string_view text) {
  DeviceProfile profile;
  const absl::Status parsed = ParseTextProto("x", text, &profile);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return profile;
}

// Writes a file into a folder of this test and returns its path.
std::string Write(const std::string& name, absl::string_view text) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "profile_base" / name;
  std::filesystem::create_directories(path.parent_path());
  EXPECT_TRUE(WriteFile(path.string(), std::string(text)).ok());
  return path.string();
}

std::string ErrorOf(const std::string& name_or_path) {
  const auto profile = LoadDeviceProfile(name_or_path);
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(profile.status().message());
}

// Returns the paths of the figures in which two profiles differ.
std::vector<std::string> DifferentFigures(DeviceProfile a, DeviceProfile b) {
  std::map<std::string, std::string> of_a, of_b;
  for (const NamedFigure& figure : FiguresOf(&a)) {
    of_a[figure.path] = PrintTextProto(*figure.figure);
  }
  for (const NamedFigure& figure : FiguresOf(&b)) {
    of_b[figure.path] = PrintTextProto(*figure.figure);
  }
  EXPECT_EQ(of_a.size(), of_b.size());
  std::vector<std::string> paths;
  for (const auto& [path, text] : of_a) {
    if (of_b[path] != text) paths.push_back(path);
  }
  return paths;
}

// What was measured on one kind of GPU is an assumption about another.
TEST(ProfileBaseTest, FiguresOfAnotherKindOfGpuAreAssumptions) {
  DeviceProfile base = Parse(
      "name: 'A' num_step_sources: 3"
      " gemm { matrix_rate { value: 0.8 kind: FITTED source: 's' }"
      "        sustained_rate { value: 0.9 kind: FITTED source: 's' } }"
      " kernel_seconds { value: 3 kind: MEASURED source: 't'"
      "                  relative_error: 0.4 }"
      " training_slowdown { value: 2 kind: FITTED source: 'u'"
      "                     relative_error: 0 }"
      " memory_bytes { value: 1 kind: DATASHEET source: 'v' }"
      " reserved_bytes { value: 1 kind: ASSUMED source: 'w' }");
  const DeviceProfile variant =
      Inherit(base, Parse("name: 'B' inherited_spread: 0.2"
                          " num_step_sources: 0"
                          " gemm { sustained_rate { value: 1 kind: FITTED"
                          "                         source: 'x' } }"));
  EXPECT_EQ(
      PrintTextProto(variant),
      PrintTextProto(Parse(
          "name: 'B' num_step_sources: 0 gemms_of: 'A'"
          " gemm { matrix_rate { value: 0.8 kind: ASSUMED"
          "                      source: 'that of the A: s'"
          "                      relative_error: 0.2 }"
          "        sustained_rate { value: 1 kind: FITTED source: 'x' } }"
          " kernel_seconds { value: 3 kind: ASSUMED"
          "                  source: 'that of the A: t' relative_error: 0.4 }"
          " training_slowdown { value: 2 kind: ASSUMED"
          "                     source: 'that of the A: u' relative_error: 0 }"
          " memory_bytes { value: 1 kind: DATASHEET source: 'v' }"
          " reserved_bytes { value: 1 kind: ASSUMED source: 'w' }")));
  // Its own GEMMs, and a variant of the same kind.
  EXPECT_EQ(Inherit(base, Parse("inherited_spread: 0.2 gemm { matrix_rate { "
                                "value: 0.7 kind: FITTED source: 'y' } }"))
                .gemms_of(),
            "");
  EXPECT_EQ(Inherit(base, Parse("name: 'C'")).gemms_of(), "");
  // The third in a chain names the device that was measured.
  EXPECT_EQ(
      Inherit(variant, Parse("name: 'D' inherited_spread: 0.3")).gemms_of(),
      "A");
}

// Every preset says where each figure comes from, and presets without published
// GEMMs have none that count as fitted.
TEST(ProfileBaseTest, PresetsWithoutMeasuredGemmsSaySo) {
  for (const char* name : {"b300-sxm", "gb300", "h20", "mi300x", "mi355x"}) {
    const auto profile = LoadDeviceProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_NE(profile->gemms_of(), "") << name;
    EXPECT_EQ(profile->gemm().matrix_rate().kind(), Figure::ASSUMED) << name;
    EXPECT_GE(RelativeError(profile->gemm().matrix_rate()), 0.1) << name;
    EXPECT_EQ(profile->num_step_sources(), 0u) << name;
  }
  for (const char* name : {"h100-sxm", "b200-sxm", "gb200"}) {
    const auto profile = LoadDeviceProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->gemms_of(), "") << name;
    EXPECT_EQ(profile->gemm().matrix_rate().kind(), Figure::FITTED) << name;
  }
}

// The relative error of the base's figure must not be taken for that of the
// variant's.
TEST(ProfileBaseTest, AFigureReplacesTheWholeFigureOfTheBase) {
  const DeviceProfile merged =
      Inherit(Parse("memory_bytes { value: 1 kind: DATASHEET source: 'a'"
                    " relative_error: 0.5 } kernel_seconds { value: 3 }"),
              Parse("memory_bytes { value: 2 kind: ASSUMED }"));
  EXPECT_EQ(PrintTextProto(merged),
            PrintTextProto(Parse("memory_bytes { value: 2 kind: ASSUMED }"
                                 " kernel_seconds { value: 3 }")));
}

TEST(ProfileBaseTest, GemmAndCollectivesAreMergedFigureByFigure) {
  const DeviceProfile merged = Inherit(
      Parse("gemm { wave_seconds { value: 1 } matrix_rate { value: 2 } }"
            " collectives { ll { base_seconds { value: 3 }"
            " link_part { value: 4 } } link_efficiency { value: 5 } }"),
      Parse("gemm { matrix_rate { value: 6 } throttling { value: 7 } }"
            " collectives { ll { base_seconds { value: 8 } } }"));
  EXPECT_EQ(PrintTextProto(merged),
            PrintTextProto(Parse(
                "gemm { wave_seconds { value: 1 } matrix_rate { value: 6 }"
                " throttling { value: 7 } } collectives { ll { base_seconds"
                " { value: 8 } link_part { value: 4 } }"
                " link_efficiency { value: 5 } }")));
}

TEST(ProfileBaseTest, RepeatedFieldsAndOtherMessagesReplaceThoseOfTheBase) {
  const DeviceProfile merged = Inherit(
      Parse("matrix_rates { format: 'fp16' } matrix_rates { format: 'fp32' }"
            " coverage { batched_gemms: true gemm_m { low: 1 high: 2 } }"),
      Parse("matrix_rates { format: 'bf16' }"
            " coverage { gemm_n { low: 3 high: 4 } }"));
  EXPECT_EQ(PrintTextProto(merged),
            PrintTextProto(Parse("matrix_rates { format: 'bf16' }"
                                 " coverage { gemm_n { low: 3 high: 4 } }")));
}

// These describe the GPU on which the base was measured.
TEST(ProfileBaseTest, MeasurementsOfTheBaseAreNotInherited) {
  const DeviceProfile merged =
      Inherit(Parse("name: 'a' provenance { gpu_name: 'x' } kernels { m: 1 }"
                    " stages { num_blocks: 1 } memory { num_blocks: 1 }"
                    " links { num_pairs: 1 } kernel_seconds { value: 3 }"),
              Parse("base: 'a' kernels { m: 2 }"));
  EXPECT_EQ(PrintTextProto(merged),
            PrintTextProto(Parse("kernel_seconds { value: 3 }"
                                 " kernels { m: 2 }")));
}

TEST(ProfileBaseTest, PresetVariantsDifferInFewFigures) {
  const auto differences = [](const char* base, const char* variant) {
    return DifferentFigures(*LoadDeviceProfile(base),
                            *LoadDeviceProfile(variant));
  };
  EXPECT_THAT(differences("v100-sxm2-16gb", "v100-sxm2-32gb"),
              UnorderedElementsAre("memory_bytes"));
  EXPECT_THAT(differences("a100-sxm-80gb", "a100-sxm-40gb"),
              UnorderedElementsAre("memory_bytes_per_second", "memory_bytes"));
  EXPECT_THAT(differences("h100-sxm", "h100-sxm-96gb-500w"),
              UnorderedElementsAre("gemm.sustained_rate",
                                   "memory_bytes_per_second", "memory_bytes"));
}

TEST(ProfileBaseTest, AFileInheritsFromPresetsAndFilesBesideIt) {
  Write("folder/middle.textproto",
        "base: 't4' memory_bytes { value: 1e9 kind: ASSUMED source: 'b' }");
  const std::string path =
      Write("top.textproto",
            "name: 'mine' base: 'folder/middle.textproto'"
            " kernel_seconds { value: 1e-6 kind: ASSUMED source: 'c' }");
  const auto profile = LoadDeviceProfile(path);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->name(), "mine");
  EXPECT_EQ(profile->base(), "");
  EXPECT_THAT(DifferentFigures(*profile, *LoadDeviceProfile("t4")),
              UnorderedElementsAre("memory_bytes", "kernel_seconds"));
  EXPECT_EQ(profile->memory_bytes().value(), 1e9);
}

TEST(ProfileBaseTest, AVariantNeedsItsOwnName) {
  EXPECT_THAT(ErrorOf(Write("unnamed.textproto", "base: 't4'")),
              HasSubstr("unnamed.textproto: name is empty"));
}

TEST(ProfileBaseTest, AMissingBaseNamesFileFieldAndPath) {
  const std::string path = Write("folder/lost.textproto", "base: 'h100-sxn'");
  EXPECT_THAT(ErrorOf(path),
              AllOf(HasSubstr(absl::StrCat(path, ": base is \"h100-sxn\"")),
                    HasSubstr("folder/h100-sxn does not exist"),
                    HasSubstr("did you mean h100-sxm?")));
}

TEST(ProfileBaseTest, ABaseThatIsAFolderIsAnError) {
  Write("folder/x.textproto", "");
  const std::string path = Write("above.textproto", "base: 'folder'");
  EXPECT_THAT(ErrorOf(path),
              HasSubstr(absl::StrCat(path, ": base cannot be read: ")));
}

TEST(ProfileBaseTest, ErrorsInABaseNameTheFileOfTheBase) {
  Write("wrong.textproto", "nmae: 'x'");
  EXPECT_THAT(ErrorOf(Write("right.textproto", "base: 'wrong.textproto'")),
              HasSubstr("wrong.textproto:1:"));
}

TEST(ProfileBaseTest, ACycleIsAnError) {
  Write("b.textproto", "base: '../profile_base/a.textproto'");
  EXPECT_THAT(
      ErrorOf(Write("a.textproto", "base: 'b.textproto'")),
      AllOf(HasSubstr("b.textproto: base is \"../profile_base/a.textproto\""),
            HasSubstr("which inherits from this file")));
  EXPECT_THAT(ErrorOf(Write("self.textproto", "base: 'self.textproto'")),
              HasSubstr("self.textproto: base is \"self.textproto\""));
}

TEST(ProfileBaseTest, AtMostEightProfilesAreInAChain) {
  std::string path = Write("1.textproto", "name: 'x' base: 't4'");
  for (int i = 2; i <= 7; ++i) {
    path = Write(absl::StrCat(i, ".textproto"),
                 absl::StrCat("name: 'x' base: '", i - 1, ".textproto'"));
  }
  EXPECT_TRUE(LoadDeviceProfile(path).ok());
  path = Write("8.textproto", "name: 'x' base: '7.textproto'");
  EXPECT_THAT(ErrorOf(path), AllOf(HasSubstr("1.textproto: base is \"t4\""),
                                   HasSubstr("at most 8 profiles in a chain")));
}

// A rate that states only a peak has the GEMMs of the base's format.
TEST(ProfileBaseTest, RatesInheritTheGemmsOfTheirFormat) {
  const DeviceProfile base = Parse(R"(
      name: "base"
      matrix_rates { format: "bf16" peak_flops { value: 1e15 } }
      matrix_rates {
        format: "fp8"
        peak_flops { value: 2e15 }
        gemm { matrix_rate { value: 0.7 } }
        gemm_residual { value: 0.08 }
        transposed_copies: true
      })");
  const DeviceProfile faster = Inherit(base, Parse(R"(
      matrix_rates { format: "bf16" peak_flops { value: 3e15 } }
      matrix_rates { format: "fp8" peak_flops { value: 6e15 } }
      matrix_rates { format: "nvfp4" peak_flops { value: 9e15 } })"));
  ASSERT_EQ(faster.matrix_rates_size(), 3);
  EXPECT_FALSE(faster.matrix_rates(0).has_gemm());
  const MatrixRate& fp8 = faster.matrix_rates(1);
  EXPECT_EQ(fp8.peak_flops().value(), 6e15);
  EXPECT_EQ(fp8.gemm().matrix_rate().value(), 0.7);
  EXPECT_EQ(fp8.gemm_residual().value(), 0.08);
  EXPECT_TRUE(fp8.transposed_copies());
  EXPECT_FALSE(faster.matrix_rates(2).has_gemm());
  const DeviceProfile own = Inherit(base, Parse(R"(
      matrix_rates {
        format: "fp8"
        peak_flops { value: 6e15 }
        gemm { matrix_rate { value: 0.5 } }
      })"));
  EXPECT_EQ(own.matrix_rates(0).gemm().matrix_rate().value(), 0.5);
  EXPECT_FALSE(own.matrix_rates(0).transposed_copies());
}

// Without a matrix_rate, the figures of a rate's GEMMs replace those of the
// base one by one.
TEST(ProfileBaseTest, RatesMayReplaceSingleFiguresOfTheirGemms) {
  const DeviceProfile base = Parse(R"(
      name: "base"
      matrix_rates {
        format: "nvfp4"
        peak_flops { value: 1e16 }
        gemm {
          matrix_rate { value: 0.7 }
          cache_bytes_per_second { value: 2e13 relative_error: 0.1 }
        }
        gemm_residual { value: 0.08 }
      })");
  const DeviceProfile ultra = Inherit(base, Parse(R"(
      matrix_rates {
        format: "nvfp4"
        peak_flops { value: 1.5e16 }
        gemm { cache_bytes_per_second { value: 3e13 } }
      })"));
  const MatrixRate& rate = ultra.matrix_rates(0);
  EXPECT_EQ(rate.gemm().matrix_rate().value(), 0.7);
  EXPECT_EQ(rate.gemm().cache_bytes_per_second().value(), 3e13);
  EXPECT_EQ(rate.gemm().cache_bytes_per_second().relative_error(), 0);
  EXPECT_EQ(rate.gemm_residual().value(), 0.08);
}

// The main loop of NVFP4 GEMMs is limited by the cache rate of the fit, so that
// a higher peak alone would change nothing.
TEST(ProfileBaseTest, BlackwellUltraHasFasterGemmsOnlyInFp4) {
  for (const auto& [ultra, base] :
       {std::pair("gb300", "gb200"), std::pair("b300-sxm", "b200-sxm")}) {
    const auto fast = LoadDeviceProfile(ultra), slow = LoadDeviceProfile(base);
    ASSERT_TRUE(fast.ok() && slow.ok());
    const GemmSize size = MakeGemmSize(8192, 28672, 8192, 0.5625);
    for (const char* format : {"mxfp8", "nvfp4"}) {
      const double ratio =
          GemmSeconds(*slow, *FindRate(*slow, format), size,
                      Clock::kSustained) /
          GemmSeconds(*fast, *FindRate(*fast, format), size, Clock::kSustained);
      if (format == std::string("mxfp8")) {
        EXPECT_NEAR(ratio, 1, 0.01) << ultra;
      } else {
        EXPECT_NEAR(ratio, 1.5, 0.1) << ultra;
      }
    }
  }
}

}  // namespace weir::calibrate::profile_base_test
