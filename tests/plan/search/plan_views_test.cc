// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "base/csv.h"
#include "base/text_table.h"
#include "plan/search/joint_search.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::plan_views_test {

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

TEST(ViewsTest, ExpertParallelismHasAColumnWhereThereIsSome) {
  PlanReport report;
  for (const uint32_t expert : {1, 1}) {
    Plan& plan = *report.add_plans();
    plan.set_source("joint");
    plan.mutable_scenario()->mutable_parallelism()->set_expert(expert);
  }
  EXPECT_THAT(PlanTable(report, false), Not(HasSubstr(" ep ")));
  report.mutable_plans(1)
      ->mutable_scenario()
      ->mutable_parallelism()
      ->set_expert(8);
  EXPECT_THAT(PlanTable(report, false), HasSubstr(" ep "));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"expert\":8"));
}

TEST(ViewsTest, SaysWhatWasSearchedWithin) {
  const PlanReport report = Report("zb-h1");
  const std::string table = PlanTable(report, false);
  EXPECT_THAT(table, HasSubstr("schedules considered: zb-h1\n"));
  EXPECT_THAT(table, HasSubstr("zb-h1 (!)"));
  EXPECT_THAT(table, HasSubstr("(!) the runtime megatron-lm does not execute "
                               "this schedule\n"));
  EXPECT_THAT(table, HasSubstr("memory limit: "));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"runtime_executes\":false"));
}

TEST(ViewsTest, EveryPlanIsARowInEveryView) {
  const PlanReport report = Report("1f1b");
  const std::string table = PlanTable(report, /*explain=*/true);
  const std::string unwrapped = absl::StrReplaceAll(table, {{"\n  ", " "}});
  const std::string csv = PlanCsv(report);
  for (int i = 1; i < report.plans_size(); ++i) {
    EXPECT_THAT(unwrapped, HasSubstr(report.plans(i).why_not_best()));
  }
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + report.plans_size());
  EXPECT_THAT(table, HasSubstr(WrapText(CountsText(report))));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"lower_bound_seconds\":"));
}

TEST(ViewsTest, LayersAreShortInEveryForm) {
  PlanReport report;
  Scenario& scenario = *report.add_plans()->mutable_scenario();
  scenario.set_schedule("1f1b");
  EXPECT_THAT(PlanTable(report, false), HasSubstr("  even\n"));
  scenario.mutable_parallelism()->set_layout("E|t*2|(tt|)*30,t|L");
  EXPECT_THAT(PlanTable(report, false), HasSubstr("  0,2*31,1,0\n"));
}

TEST(ViewsTest, ShowsWhatTrainingCosts) {
  PlanReport report;
  report.mutable_request()->set_flops_formula("model");
  Plan& plan = *report.add_plans();
  plan.set_num_gpus(500);
  plan.set_batch_seconds(10);
  plan.set_samples_per_second(100);
  plan.mutable_flops_per_batch()->set_model(2e18);
  Scenario& scenario = *plan.mutable_scenario();
  scenario.set_schedule("1f1b");
  scenario.mutable_batch()->set_sequence_length(2000);
  // 2e5 tokens per second.
  std::string table = PlanTable(report, false);
  EXPECT_THAT(table, HasSubstr("tokens/s/GPU  TFLOP/s/GPU (model)"));
  EXPECT_THAT(table, testing::ContainsRegex("400 +400 "));
  EXPECT_THAT(table, HasSubstr("training on 1.00 B tokens"));
  EXPECT_THAT(table, Not(HasSubstr("price")));
  report.mutable_request()->set_tokens(1.728e12);
  report.mutable_request()->set_price_per_gpu_hour(2);
  // 100 days, 1.2e6 GPU-hours.
  table = PlanTable(report, false);
  EXPECT_THAT(table, HasSubstr("plan  GPU-hours  days   price"));
  EXPECT_THAT(table, HasSubstr("1        1.20 M   100  2.40 M"));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"gpu_hours\":1200000"));
  EXPECT_THAT(PlanJson(report), HasSubstr("\"price\":2400000"));
}

// Options of a schedule are separated by commas, and its file may have any
// name.
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

}  // namespace weir::plan::plan_views_test
