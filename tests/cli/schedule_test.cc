// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "schedules/registry.h"
#include "tests/cli/program.h"

namespace weir {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ScheduleShowTest, DrawsAndJudges) {
  const ProgramRun run = RunWeir("schedule show 1f1b --pp 4 --microbatches 6");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rank 0 |0123......aa4bb5cc.dd.ee.ff|"));
  EXPECT_THAT(run.out, HasSubstr("minibatch SGD"));
}

TEST(ScheduleShowTest, PrintsPyTorchsCsv) {
  const ProgramRun run =
      RunWeir("schedule show gpipe --pp 2 --microbatches 2 --format csv");
  EXPECT_EQ(run.out, "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n");
}

TEST(ScheduleShowTest, PrintsJson) {
  const ProgramRun run = RunWeir("schedule show pipedream-2bw --format json");
  EXPECT_THAT(run.out, StartsWith("{"));
  EXPECT_THAT(run.out, HasSubstr("\"verdict\""));
  EXPECT_EQ(run.out.back(), '\n');
}

TEST(ScheduleShowTest, EveryKindOfTheListHasAPicture) {
  const ProgramRun list = RunWeir("schedule list");
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    EXPECT_THAT(list.out, HasSubstr(absl::StrCat(kind.name, "\n")));
    const ProgramRun run = RunWeir(absl::StrCat("schedule show ", kind.name));
    EXPECT_EQ(run.exit_code, 0) << kind.name << "\n" << run.err;
    EXPECT_THAT(run.out, HasSubstr("rank 0")) << kind.name;
  }
}

TEST(ScheduleShowTest, WrongChunksAreRefusedWhenAskedFor) {
  const ProgramRun run = RunWeir("schedule show interleaved-1f1b --chunks 1");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("chunks is 1, expected 2 or more"));
}

}  // namespace
}  // namespace weir
