// SPDX-License-Identifier: Apache-2.0
// Tests features that flags switch on and off: what tables and JSON say about
// them, flags without effect, and the spelling of messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::features_test {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kDense[] =
    "--model gpt2 --cluster dgx-h100 --nodes 1 --pp 4 --dp 2 --gbs 16 --seq "
    "1024 --schedule 1f1b --flash-attention";
constexpr char kExperts[] =
    "--model qwen3-30b-a3b --cluster dgx-h100 --nodes 2 --pp 2 --dp 8 --gbs 16 "
    "--seq 4096 --schedule 1f1b";

// Further fields of the scenario of kDense.
struct Fields {
  std::string parallelism = "", batch = "", training = "";
};

// Writes the scenario and returns its path.
std::string ScenarioFile(const Fields& more) {
  return WriteInput(
      "scenario.textproto",
      absl::StrCat("model: \"gpt2\" cluster: \"dgx-h100\" num_nodes: 1 "
                   "schedule: \"1f1b\" parallelism { pipeline: 4 data: 2 ",
                   more.parallelism,
                   "} batch { global_batch_size: 16 sequence_length: 1024 ",
                   more.batch, "} training { flash_attention: true ",
                   more.training, "}"));
}

Json ResultOf(const std::string& arguments) {
  const ProgramRun run =
      RunWeir(absl::StrCat("simulate --format json ", arguments));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return Json::parse(run.out, nullptr, false)["result"];
}

// Checks that the flag removes what the fields set, and nothing else.
void ExpectSwitchedOff(const Fields& fields, const std::string& flag) {
  const Json with = ResultOf(ScenarioFile(fields));
  const Json without = ResultOf(ScenarioFile({}));
  const Json off = ResultOf(absl::StrCat(ScenarioFile(fields), " ", flag));
  EXPECT_NE(with["batch_seconds"], without["batch_seconds"]) << flag;
  EXPECT_EQ(off.dump(), without.dump()) << flag;
}

TEST(FeaturesTest, FlagsSwitchOffWhatAFileSets) {
  ExpectSwitchedOff(
      {.parallelism = "vocabulary_parallel: VOCABULARY_ONE_BARRIER"},
      "--vocabulary-parallel none");
  ExpectSwitchedOff({.batch = "packed_sequences { fixed: 128 }"},
                    "--packed-sequences none");
  ExpectSwitchedOff({.training = "lora { rank: 16 }"}, "--lora-rank 0");
}

TEST(FeaturesTest, FlagsThatSwitchOffNothingChangeNothing) {
  EXPECT_EQ(ResultOf(absl::StrCat(ScenarioFile({}),
                                  " --vocabulary-parallel none "
                                  "--packed-sequences none --lora-rank 0"))
                .dump(),
            ResultOf(ScenarioFile({})).dump());
}

TEST(FeaturesTest, TablesAndJsonShowFeatures) {
  const std::string flags = absl::StrCat(
      kDense,
      " --lora-rank 16 --lora-target-modules linear_qkv,linear_proj "
      "--packed-sequences uniform:100-400 --vocabulary-parallel one-barrier");
  EXPECT_THAT(ResultOf(flags)["features"],
              ElementsAre("sharded vocabulary with one barrier",
                          "documents of 100 to 400 tokens",
                          "LoRA of rank 16 in linear_qkv and linear_proj"));
  for (const char* command : {"simulate ", "compare "}) {
    const ProgramRun run = RunWeir(absl::StrCat(command, flags));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(absl::StrReplaceAll(run.out, {{"\n  ", " "}, {"\n", " "}}),
                HasSubstr("features: sharded vocabulary with one barrier, "
                          "documents of 100 to 400 tokens, LoRA of rank 16"));
  }
  const ProgramRun fast =
      RunWeir(absl::StrCat("simulate --method fast ", flags));
  EXPECT_THAT(fast.out, HasSubstr("features")) << fast.err;
}

