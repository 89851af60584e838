// SPDX-License-Identifier: Apache-2.0
// Tests weir schedule synthesize, and reads its output with the other commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/child_program.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::plan::cli_synthesize_test {

using testing::HasSubstr;

constexpr char kCosts[] = " --costs f=1,i=1.1,w=0.8,c=1";

std::string Scratch(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "weir_synthesize_", getpid(), "_",
                      name);
}

TEST(SynthesizeProgramTest, WhatItWritesIsLintedAndSimulated) {
  const std::string csv = Scratch("best.csv");
  const cli::ProgramRun run =
      cli::RunWeir(absl::StrCat("schedule synthesize --pp 4 --microbatches 12 "
                                "--memory-limit 6 --method local --out ",
                                csv, kCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("proven optimal for these stage times"));
  EXPECT_THAT(run.out, HasSubstr("simulated: 44.9 s"));
  EXPECT_EQ(cli::RunWeir(absl::StrCat("schedule lint ", csv)).exit_code, 0);
  const cli::ProgramRun simulated =
      cli::RunWeir(absl::StrCat("simulate --schedule ", csv, kCosts));
  EXPECT_EQ(simulated.exit_code, 0);
  EXPECT_THAT(simulated.out, HasSubstr("44.9 s"));
  const auto proof = ReadFile(csv + ".proof.json");
  ASSERT_TRUE(proof.ok());
  EXPECT_THAT(*proof, HasSubstr("\"is_proven_optimal\": true"));
  EXPECT_THAT(*proof, HasSubstr("\"lint_errors\": 0"));
  std::filesystem::remove(csv);
  std::filesystem::remove(csv + ".proof.json");
}

TEST(SynthesizeProgramTest, SaysWhatALimitTooLowNeeds) {
  const cli::ProgramRun run = cli::RunWeir(
      absl::StrCat("schedule synthesize --memory-limit 0.5", kCosts));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(
      run.err,
      HasSubstr("no order fits in a memory limit of 0.5 microbatches; even "
                "one microbatch at a time needs 1 (--memory-limit)"));
}

// The file is refused before the search.
TEST(SynthesizeProgramTest, OffloadsGoIntoNoCsv) {
  const cli::ProgramRun run = cli::RunWeir(
      "schedule synthesize --offload --seconds 1e6 --out best.csv --costs h=1");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--out is best.csv, expected a .json file"));
}

// The order in the file takes the time that the proof states, with the proof's
// costs. The file is in PyTorch's CSV, or in JSON if there are offloads.
TEST(SynthesizeProgramTest, TheProofCanBeCheckedWithNothingElse) {
  struct Case {
    std::string file, asked;
  };
  for (const Case& one :
       {Case{"tight.csv",
             "--pp 3 --microbatches 5 --memory-limit 2 --moves 3000 "
             "--costs f=1/1.3/0.7,i=1.1,w=0.8,c=0.1"},
        Case{"v.csv",
             "--pp 3 --chunks 2 --microbatches 5 --moves 3000 "
             "--costs f=1/1/1/1/1/1.7,i=1.1/1/1/1/1/2,w=0.8,c=0.3"},
        Case{"host.json",
             "--pp 4 --microbatches 12 --memory-limit 2 --moves 6000 --offload "
             "--costs f=1,i=1.1,w=0.8,c=0.1,a=4,g=1,h=3"}}) {
    const std::string path = Scratch(one.file);
    const cli::ProgramRun run = cli::RunWeir(
        absl::StrCat("schedule synthesize --method local --quiet --out ", path,
                     " ", one.asked));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto text = ReadFile(path + ".proof.json");
    ASSERT_TRUE(text.ok());
    const auto proof = nlohmann::json::parse(*text);
    EXPECT_TRUE(proof["is_valid"]);
    EXPECT_EQ(proof["lint_errors"], 0);
    EXPECT_EQ(proof["num_offloads"] > 0, one.file == "host.json");
    EXPECT_EQ(proof["mixed_integer_program"], "not used");
    for (const auto& held : proof["peak_held_per_rank"]) {
      EXPECT_LE(held, proof["memory_limit"].get<double>() * (1 + 1e-9));
    }
    const double seconds = proof["makespan_seconds"];
    EXPECT_GE(seconds, proof["lower_bound_seconds"].get<double>() - 1e-9);
    EXPECT_NEAR(proof["gap"],
                seconds / proof["lower_bound_seconds"].get<double>() - 1, 1e-9);
    EXPECT_EQ(cli::RunWeir(absl::StrCat("schedule lint ", path)).exit_code, 0);
    const cli::ProgramRun again = cli::RunWeir(
        absl::StrCat("simulate --format json --schedule ", path, " --costs ",
                     proof["costs"].get<std::string>()));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    const auto result = nlohmann::json::parse(again.out);
    EXPECT_NEAR(result["result"]["makespan_seconds"], seconds, 1e-9 * seconds)
        << again.out.substr(0, 500);
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".proof.json");
  }
}

