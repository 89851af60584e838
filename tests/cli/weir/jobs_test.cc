// SPDX-License-Identifier: Apache-2.0
// Runs weir jobs as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::jobs_test {

using testing::HasSubstr;

// Two pipeline stages on one GPU each of two nodes.
std::string JobFile(const std::string& name) {
  return WriteInput(name,
                    "model: \"gpt2\"\ncluster: \"dgx-h100\"\nnum_nodes: 2\n"
                    "schedule: \"1f1b\"\n"
                    "cluster_changes { topology: FAT_TREE nodes_per_leaf: 1 "
                    "oversubscription: 8 }\n"
                    "parallelism { pipeline: 2 data: 1 gpus: 0 gpus: 8 }\n"
                    "batch { microbatch_size: 4 global_batch_size: 16 "
                    "sequence_length: 512 }\n");
}

TEST(JobsCommandTest, SharedLinksSlowJobsDown) {
  const std::string job = JobFile("job.textproto");
  // The second job has the next GPU of both nodes.
  const ProgramRun run = RunWeir(absl::StrCat(
      "jobs ", job, " ", job, " --first-gpus 0,1 --nodes 2 --format json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto jobs = nlohmann::json::parse(run.out)["result"]["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1]["gpus"], nlohmann::json::parse("[1, 9]"));
  for (const auto& each : jobs) {
    EXPECT_GT(each["slowdown"].get<double>(), 1.0);
    EXPECT_EQ(each["num_steps"], 1);
  }
  EXPECT_EQ(jobs[0]["shares_with"], nlohmann::json::parse("[1]"));
  const ProgramRun table = RunWeir(
      absl::StrCat("jobs ", job, " ", job, " --first-gpus 0,1 -o jobs.pb"));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("shares links with"));
  EXPECT_EQ(RunWeir("show jobs.pb").exit_code, 0);
}

TEST(JobsCommandTest, BadJobsAreNamed) {
  const std::string job = JobFile("job.textproto");
  EXPECT_THAT(RunWeir(absl::StrCat("jobs ", job, " ", job)).err,
              HasSubstr("uses GPU 0 as job 1"));
  EXPECT_THAT(
      RunWeir(absl::StrCat("jobs ", job, " ", job, " --first-gpus 0")).err,
      HasSubstr("--first-gpus has 1 numbers, expected one for each of 2 jobs"));
  EXPECT_THAT(RunWeir("jobs given-costs-1f1b").err,
              HasSubstr("has given costs"));
}

}  // namespace weir::cli::jobs_test
