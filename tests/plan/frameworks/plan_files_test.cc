// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/plan_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/textproto.h"
#include "plan/search/joint_search.h"
#include "schedules/interop/schedule_text.h"
#include "sim/simulate.h"
#include "tests/plan/search/small_requests.h"

namespace weir::plan::plan_files_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

PlanReport Report(const std::string& schedule) {
  PlanRequest request = SmallRequest(6, 4, 8);
  request.mutable_space()->add_pipeline(4);
  request.mutable_space()->add_microbatch_size(1);
  request.mutable_space()->add_schedules(schedule);
  auto report = SearchPlans("test", request);
  EXPECT_TRUE(report.ok()) << report.status();
  return *std::move(report);
}

TEST(PlanFilesTest, TheScenarioSimulatesToTheSameSeconds) {
  const PlanReport report = Report("1f1b");
  for (int i = 0; i < report.plans_size(); ++i) {
    const auto files = FilesOfPlan(report.plans(i), i + 1, {});
    ASSERT_TRUE(files.ok()) << files.status();
    const PlanFile& file = files->files[0];
    Scenario scenario;
    ASSERT_TRUE(ParseTextProto(file.name, file.contents, &scenario).ok());
    const auto resolved = scenarios::ResolveScenario(file.name, scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    EXPECT_EQ(sim::Simulate(*resolved)->batch_seconds(),
              report.plans(i).batch_seconds());
  }
}

const PlanFile* Find(const PlanFiles& files, const std::string& name) {
  for (const PlanFile& file : files.files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

TEST(PlanFilesTest, UnevenCutsAreALayoutForMegatron) {
  const PlanReport report = Report("1f1b");
  bool uneven = false;
  for (const Plan& plan : report.plans()) {
    const auto files = FilesOfPlan(plan, 1, {});
    ASSERT_TRUE(files.ok());
    EXPECT_THAT(files->warnings, IsEmpty());
    const PlanFile* file = Find(*files, "plan-1.args");
    ASSERT_NE(file, nullptr);
    const std::string& arguments = file->contents;
    EXPECT_THAT(arguments, HasSubstr("--pipeline-model-parallel-size 4\n"));
    EXPECT_THAT(arguments, HasSubstr("--micro-batch-size 1\n"));
    uneven |= arguments.find("--pipeline-model-parallel-layout \"E") !=
              std::string::npos;
  }
  EXPECT_TRUE(uneven);
}

// Arguments that start a different run would be worse than none.
TEST(PlanFilesTest, APlanThatMegatronCannotRunHasNoArguments) {
  const auto files = FilesOfPlan(Report("zb-h1").plans(0), 1, {});
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(Find(*files, "plan-1.args"), nullptr);
  EXPECT_NE(Find(*files, "plan-1.csv"), nullptr);
  EXPECT_THAT(
      files->warnings,
      Contains(HasSubstr("no plan-1.args, as Megatron-LM cannot run "
                         "this plan: it does not have the schedule zb-h1")));
}

TEST(PlanFilesTest, TheCsvHoldsTheOrderThatWasSimulated) {
  const PlanReport report = Report("zb-1p");
  const Plan& plan = report.plans(0);
  const auto files = FilesOfPlan(plan, 1, {});
  ASSERT_TRUE(files.ok());
  const auto resolved = scenarios::ResolveScenario("test", plan.scenario());
  ASSERT_TRUE(resolved.ok());
  const PlanFile* file = Find(*files, "plan-1.csv");
  ASSERT_NE(file, nullptr);
  const auto rows = schedules::ParseCsv("plan.csv", file->contents);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, sim::ScheduleOfScenario(*resolved, 1)->rank_actions);
}

// A plan names files relative to the folder in which it was made.
TEST(PlanFilesTest, ThePlanOfAModelFileRunsFromAnyFolder) {
  const std::filesystem::path home = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "emit_anywhere";
  std::filesystem::create_directories(folder / "elsewhere");
  std::filesystem::current_path(folder);
  std::ofstream("config.json")
      << R"({"model_type": "gpt2", "n_layer": 4, "n_embd": 256, "n_head": 4,
             "vocab_size": 1024, "n_positions": 128})";
  std::filesystem::copy_file(std::filesystem::path(WEIR_SOURCE_DIR) /
                                 "scenarios/cluster/presets/dgx-a100.textproto",
                             "cluster.textproto",
                             std::filesystem::copy_options::overwrite_existing);
  Plan plan;
  Scenario& scenario = *plan.mutable_scenario();
  scenario.set_model("config.json");
  scenario.set_cluster("./cluster.textproto");
  scenario.set_num_nodes(1);
  scenario.set_schedule("1f1b");
  scenario.mutable_parallelism()->set_pipeline(2);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(4);
  const auto there = scenarios::ResolveScenario("there", scenario);
  const auto files = FilesOfPlan(plan, 1, {});
  std::filesystem::current_path(folder / "elsewhere");
  ASSERT_TRUE(there.ok()) << there.status();
  ASSERT_TRUE(files.ok()) << files.status();
  Scenario read;
  ASSERT_TRUE(ParseTextProto("plan", files->files[0].contents, &read).ok());
  const auto resolved = scenarios::ResolveScenario("elsewhere", read);
  std::filesystem::current_path(home);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(sim::Simulate(*resolved)->batch_seconds(),
            sim::Simulate(*there)->batch_seconds());
}

TEST(PlanFilesTest, AreThoseOfTheRuntimeOrOfTheNamedFrameworks) {
  Plan plan;
  plan.mutable_scenario()->set_runtime("torchtitan-compile");
  EXPECT_THAT(FrameworksOf({plan}, {}),
              testing::ElementsAre(Framework::kTorchtitan));
  plan.mutable_scenario()->set_runtime("nemo");
  EXPECT_THAT(FrameworksOf({plan}, {}), testing::ElementsAre(Framework::kNemo));
  plan.mutable_scenario()->clear_runtime();
  EXPECT_THAT(FrameworksOf({plan}, {}),
              testing::ElementsAre(Framework::kMegatron));
  EXPECT_THAT(FrameworksOf({plan}, {"nemo", "megatron", "nemo"}),
              testing::ElementsAre(Framework::kNemo, Framework::kMegatron));
}

}  // namespace weir::plan::plan_files_test