// CBC's summary is one of the few texts created while the result is written.
// Checks that it is complete in JSON, CSV and the proof.
TEST(SynthesizeProgramTest, WritesWhatCbcFound) {
  if (FindProgram("cbc").empty()) GTEST_SKIP() << "coinor-cbc is not installed";
  const std::string asked =
      "schedule synthesize --pp 2 --microbatches 5 --memory-limit 2 "
      "--costs f=1/1.5,i=1.2/1,w=0.7/0.9,c=0.3 --quiet";
  const std::string said = "60 binary variables: optimal, proven";
  const std::string csv = Scratch("cbc.csv");
  const cli::ProgramRun json =
      cli::RunWeir(absl::StrCat(asked, " --format json --out ", csv));
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto result = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << json.out;
  EXPECT_EQ(result["result"]["mixed_integer_program"], said);
  const auto text = ReadFile(csv + ".proof.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto proof = nlohmann::json::parse(*text, nullptr, false);
  ASSERT_TRUE(proof.is_object()) << *text;
  EXPECT_EQ(proof["mixed_integer_program"], said);
  const cli::ProgramRun table =
      cli::RunWeir(absl::StrCat(asked, " --format csv"));
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr(absl::StrCat(",\"", said, "\"\n")));
  std::filesystem::remove(csv);
  std::filesystem::remove(csv + ".proof.json");
}

TEST(SynthesizeProgramTest, TakesWhatIsHardlyAProblem) {
  const std::string brief = "--pp 3 --microbatches 4 --seconds 1 --moves 500";
  for (const std::string& asked : std::vector<std::string>{
           "--pp 1 --microbatches 3",
           "--pp 4 --microbatches 1 --memory-limit 1",
           "--pp 2 --microbatches 3 --costs f=1,i=0,w=0",
           brief + " --memory-limit 1 --offload --costs f=1,i=1,w=1,h=0",
           brief + " --memory-limit 2"}) {
    const cli::ProgramRun run =
        cli::RunWeir(absl::StrCat("schedule synthesize ", asked));
    EXPECT_EQ(run.exit_code, 0) << asked << run.err;
    EXPECT_THAT(run.out, HasSubstr("found")) << asked;
  }
}

TEST(SynthesizeProgramTest, WithoutCbcItSaysSoAndGoesOn) {
  const std::string asked =
      "schedule synthesize --pp 4 --microbatches 6 --memory-limit 3 --moves "
      "100 --costs f=1/1/1/2,i=1.1,w=0.8,c=1 --method ";
  // PATH has only the programs that RunWeir itself needs.
  const std::string bare =
      "mkdir -p bare && ln -sf $(command -v timeout) bare/ && PATH=bare";
  const cli::ProgramRun found =
      cli::RunWeirAfter(bare, absl::StrCat(asked, "auto"));
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.err, HasSubstr("coinor-cbc"));
  EXPECT_THAT(found.out, HasSubstr("found"));
  EXPECT_EQ(cli::RunWeirAfter(bare, absl::StrCat(asked, "milp")).exit_code, 3);
}

}  // namespace weir::plan::cli_synthesize_test
