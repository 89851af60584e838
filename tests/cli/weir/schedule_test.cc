// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "schedules/registry.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::schedule_test {

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
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
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

TEST(ScheduleShowTest, TakesTheOptionsOfAName) {
  const ProgramRun run =
      RunWeir("schedule show pipedream:replicas=3-1 --pp 4 --microbatches 4");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("4 ranks, 2 stages"));
  EXPECT_THAT(run.out, HasSubstr("0+1+2"));
}

TEST(ScheduleListTest, ShowsTheOptionsOfAName) {
  EXPECT_THAT(RunWeir("schedule list").out,
              HasSubstr("  option: vertical-sync=, yes: all stages read the "
                        "same version as stage 0 [no]\n"));
}

TEST(ScheduleListTest, JsonHasWhatTheRegistryHas) {
  const auto json =
      nlohmann::json::parse(RunWeir("schedule list --format json").out);
  const auto& kinds = json["result"]["schedules"];
  ASSERT_EQ(kinds.size(), schedules::AllScheduleKinds().size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    const schedules::ScheduleKind& kind = schedules::AllScheduleKinds()[i];
    EXPECT_EQ(kinds[i]["name"], std::string(kind.name));
    EXPECT_EQ(kinds[i]["aliases"].size(), kind.aliases.size());
    EXPECT_EQ(kinds[i]["options"].size(), kind.options.size());
    EXPECT_EQ(kinds[i]["constraints"], std::string(kind.constraints));
    EXPECT_EQ(kinds[i]["flush"], kind.flush);
    EXPECT_EQ(kinds[i]["uses_costs"], kind.uses_costs);
  }
}

TEST(ScheduleSemanticsTest, TableHasVerdictStagesAndMicrobatches) {
  const ProgramRun run = RunWeir(
      "schedule semantics spectrain --pp 3 --microbatches 4 --batches 2");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("; after prediction F and B agree\n"));
  EXPECT_THAT(run.out, HasSubstr("update: w(t+1) = w(t) - eta grad f("));
  EXPECT_THAT(run.out, HasSubstr("\nmicrobatch "));
  EXPECT_THAT(run.out, HasSubstr("  0>0 0/1>1 0/2>2 1/3>3"));
}

TEST(ScheduleSemanticsTest, LongRunsHaveNoMicrobatchesInTheTable) {
  const ProgramRun run =
      RunWeir("schedule semantics pipedream --pp 40 --microbatches 400");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("stage-dependent delay p-1-s"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("microbatch ")));
}

TEST(ScheduleSemanticsTest, JsonHasTheEnvelopeAndEveryMicrobatch) {
  const std::string command =
      "schedule semantics pipemare --pp 2 --microbatches 4 --format json";
  const ProgramRun run = RunWeir(command);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["tool"], "weir");
  EXPECT_EQ(json["command"], command);
  EXPECT_EQ(json["config"]["schedule"], "pipemare");
  EXPECT_EQ(json["config"]["num_batches"], 3);
  EXPECT_TRUE(json["warnings"].empty());
  const auto& result = json["result"];
  EXPECT_THAT(result["verdict"].get<std::string>(),
              HasSubstr("(2(p-1-s)+1)/m on average"));
  ASSERT_EQ(result["stages"].size(), 2u);
  EXPECT_EQ(result["stages"][0]["mean_staleness"], 0.75);
  EXPECT_EQ(result["stages"][0]["backward_distance"], -0.75);
  EXPECT_EQ(result["stages"][1]["ranks"], nlohmann::json::array({1}));
  ASSERT_EQ(result["uses"].size(), 2u * 12u);
  const auto& last = result["uses"][23];
  EXPECT_EQ(last["microbatch"], 11);
  EXPECT_EQ(last["forward_version"], 2);
  EXPECT_EQ(last["predicted_backward_version"], 2 - 0.25);
}

TEST(ScheduleSemanticsTest, UnknownOptionIsAnInputError) {
  const ProgramRun run = RunWeir("schedule semantics pipedream:replica=2-2");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean 'replicas'?"));
}

}  // namespace weir::cli::schedule_test
