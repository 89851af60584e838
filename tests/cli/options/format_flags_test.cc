// SPDX-License-Identifier: Apache-2.0
// Tests that flags of number formats mean the same in any order, and that
// contradictions are errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/options/overrides.h"
#include "cli/options/precision_options.h"

namespace weir::cli::format_flags_test {

using testing::HasSubstr;

using Words = std::vector<std::string>;  // a flag and its value each

ScenarioFlags Parse(const Words& groups) {
  ScenarioFlags flags;
  CLI::App app;
  AddPrecision(&app, &flags);
  AddGradientFormat(&app, &flags);
  Words words = absl::StrSplit(absl::StrJoin(groups, " "), ' ');
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app.parse(words);
  return flags;
}

TEST(FormatFlagsTest, ThePrecisionBesideARecipeIsThe16BitFormat) {
  struct Case {
    Words groups;
    std::string recipe;
    Precision precision;
  };
  const Case cases[] = {
      {{"--bf16", "--precision fp8-current"}, "fp8-current", MIXED_BF16},
      {{"--bf16", "--fp8-format hybrid"}, "fp8-delayed", MIXED_BF16},
      {{"--bf16", "--fp8-format hybrid", "--fp8-recipe tensorwise"},
       "fp8-current",
       MIXED_BF16},
      {{"--fp8-format e4m3", "--precision mxfp8"},
       "mxfp8",
       PRECISION_UNSPECIFIED},
      {{"--precision deepseek-v3", "--fp8-recipe blockwise"},
       "deepseek-v3",
       PRECISION_UNSPECIFIED},
      {{"--bf16", "--fp4-format e2m1"}, "nvfp4", MIXED_BF16},
      {{"--fp16"}, "", MIXED_FP16},
      {{"--precision fp16_mixed"}, "", MIXED_FP16}};
  for (Case c : cases) {
    std::sort(c.groups.begin(), c.groups.end());
    do {
      SCOPED_TRACE(absl::StrJoin(c.groups, " "));
      const ScenarioFlags flags = Parse(c.groups);
      EXPECT_EQ(flags.overrides.training().recipe(), c.recipe);
      EXPECT_EQ(flags.overrides.training().precision(), c.precision);
      EXPECT_TRUE(CheckFormats(flags.formats).ok());
    } while (std::next_permutation(c.groups.begin(), c.groups.end()));
  }
}

TEST(FormatFlagsTest, ContradictionsAreErrors) {
  const Words cases[] = {{"--bf16", "--fp16"},
                         {"--precision fp32", "--bf16"},
                         {"--precision fp32", "--fp8-format hybrid"},
                         {"--precision nvfp4", "--fp8-format hybrid"},
                         {"--precision mxfp8", "--fp8-recipe tensorwise"},
                         {"--precision fp8-current", "--fp8-recipe delayed"},
                         {"--precision fp8-current", "--fp4-format e2m1"},
                         {"--fp8-format hybrid", "--fp4-format e2m1"},
                         {"--fp16", "--precision fp8-current"},
                         {"--fp16", "--fp8-format hybrid"},
                         {"--precision fp16", "--fp8-recipe mxfp8"},
                         {"--fp32-gradients", "--main-grads-dtype bf16"},
                         {"--main-grads-dtype fp32", "--grad-reduce-in-bf16"}};
  for (Words groups : cases) {
    for (int order = 0; order < 2; ++order) {
      SCOPED_TRACE(absl::StrJoin(groups, " "));
      Scenario scenario;
      const absl::Status status = Override(Parse(groups), &scenario);
      for (const std::string& flag : groups) {
        EXPECT_THAT(std::string(status.message()), HasSubstr(flag));
      }
      EXPECT_THAT(std::string(status.message()), HasSubstr("expected "));
      std::swap(groups[0], groups[1]);
    }
  }
}

TEST(FormatFlagsTest, AnUnknownFormatListsTheKnownOnes) {
  try {
    Parse({"--precision fp9"});
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is fp9, expected bf16, "));
    EXPECT_THAT(error.what(), HasSubstr("fp32"));
  }
}

}  // namespace weir::cli::format_flags_test
