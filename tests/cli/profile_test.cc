// SPDX-License-Identifier: Apache-2.0
// "weir profile import" as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/program.h"

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kProducts[] =
    "m,n,k,latency_us,note\n"
    "1024,1024,1024,30,\"a, b\"\n"
    "2048,2048,2048,80,c\n"
    "4096,4096,4096,520,d\n";

TEST(ProfileImportTest, WritesAProfileThatNamesItsSource) {
  const std::string file = WriteInput("gemm.csv", kProducts);
  const ProgramRun run = RunWeir(absl::StrCat(
      "profile import ", file,
      " --profile a100-sxm-80gb --source \"our cluster\" --out a.textproto"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("fit: mean |error|"),
                             HasSubstr("3 rows; worst: m=")));
  EXPECT_THAT(run.err, HasSubstr("wrote a.textproto"));
  // A profile is where the next import may begin.
  const ProgramRun again = RunWeir(absl::StrCat(
      "profile import ", file, " --profile a.textproto --out b.textproto"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST(ProfileImportTest, ErrorsNameFileLineAndColumn) {
  const std::string file = WriteInput("bad.csv", "m,n,k,latency_us\n8,8,x,1\n");
  const ProgramRun run = RunWeir(
      absl::StrCat("profile import ", file, " --profile t4 --out a.textproto"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("error: bad.csv:2: k is \"x\", expected a number"));
  EXPECT_EQ(RunWeir("profile import gone.csv --profile t4 --out a").exit_code,
            2);
  EXPECT_THAT(
      RunWeir(absl::StrCat("profile import ", file)).err,
      AllOf(HasSubstr("--profile is missing"), HasSubstr("--out is missing")));
}

}  // namespace
}  // namespace weir
