// SPDX-License-Identifier: Apache-2.0
#include "base/json_syntax.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::json_syntax_test {

using testing::HasSubstr;

std::string MessageOf(const std::string& text) {
  return std::string(CheckJsonSyntax("f", text).message());
}

TEST(JsonSyntaxTest, AnErrorHasItsPlace) {
  EXPECT_EQ(MessageOf("{\"a\": [1, 2]}"), "");
  EXPECT_THAT(MessageOf("{\n\"a\" 1}"), HasSubstr("f:2:5: is not JSON near"));
  EXPECT_THAT(MessageOf(""), HasSubstr("f:1:1: is not JSON"));
}

TEST(JsonSyntaxTest, DeepNestingIsRefused) {
  const auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(MessageOf(nested(kMaxJsonDepth)), "");
  EXPECT_EQ(MessageOf(nested(kMaxJsonDepth + 1)),
            "f: is JSON nested deeper than 100 levels, the limit");
  EXPECT_THAT(MessageOf(std::string(8'000'000, '[')),
              HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(MessageOf(objects), HasSubstr("nested deeper"));
}

}  // namespace weir::json_syntax_test
