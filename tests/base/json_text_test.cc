// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/hostile_names.h"

namespace weir::json_text_test {

TEST(JsonTextTest, HostileNamesReadBackAndMoveNoCursor) {
  for (const HostileName& name : HostileNames()) {
    for (int indent : {-1, 2}) {
      const nlohmann::ordered_json json = {{name.text, name.text}};
      const std::string text = DumpJson(json, indent);
      EXPECT_TRUE(IsSafeForTerminal(text)) << name.kind;
      const auto read =
          nlohmann::ordered_json::parse(text, nullptr, /*exceptions=*/false);
      ASSERT_TRUE(read.is_object()) << name.kind << ": " << text;
      if (name.is_utf8) {
        EXPECT_EQ(read, json) << name.kind;
      }
    }
  }
}

}  // namespace weir::json_text_test
