// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cli/options/add_option.h"
#include "cli/weir/weir_app.h"
#include "tests/cli/weir/all_commands.h"

namespace weir::cli::durations_test {

TEST(DurationsTest, EveryDurationIsATimeLimit) {
  CommandLine line;
  const auto app = MakeWeirApp(&line);
  int num_found = 0;
  for (CLI::App* command : AllCommands(app.get())) {
    for (CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      if (option->get_type_name() == "FACTOR") continue;
      if (option->get_type_name() != "SECONDS" &&
          !absl::StrContains(name, "--time") &&
          !absl::StrContains(name, "seconds")) {
        continue;
      }
      ++num_found;
      for (const char* text : {"1e10", "nan", "inf", "-1", "0"}) {
        EXPECT_FALSE(SetOption(option, text).ok()) << name << " " << text;
      }
    }
  }
  EXPECT_GE(num_found, 2);  // --seconds, --time-limit
}

}  // namespace weir::cli::durations_test
