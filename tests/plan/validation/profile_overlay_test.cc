// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/profile_overlay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"

namespace weir::plan::profile_overlay_test {

Figure NewFigure(double value) {
  Figure figure;
  figure.set_value(value);
  figure.set_kind(Figure::FITTED);
  figure.set_source("test");
  return figure;
}

std::string Write(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "profile_overlay" / name;
  std::filesystem::create_directories(path.parent_path());
  EXPECT_TRUE(WriteFile(path.string(), text).ok());
  return path.string();
}

TEST(ProfileOverlayTest, ALoadedOverlayDiffersOnlyInTheFigures) {
  const auto profile = calibrate::LoadDeviceProfile("a100-sxm-80gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const DeviceProfile overlay =
      OverlayOf(*profile, "a100-sxm-80gb",
                {{"gemm.sustained_rate", NewFigure(0.7)},
                 {"collectives.ll.base_seconds", NewFigure(1e-6)},
                 {"matrix_rates[1].peak_flops", NewFigure(3e14)}});
  EXPECT_EQ(overlay.base(), "a100-sxm-80gb");
  EXPECT_FALSE(overlay.has_memory_efficiency());
  const auto loaded = calibrate::LoadDeviceProfile(
      Write("device.textproto", PrintTextProto(overlay)));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  DeviceProfile expected = *profile;
  *expected.mutable_gemm()->mutable_sustained_rate() = NewFigure(0.7);
  *expected.mutable_collectives()->mutable_ll()->mutable_base_seconds() =
      NewFigure(1e-6);
  *expected.mutable_matrix_rates(1)->mutable_peak_flops() = NewFigure(3e14);
  EXPECT_EQ(PrintTextProto(*loaded), PrintTextProto(expected));
}

TEST(ProfileOverlayTest, KeepsWhatIsNotInherited) {
  auto profile = calibrate::LoadDeviceProfile("a100-sxm-80gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  MeasuredMemory& memory = *profile->add_memory();
  const std::string base = Write("base.textproto", PrintTextProto(*profile));
  const DeviceProfile overlay =
      OverlayOf(*profile, base, {{"kernel_seconds", NewFigure(1e-6)}});
  EXPECT_EQ(overlay.memory_size(), 1);
  EXPECT_EQ(PrintTextProto(overlay.memory(0)), PrintTextProto(memory));
  EXPECT_TRUE(std::filesystem::path(overlay.base()).is_absolute());
}

TEST(ProfileOverlayTest, ARuntimeInheritsItsSwitches) {
  const auto runtime = calibrate::LoadRuntime("megatron-lm-2021");
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const Runtime overlay = OverlayOf(*runtime, "megatron-lm-2021",
                                    {{"exchange_seconds", NewFigure(3e-4)}});
  const auto loaded = calibrate::LoadRuntime(
      Write("runtime.textproto", PrintTextProto(overlay)));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Runtime expected = *runtime;
  *expected.mutable_exchange_seconds() = NewFigure(3e-4);
  EXPECT_EQ(PrintTextProto(*loaded), PrintTextProto(expected));
}

}  // namespace weir::plan::profile_overlay_test
