// SPDX-License-Identifier: Apache-2.0
// Golden files: the expected output of a view, stored in a file and reviewed as
// a diff. WEIR_UPDATE_GOLDENS=1 rewrites the files instead of comparing:
//
//   WEIR_UPDATE_GOLDENS=1 ctest --preset release -R Golden
#ifndef WEIR_TESTS_GOLDEN_H_
#define WEIR_TESTS_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "base/files.h"

namespace weir {

inline bool UpdatesGoldens() {
  const char* update = std::getenv("WEIR_UPDATE_GOLDENS");
  return update != nullptr && *update != 0 && absl::string_view(update) != "0";
}

// Expects the file tests/<path> (such as "results/golden/compare.txt") to hold
// exactly `actual`. Requires: the test links the target `base`.
inline void ExpectGolden(const std::string& path, absl::string_view actual) {
  const std::string file = std::string(WEIR_SOURCE_DIR "/tests/") + path;
  if (UpdatesGoldens()) {
    const absl::Status status = WriteFile(file, actual);
    ASSERT_TRUE(status.ok()) << status;
    return;
  }
  const auto expected = ReadFile(file);
  ASSERT_TRUE(expected.ok())
      << expected.status() << "\nWEIR_UPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(*expected, std::string(actual))
      << "tests/" << path
      << " differs; if that is meant, WEIR_UPDATE_GOLDENS=1 rewrites it";
}

}  // namespace weir

#endif  // WEIR_TESTS_GOLDEN_H_
