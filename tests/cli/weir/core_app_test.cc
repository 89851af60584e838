// SPDX-License-Identifier: Apache-2.0
// weir-core, which ./run builds first, against weir.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files.h"
#include "cli/weir/weir_app.h"

namespace weir::cli::core_app_test {

using ::testing::Contains;
using ::testing::Ge;
using ::testing::SizeIs;

TEST(CoreAppTest, CommandsHaveTheOptionsOfWeir) {
  CommandLine core_line;
  CommandLine line;
  const auto core = MakeCoreApp(&core_line);
  const auto weir = MakeWeirApp(&line);
  const std::vector<CLI::App*> commands = core->get_subcommands({});
  EXPECT_THAT(commands, SizeIs(Ge(10)));
  for (const CLI::App* command : commands) {
    const std::string name = command->get_name();
    const CLI::App* same = weir->get_subcommand(name);
    if (name == "schedule") {
      // Without "synthesize".
      EXPECT_EQ(command->get_subcommands({}).size() + 1,
                same->get_subcommands({}).size());
      continue;
    }
    EXPECT_EQ(command->help(), same->help()) << name;
  }
}

// A program with one set of commands has the same options.
TEST(CoreAppTest, ACommandNeedsNoOtherCommands) {
  CommandLine line;
  const auto weir = MakeWeirApp(&line);
  for (const CLI::App* command : weir->get_subcommands({})) {
    CommandLine alone_line;
    alone_line.first_word = command->get_name();
    const auto alone = MakeWeirApp(&alone_line);
    EXPECT_LT(alone->get_subcommands({}).size(), 6) << command->get_name();
    const CLI::App* same = alone->get_subcommand(command->get_name());
    EXPECT_EQ(command->help(), same->help());
    for (const CLI::App* part : command->get_subcommands({})) {
      EXPECT_EQ(part->help(), same->get_subcommand(part->get_name())->help());
    }
  }
}

// The script builds only the core for the commands of this line:
//   simulate | compare) weir='weir-core' ;;
TEST(CoreAppTest, HasTheCommandsOfTheRunScript) {
  const auto script = ReadFile(WEIR_SOURCE_DIR "/run");
  ASSERT_TRUE(script.ok()) << script.status();
  CommandLine line;
  const auto core = MakeCoreApp(&line);
  std::vector<std::string> names_of_core;
  for (const CLI::App* command : core->get_subcommands({})) {
    names_of_core.push_back(command->get_name());
  }
  int num_commands = 0;
  for (absl::string_view text : absl::StrSplit(*script, '\n')) {
    if (!absl::EndsWith(text, ") weir='weir-core' ;;")) continue;
    const absl::string_view names = text.substr(0, text.find(')'));
    for (absl::string_view name : absl::StrSplit(names, '|')) {
      name = absl::StripAsciiWhitespace(name);
      EXPECT_THAT(names_of_core, Contains(std::string(name)));
      ++num_commands;
    }
  }
  EXPECT_EQ(num_commands, 2);
}

}  // namespace weir::cli::core_app_test
