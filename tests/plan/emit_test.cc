// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/textproto.h"
#include "plan/joint_search.h"
#include "plan/views.h"
#include "schedules/schedule_text.h"
#include "sim/simulate.h"
#include "tests/plan/small_requests.h"

namespace weir {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

PlanReport Report(const std::string& schedule) {
  PlanRequest request = SmallRequest(6, 4, 8);
  request.mutable_space()->add_pipeline(4);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_schedules(schedule);
  auto report = SearchPlans("test", request);
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

TEST(EmitTest, TheScenarioSimulatesToTheSameSeconds) {
  const PlanReport report = Report("1f1b");
  for (int i = 0; i < report.plans_size(); ++i) {
    const auto files = FilesOfPlan(report.plans(i), i + 1);
    ASSERT_TRUE(files.ok()) << files.status();
    const PlanFile& file = files->files[0];
    Scenario scenario;
    ASSERT_TRUE(ParseTextProto(file.name, file.contents, &scenario).ok());
    const auto resolved = ResolveScenario(file.name, scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_EQ(Simulate(*resolved)->batch_seconds(),
              report.plans(i).batch_seconds());
  }
}

TEST(EmitTest, UnevenCutsAreALayoutForMegatron) {
  const PlanReport report = Report("1f1b");
  bool uneven = false;
  for (const Plan& plan : report.plans()) {
    const auto files = FilesOfPlan(plan, 1);
    ASSERT_TRUE(files.ok());
    const std::string& arguments = files->files[1].contents;
    EXPECT_THAT(arguments, HasSubstr("--pipeline-model-parallel-size 4\n"));
    EXPECT_THAT(arguments, HasSubstr("--micro-batch-size 1\n"));
    EXPECT_THAT(arguments, Not(HasSubstr("#")));
    uneven |= arguments.find("--pipeline-model-parallel-layout \"E") !=
              std::string::npos;
  }
  EXPECT_TRUE(uneven);
}

TEST(EmitTest, SchedulesThatMegatronLacksAreNamedInAComment) {
  const auto files = FilesOfPlan(Report("zb-h1").plans(0), 1);
  ASSERT_TRUE(files.ok());
  EXPECT_THAT(files->files[1].contents,
              HasSubstr("# Megatron-LM does not have the schedule zb-h1"));
}

TEST(EmitTest, TheCsvHoldsTheOrderThatWasSimulated) {
  const PlanReport report = Report("zb-1p");
  const Plan& plan = report.plans(0);
  const auto files = FilesOfPlan(plan, 1);
  ASSERT_TRUE(files.ok());
  const auto resolved = ResolveScenario("test", plan.scenario());
  ASSERT_TRUE(resolved.ok());
  const auto rows = ParseCsv("plan.csv", files->files[2].contents);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, ScheduleOfScenario(*resolved, 1)->rank_actions);
}

TEST(ViewsTest, EveryPlanIsARowInEveryView) {
  const PlanReport report = Report("1f1b");
  const std::string table = PlanTable(report, /*explain=*/true);
  const std::string csv = PlanCsv(report);
  for (int i = 1; i < report.plans_size(); ++i) {
    EXPECT_THAT(table, HasSubstr(report.plans(i).why_not_best()));
  }
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + report.plans_size());
  EXPECT_THAT(table, HasSubstr(CountsText(report)));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"lower_bound_seconds\":"));
}

// Options of a schedule have commas between them, its file any name.
TEST(ViewsTest, CommasAndQuotesStayInTheirFields) {
  PlanReport report;
  Scenario& scenario = *report.add_plans()->mutable_scenario();
  scenario.set_schedule("./a \"b\".csv:x=1,y=2");
  for (int blocks : {1, 2, 2}) {
    scenario.mutable_parallelism()->add_blocks_per_stage(blocks);
  }
  const auto table = ReadCsv("plans", PlanCsv(report));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<std::string>& row = table->rows()[0].fields;
  EXPECT_THAT(row, Contains("./a \"b\".csv:x=1,y=2"));
  EXPECT_THAT(row, Contains("1,2*2"));
}

}  // namespace
}  // namespace weir