TEST(FeaturesTest, SizesOfExpertsAreInTheShape) {
  const ProgramRun run =
      RunWeir(absl::StrCat("simulate ", kExperts, " --ep 8 ",
                           "--moe-token-dispatcher-type flex "
                           "--dispatch-format fp8 --optimizer muon"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string out =
      absl::StrReplaceAll(run.out, {{"\n  ", " "}, {"\n", " "}});
  EXPECT_THAT(out, HasSubstr(", expert 8"));
  EXPECT_THAT(out, HasSubstr("features: Muon, dispatch in fp8, DeepEP"));
}

TEST(FeaturesTest, ResultsWithoutFeaturesSayNothing) {
  EXPECT_FALSE(ResultOf(kDense).contains("features"));
  EXPECT_THAT(RunWeir(absl::StrCat("simulate ", kDense)).out,
              Not(HasSubstr("features")));
}

TEST(FeaturesTest, FlagsWithoutEffectAreReported) {
  const ProgramRun alone = RunWeir(absl::StrCat(
      "simulate ", kExperts, " --expert-imbalance 2 --dispatch-format fp8"));
  EXPECT_LE(alone.exit_code, 1) << alone.err;  // 1: does not fit
  EXPECT_THAT(alone.err, HasSubstr("--expert-imbalance 2 has no effect: with "
                                   "--ep 1, every GPU has all experts"));
  EXPECT_THAT(alone.err, HasSubstr("--dispatch-format fp8 has no effect"));
  const ProgramRun dense =
      RunWeir(absl::StrCat("simulate ", kDense, " --dispatch-format fp8"));
  EXPECT_THAT(dense.err, HasSubstr("--dispatch-format fp8 has no effect: the "
                                   "model has no experts"));
  const ProgramRun divided = RunWeir(
      absl::StrCat("simulate ", kExperts, " --ep 8 --expert-imbalance 2"));
  EXPECT_THAT(divided.err, Not(HasSubstr("no effect")));
}

TEST(FeaturesTest, OverlappedExchangesAreShownAndNeedPairs) {
  const std::string experts =
      absl::StrCat(kExperts, " --ep 8 --overlap-moe-expert-parallel-comm");
  EXPECT_THAT(ResultOf(experts)["features"].dump(),
              HasSubstr("exchanges of experts overlap"));
  const std::string no_effect =
      "overlapped exchanges of experts have no effect: in gpipe";
  EXPECT_THAT(RunWeir(absl::StrCat("simulate ", experts)).err,
              Not(HasSubstr("no effect")));
  const std::string err =
      RunWeir(absl::StrCat("simulate ", experts, " --schedule gpipe")).err;
  EXPECT_THAT(absl::StrReplaceAll(err, {{"\n  ", " "}}), HasSubstr(no_effect));
}

void ExpectRefused(const std::string& flags, const std::string& message) {
  const ProgramRun run = RunWeir(absl::StrCat("simulate ", flags));
  EXPECT_EQ(run.exit_code, 2) << flags;
  EXPECT_THAT(run.err, HasSubstr(message)) << flags;
}

TEST(FeaturesTest, DispatchersMustAgree) {
  ExpectRefused(absl::StrCat(kExperts,
                             " --ep 8 --moe-enable-deepep "
                             "--moe-token-dispatcher-type alltoall"),
                "--moe-enable-deepep contradicts --moe-token-dispatcher-type "
                "alltoall");
  EXPECT_EQ(
      ResultOf(absl::StrCat(kExperts,
                            " --ep 8 --moe-enable-deepep "
                            "--moe-token-dispatcher-type flex"))["features"]
          .dump(),
      "[\"DeepEP\"]");
}

TEST(FeaturesTest, BackendsOfTheFlexDispatcher) {
  const auto features = [](const std::string& flags) {
    return ResultOf(absl::StrCat(kExperts, " --ep 8 ", flags))["features"]
        .dump();
  };
  EXPECT_EQ(features("--moe-flex-dispatcher-backend hybridep"),
            "[\"HybridEP\"]");
  EXPECT_EQ(features("--moe-token-dispatcher-type flex "
                     "--moe-flex-dispatcher-backend hybridep "
                     "--moe-hybridep-num-sms 24"),
            "[\"HybridEP with 24 multiprocessors\"]");
  EXPECT_EQ(features("--moe-flex-dispatcher-backend deepep"), "[\"DeepEP\"]");
  ExpectRefused(absl::StrCat(kExperts,
                             " --ep 8 --moe-flex-dispatcher-backend hybridep "
                             "--moe-token-dispatcher-type alltoall"),
                "--moe-flex-dispatcher-backend is hybridep, which requires "
                "--moe-token-dispatcher-type flex");
  ExpectRefused(absl::StrCat(kExperts,
                             " --ep 8 --moe-flex-dispatcher-backend hybridep "
                             "--moe-enable-deepep"),
                "--moe-enable-deepep contradicts "
                "--moe-flex-dispatcher-backend hybridep");
  ExpectRefused(absl::StrCat(kExperts,
                             " --ep 8 --moe-token-dispatcher-type flex "
                             "--moe-hybridep-num-sms 8"),
                "--moe-hybridep-num-sms is given with DeepEP");
  ExpectRefused(absl::StrCat(kExperts,
                             " --ep 8 --moe-flex-dispatcher-backend hybridep "
                             "--moe-deepep-num-sms 8"),
                "--moe-deepep-num-sms is given with HybridEP");
}

TEST(FeaturesTest, MessagesSpellValuesLikeFlags) {
  ExpectRefused(absl::StrCat(kDense, " --moe-token-dispatcher-type flex"),
                "--moe-token-dispatcher-type is flex, expected none");
  ExpectRefused(absl::StrCat(kDense, " --optimizer muon --lora-rank 8"),
                "--optimizer is muon, expected adam or sgd with --lora-rank");
  ExpectRefused(
      absl::StrCat(kDense, " --pp 1 --dp 8 --vocabulary-parallel one-barrier"),
      "--vocabulary-parallel is one-barrier, expected at least 2");
  ExpectRefused(absl::StrCat(kDense, " --packed-sequences 0"),
                "--packed-sequences is 0, expected 1 to");
  ExpectRefused(absl::StrCat(kDense, " --packed-sequences 100.5"),
                "--packed-sequences is 100.5, expected a whole number");
  ExpectRefused(absl::StrCat(kDense, " --lora-rank 70000"),
                "--lora-rank is 70000, expected a whole number from 0 (none) "
                "to 65536");
}

TEST(FeaturesTest, LengthsHaveUnits) {
  EXPECT_EQ(ResultOf(absl::StrCat(kDense, " --packed-sequences 0.25k")).dump(),
            ResultOf(absl::StrCat(kDense, " --packed-sequences 256")).dump());
}

TEST(FeaturesTest, SwitchesWithTwoNamesAreShownLikeOthers) {
  const ProgramRun run = RunWeir("simulate --help");
  EXPECT_THAT(run.out, HasSubstr("--post-validation,--no-post-validation\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("{false}")));
}

}  // namespace weir::cli::features_test
