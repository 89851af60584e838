// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/profile_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"
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

}  // namespace weir::calibrate::profile_base_test
