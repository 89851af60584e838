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
using testing::Not;

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
  EXPECT_EQ(jobs[0]["job"], 1);
  EXPECT_EQ(jobs[0]["shares_with"], nlohmann::json::parse("[2]"));
  EXPECT_EQ(jobs[1]["shares_with"], nlohmann::json::parse("[1]"));
  const ProgramRun table = RunWeir(absl::StrCat(
      "jobs ", job, " ", job, " --first-gpus 0,1 --wide -o jobs.pb"));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("shares links with"));
  EXPECT_EQ(RunWeir("show jobs.pb").exit_code, 0);
}

nlohmann::json JobsOf(const ProgramRun& run) {
  const auto json = nlohmann::json::parse(run.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << run.out << run.err;
  return json.is_discarded() ? nlohmann::json() : json["result"]["jobs"];
}

// The preset has an order of parallel dimensions.
TEST(JobsCommandTest, PresetsAreOneAfterTheOther) {
  const ProgramRun run = RunWeir(
      "jobs llama-3-70b-64-h100 llama-3-70b-64-h100 --nodes 16 --format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json jobs = JobsOf(run);
  ASSERT_EQ(jobs.size(), 2u);
  // tp-dp-pp: tensor ranks are adjacent, then data-parallel ranks; pipeline
  // rank 1 is on the next node.
  for (size_t job = 0; job < 2; ++job) {
    ASSERT_EQ(jobs[job]["gpus"].size(), 64u);
    EXPECT_EQ(jobs[job]["gpus"][3], 64 * job + 3);
    EXPECT_EQ(jobs[job]["gpus"][4], 64 * job + 8);
    EXPECT_EQ(jobs[job]["gpus"][32], 64 * job + 4);
  }
}

TEST(JobsCommandTest, FirstGpuIsTheSmallest) {
  const std::string job = WriteInput(
      "late.textproto",
      "model: \"gpt2\"\ncluster: \"dgx-h100\"\nnum_nodes: 3\n"
      "schedule: \"1f1b\"\nparallelism { pipeline: 2 data: 1 gpus: 16 gpus: 8 "
      "}\nbatch { microbatch_size: 4 global_batch_size: 16 sequence_length: "
      "512 "
      "}\n");
  const auto gpus = [&](absl::string_view flags) {
    return JobsOf(RunWeir(absl::StrCat("jobs ", job, " --format json", flags)))
        .at(0)["gpus"];
  };
  EXPECT_EQ(gpus(" --first-gpus 4"), nlohmann::json::parse("[12, 4]"));
  EXPECT_EQ(gpus(""), nlohmann::json::parse("[16, 8]"));
}

TEST(JobsCommandTest, JobsOutOfMemoryAreNamed) {
  const std::string job = JobFile("job.textproto");
  const std::string big = WriteInput(
      "big.textproto",
      "model: \"llama-3-70b\"\ncluster: \"dgx-h100\"\nnum_nodes: 1\n"
      "schedule: \"1f1b\"\nparallelism { tensor: 8 pipeline: 1 data: 1 }\n"
      "cluster_changes { topology: FAT_TREE nodes_per_leaf: 1 "
      "oversubscription: 8 }\n"
      "batch { microbatch_size: 1 global_batch_size: 1 sequence_length: 4096 "
      "}\n");
  const std::string command = absl::StrCat("jobs ", job, " ", big);
  const ProgramRun table = RunWeir(command);
  EXPECT_EQ(table.exit_code, 1) << table.err;
  EXPECT_THAT(table.out, HasSubstr("job 2 (big.textproto): peak memory "));
  EXPECT_THAT(table.out, HasSubstr(" over the limit"));
  EXPECT_THAT(table.out, Not(HasSubstr("job 1 (")));
  const ProgramRun run = RunWeir(absl::StrCat(command, " --format json"));
  EXPECT_EQ(run.exit_code, 1) << run.err;
  const nlohmann::json jobs = JobsOf(run);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["fits_memory"], true);
  EXPECT_EQ(jobs[1]["fits_memory"], false);
  EXPECT_GT(jobs[1]["peak_memory_bytes"], jobs[0]["peak_memory_bytes"]);
}

TEST(JobsCommandTest, TooFewNodesNameTheJob) {
  const std::string job = JobFile("job.textproto");
  const ProgramRun run = RunWeir(
      absl::StrCat("jobs ", job, " ", job, " --first-gpus 0,16 --nodes 3"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("--nodes: 3, expected at least 4, since job 2 "
                        "(job.textproto) uses GPU 24 and nodes have 8 GPUs"));
}

TEST(JobsCommandTest, HugeFirstGpusAreRejected) {
  const std::string job = JobFile("job.textproto");
  const ProgramRun run =
      RunWeir(absl::StrCat("jobs ", job, " --first-gpus 2147483647"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--first-gpus: job 1 (job.textproto) uses GPU "
                                 "2147483655, expected numbers up to 1048575"));
}

TEST(JobsCommandTest, BadJobsAreNamed) {
  const std::string job = JobFile("job.textproto");
  EXPECT_THAT(RunWeir(absl::StrCat("jobs ", job, " ", job)).err,
              HasSubstr("uses GPU 0, which job 1"));
  EXPECT_THAT(
      RunWeir(absl::StrCat("jobs ", job, " ", job, " --first-gpus 0")).err,
      HasSubstr("--first-gpus has 1 numbers, expected one for each of 2 jobs"));
  EXPECT_THAT(RunWeir("jobs given-costs-1f1b").err,
              HasSubstr("has given costs"));
}

}  // namespace weir::cli::jobs_test
