// SPDX-License-Identifier: Apache-2.0
// weir schedule synthesize, and that what it writes is read by the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/program.h"

namespace weir {
namespace {

using testing::HasSubstr;

constexpr char kCosts[] = " --costs f=1,i=1.1,w=0.8,c=1";

std::string Scratch(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "weir_synthesize_", getpid(), "_",
                      name);
}

TEST(SynthesizeProgramTest, WhatItWritesIsLintedAndSimulated) {
  const std::string csv = Scratch("best.csv");
  const ProgramRun run =
      RunWeir(absl::StrCat("schedule synthesize --pp 4 --microbatches 12 "
                           "--memory-limit 6 --method local --out ",
                           csv, kCosts));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("optimal for these stage times, proven"));
  EXPECT_THAT(run.out, HasSubstr("simulated: 44.9 s"));
  EXPECT_EQ(RunWeir(absl::StrCat("schedule lint ", csv)).exit_code, 0);
  const ProgramRun simulated =
      RunWeir(absl::StrCat("simulate --schedule ", csv, kCosts));
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
  const ProgramRun run =
      RunWeir(absl::StrCat("schedule synthesize --memory-limit 0.5", kCosts));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("nothing fits a memory limit of 0.5 microbatches: one "
                        "microbatch at a time needs 1: raise --memory-limit"));
}

}  // namespace
}  // namespace weir
