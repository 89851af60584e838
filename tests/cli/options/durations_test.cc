// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cli/weir/command_table.h"

namespace weir::cli::durations_test {

TEST(DurationsTest, EveryDurationIsATimeLimit) {
  int num_found = 0;
  for (const CommandInfo& command : AllCommands()) {
    Flags flags;
    for (const Option& option : command.options(&flags)) {
      if (option.value != "SECONDS" &&
          !absl::StrContains(option.names, "--time") &&
          !absl::StrContains(option.names, "seconds")) {
        continue;
      }
      ++num_found;
      for (const char* text : {"1e10", "nan", "inf", "-1", "0"}) {
        EXPECT_FALSE(option.set(text).ok()) << option.names << " " << text;
      }
    }
  }
  EXPECT_GE(num_found, 2);  // --seconds, --time-limit
}

}  // namespace weir::cli::durations_test
