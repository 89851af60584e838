// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"

namespace weir::calibrate::runtime_test {

using testing::AllOf;
using testing::HasSubstr;

// Writes a file into a folder of this test and returns its path.
std::string Write(const std::string& name, absl::string_view text) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "runtime" / name;
  std::filesystem::create_directories(path.parent_path());
  EXPECT_TRUE(WriteFile(path.string(), std::string(text)).ok());
  return path.string();
}

constexpr char kExchange[] =
    R"(exchange_seconds { value: 0.5 kind: MEASURED source: "test" } )";

TEST(RuntimeTest, InheritsEverythingThatItDoesNotSet) {
  const auto base = LoadRuntime("megatron-lm");
  ASSERT_TRUE(base.ok()) << base.status();
  const std::string path =
      Write("variant.textproto",
            absl::StrCat(R"(name: "mine" base: "megatron-lm" )",
                         R"(unfused_softmax: true )", kExchange));
  const auto variant = LoadRuntime(path);
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->exchange_seconds().value(), 0.5);
  EXPECT_EQ(variant->exchange_seconds().source(), "test");
  Runtime same = *variant;
  same.set_name(base->name());
  same.set_unfused_softmax(base->unfused_softmax());
  *same.mutable_exchange_seconds() = base->exchange_seconds();
  EXPECT_EQ(PrintTextProto(same), PrintTextProto(*base));
}

TEST(RuntimeTest, InheritsFromAFileRelativeToItsOwn) {
  Write("parent.textproto",
        absl::StrCat(R"(name: "parent" base: "none" schedules: "gpipe"
                        schedules_source: "test" )",
                     kExchange));
  const auto child = LoadRuntime(
      Write("child.textproto",
            R"(name: "child" base: "parent.textproto" schedules: "1f1b")"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(child->exchange_seconds().value(), 0.5);
  EXPECT_EQ(child->schedules_size(), 1);
  EXPECT_EQ(child->schedules(0), "1f1b");
  EXPECT_TRUE(child->base().empty());
}

TEST(RuntimeTest, RatesHaveARangeOfTheirOwn) {
  const auto checked = [](double value) {
    Runtime runtime;
    runtime.set_name("test");
    Figure& rate = *runtime.mutable_host_optimizer_bytes_per_second();
    rate.set_value(value);
    rate.set_kind(Figure::MEASURED);
    rate.set_source("test");
    return ValidateRuntime("test", runtime);
  };
  EXPECT_TRUE(checked(2e11).ok()) << checked(2e11);
  for (const double value : {0.0, 10.0, 1e16}) {
    EXPECT_THAT(std::string(checked(value).message()),
                AllOf(HasSubstr("host_optimizer_bytes_per_second.value is"),
                      HasSubstr("expected 1000000 to 1e+15")));
  }
}

TEST(RuntimeTest, RefusesBasesThatAreMissingOrCircular) {
  const auto missing = LoadRuntime(
      Write("orphan.textproto", R"(name: "x" base: "megatron-ln")"));
  EXPECT_THAT(std::string(missing.status().message()),
              AllOf(HasSubstr("orphan.textproto: base is \"megatron-ln\""),
                    HasSubstr("did you mean megatron-lm?")));
  Write("a.textproto", R"(name: "a" base: "b.textproto")");
  const auto circular =
      LoadRuntime(Write("b.textproto", R"(name: "b" base: "a.textproto")"));
  EXPECT_THAT(std::string(circular.status().message()),
              HasSubstr("which inherits from this file"));
  const auto unnamed =
      LoadRuntime(Write("unnamed.textproto", R"(base: "megatron-lm")"));
  EXPECT_THAT(std::string(unnamed.status().message()),
              HasSubstr("name is empty"));
}

}  // namespace weir::calibrate::runtime_test
