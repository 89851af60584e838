// SPDX-License-Identifier: Apache-2.0
#include "base/in_parts.h"

#include <gmock/gmock.h>

namespace weir::in_parts_test {

TEST(InPartsTest, EveryElementIsInOnePart) {
  for (const int64_t size : {0, 1, 1000, (1 << 20) + 7}) {
    std::vector<int> visits(size, 0);
    InParts(size, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) ++visits[i];
    });
    EXPECT_EQ(visits, std::vector<int>(size, 1));
  }
}

}  // namespace weir::in_parts_test
