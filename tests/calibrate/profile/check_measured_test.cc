// SPDX-License-Identifier: Apache-2.0
// Checks of the measurements inside a profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "base/textproto.h"
#include "calibrate/profile/device_profile.h"
#include "tests/toy_profile.h"

namespace weir::calibrate::check_measured_test {

using testing::HasSubstr;

std::string ProblemOf(const std::function<void(DeviceProfile*)>& change) {
  DeviceProfile profile = ToyProfile();
  change(&profile);
  return std::string(ValidateDeviceProfile("x", profile).message());
}

TEST(CheckMeasuredTest, TheToyIsValidAndRoundTrips) {
  const DeviceProfile toy = ToyProfile();
  EXPECT_TRUE(ValidateDeviceProfile("x", toy).ok())
      << ValidateDeviceProfile("x", toy);
  DeviceProfile again;
  ASSERT_TRUE(ParseTextProto("x", PrintTextProto(toy), &again).ok());
  EXPECT_EQ(PrintTextProto(again), PrintTextProto(toy));
}

struct Case {
  const char* name;
  std::function<void(DeviceProfile*)> change;
  const char* problem;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ImpossibleTest : public testing::TestWithParam<Case> {};

TEST_P(ImpossibleTest, IsRefusedByName) {
  EXPECT_THAT(ProblemOf(GetParam().change), HasSubstr(GetParam().problem));
}

Quantiles* First(DeviceProfile* p) {
  return p->mutable_kernels(0)->mutable_seconds();
}

INSTANTIATE_TEST_SUITE_P(
    Profiles, ImpossibleTest,
    testing::Values(
        Case{"median", [](DeviceProfile* p) { First(p)->set_p50(0); },
             "x: kernels[0].seconds.p50 is 0, expected "},
        Case{"order",
             [](DeviceProfile* p) { First(p)->set_p90(First(p)->p10()); },
             "x: kernels[0].seconds.p90 is "},
        Case{"samples", [](DeviceProfile* p) { First(p)->set_num_samples(0); },
             "x: kernels[0].seconds.num_samples is 0, expected at least 1"},
        Case{"ci", [](DeviceProfile* p) { First(p)->set_relative_ci(-1); },
             "x: kernels[0].seconds.relative_ci is -1, expected 0 to 3"},
        Case{"part",
             [](DeviceProfile* p) { p->mutable_kernels(1)->set_part("gelu"); },
             "x: kernels[1].part is \"gelu\", expected one of: attention_gemm"},
        Case{"bytes",
             [](DeviceProfile* p) { p->mutable_kernels(0)->set_bytes(0); },
             "x: kernels[0].bytes is 0, expected 1 to "},
        Case{"pass",
             [](DeviceProfile* p) { p->mutable_stages(0)->set_pass("b"); },
             "x: stages[0].pass is \"b\", expected forward, backward_input"},
        Case{"memory",
             [](DeviceProfile* p) {
               p->mutable_memory(0)->set_used_high_bytes(-1);
             },
             "x: memory[0].used_high_bytes is -1"},
        Case{"distance",
             [](DeviceProfile* p) { p->mutable_links(0)->clear_distance(); },
             "x: links[0].distance is unspecified, expected SAME_GPU, "},
        Case{"twice",
             [](DeviceProfile* p) {
               p->mutable_links(1)->set_distance(LinkClass::SAME_SWITCH);
             },
             "x: links[1].distance is SAME_SWITCH again, expected it once"},
        Case{"no_pieces",
             [](DeviceProfile* p) { p->mutable_links(0)->clear_pieces(); },
             "x: links[0].pieces is empty, expected at least one"},
        Case{"from_zero",
             [](DeviceProfile* p) {
               p->mutable_links(0)->mutable_pieces(0)->set_from_bytes(1);
             },
             "x: links[0].pieces[0].from_bytes is 1, expected 0 to 0"},
        Case{"ascending",
             [](DeviceProfile* p) {
               p->mutable_links(0)->mutable_pieces(1)->set_from_bytes(0);
             },
             "x: links[0].pieces[1].from_bytes is 0, expected "},
        Case{"joined",
             [](DeviceProfile* p) {
               p->mutable_links(0)->mutable_pieces(1)->set_latency_seconds(1);
             },
             "x: links[0].pieces[1] takes 1"},
        Case{"link_figure",
             [](DeviceProfile* p) {
               p->mutable_links(0)->mutable_figure()->clear_source();
             },
             "x: links[0].figure.source is empty"},
        Case{"slowdown",
             [](DeviceProfile* p) {
               p->mutable_collective_slowdown()->set_value(0);
             },
             "x: collective_slowdown.value is 0, expected 0.5 to 100"},
        Case{"gap",
             [](DeviceProfile* p) {
               p->mutable_kernel_gap_seconds()->set_value(-1);
             },
             "x: kernel_gap_seconds.value is -1, expected -0.001 to 1"},
        Case{"part_of_reserved",
             [](DeviceProfile* p) { p->clear_library_bytes(); },
             "x: library_bytes.kind is unspecified"},
        Case{"reserved",
             [](DeviceProfile* p) {
               *p->mutable_reserved_bytes() = p->context_bytes();
             },
             "x: reserved_bytes.value is 4e+08, expected 5.67109e+08, the sum "
             "of context_bytes, library_bytes and workspace_bytes, or none"}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

TEST(CheckMeasuredTest, ReservedMemoryIsTheSumOfItsParts) {
  DeviceProfile toy = ToyProfile();
  EXPECT_EQ(ReservedBytes(toy), 5e8 + (64 << 20));
  *toy.mutable_reserved_bytes() = toy.context_bytes();
  toy.mutable_reserved_bytes()->set_value(5e8 + (64 << 20));
  EXPECT_TRUE(ValidateDeviceProfile("x", toy).ok());
}

}  // namespace weir::calibrate::check_measured_test
