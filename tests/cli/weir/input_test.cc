// SPDX-License-Identifier: Apache-2.0
// Checks that bad files and bad numbers give exit code 2, a message with the
// file and the field, and nothing on standard output, without crashing or
// waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::input_test {

using testing::HasSubstr;
using testing::IsEmpty;

void ExpectRefused(const std::string& arguments, const std::string& message) {
  const ProgramRun run = RunWeir(arguments);
  EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.err;
  EXPECT_THAT(run.out, IsEmpty()) << arguments;
  EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  for (absl::string_view line :
       absl::StrSplit(run.err, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::StartsWith(line, "error: ")) << line;
  }
}

constexpr char kCluster[] = R"(
name: "two"
groups { count: 1 node { name: "n" num_gpus: 2 device: "v100-sxm2-16gb"
  nv_switch { bytes_per_second: 1e11 latency_seconds: 1e-6 }
  nics { bytes_per_second: 1e10 } } }
fabric { latency_seconds: 1e-6 }
)";

// Writes a valid scenario with additional text and returns its path.
std::string ScenarioFile(const std::string& more) {
  WriteInput("cluster.textproto", kCluster);
  WriteInput("model.textproto", R"(name: "tiny" transformer {
    num_layers: 4 hidden_size: 64 num_heads: 4 vocabulary_size: 128
    num_positions: 32 })");
  return WriteInput("scenario.textproto", absl::StrCat(R"(
      name: "tiny" model: "model.textproto" cluster: "cluster.textproto"
      schedule: "gpipe" parallelism { pipeline: 2 }
      batch { microbatch_size: 1 global_batch_size: 4 }
      )",
                                                       more));
}

TEST(InputTest, TheGoodOneWorks) {
  const ProgramRun run = RunWeir(absl::StrCat("simulate ", ScenarioFile("")));
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(InputTest, MissingFilesAreNamed) {
  ExpectRefused("simulate nonesuch.textproto", "nonesuch.textproto");
  ExpectRefused("model show nonesuch.json", "nonesuch.json");
  ExpectRefused("cluster show nonesuch.textproto", "nonesuch.textproto");
  ExpectRefused("simulate --costs nonesuch.textproto --pp 2 --schedule gpipe",
                "nonesuch.textproto");
}

TEST(InputTest, FoldersAreNamedAsSuch) {
  ScenarioFile("");
  const std::string folder = absl::StrCat(TestFolder(), "/folder");
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  ExpectRefused(
      "simulate scenario.textproto --model folder",
      "model folder: is a folder, expected a file, or a folder with a "
      "config.json");
  ExpectRefused("cluster show folder", "folder: is a folder");
  // A preset takes precedence over a folder of the same name.
  std::filesystem::create_directory(absl::StrCat(TestFolder(), "/gpt2"));
  EXPECT_EQ(RunWeir("model show gpt2").exit_code, 0);
}

TEST(InputTest, MisspeltPresetsAreNamed) {
  ScenarioFile("");
  ExpectRefused("simulate pipedream-2wb-gpt-2.2b",
                "did you mean pipedream-2bw-gpt-2.2b?");
  ExpectRefused("model show gpt2-meduim", "did you mean gpt2-medium?");
  ExpectRefused("cluster show dgx-h10", "did you mean dgx-h100?");
  ExpectRefused("simulate scenario.textproto --profile v100-sxm2-16bg",
                "did you mean v100-sxm2-16gb?");
}

TEST(InputTest, UnknownFieldIsNamedWithItsPlace) {
  ExpectRefused(absl::StrCat("simulate ", ScenarioFile("colour: 3")), "colour");
}

TEST(InputTest, FlagsMeetTheScenario) {
  const std::string simulate = absl::StrCat("simulate ", ScenarioFile(""), " ");
  ExpectRefused(simulate + "--schedule gpip", "gpipe");
  ExpectRefused(simulate + "--model nonesuch", "nonesuch");
  ExpectRefused(simulate + "--cluster nonesuch", "nonesuch");
  ExpectRefused(simulate + "--profile nonesuch", "nonesuch");
  ExpectRefused(simulate + "--order pp-first", "--order is");
  ExpectRefused(simulate + "--dp 2",
                "needs 4 GPUs, but the cluster has 2; --nodes 2");
  ExpectRefused(simulate + "--pp 3 --dp 1 --nodes 2",
                "a divisor of the model's 4 blocks");
  ExpectRefused(simulate + "--pp 8 --nodes 4", "at most the model's 4 blocks");
  ExpectRefused(simulate + "--gbs 3 --mbs 2", "--gbs is 3");
  ExpectRefused(simulate + "--tp 3 --pp 1 --nodes 2", "--tp is 3");
  ExpectRefused(simulate + "--seq 2147483647", "2147483647");
  ExpectRefused(simulate + "--mbs 2147483647 --gbs 2147483647", "2147483647");
  ExpectRefused(simulate + "--nodes 2147483647", "2147483647");
  ExpectRefused(simulate + "--pp 2147483647", "2147483647");
  ExpectRefused(simulate + "--placement 0,0", "GPU 0 again");
  ExpectRefused(simulate + "--placement 0,7", "gpus[1] is 7");
  ExpectRefused(simulate + "--microbatches 2147483647 --mbs 4", "--mbs");
  ExpectRefused(simulate + "--microbatches 4 --gbs 4", "--gbs");
}

// The products of the two counts exceed 32 bits.
TEST(InputTest, AbsurdSizesAreRefused) {
  const std::string scenario = ScenarioFile("");
  for (const char* sizes :
       {"--mbs 65536 --dp 65536", "--mbs 4294967295 --dp 4294967295",
        "--mbs 2147483648 --dp 2", "--pp 65536 --tp 65536",
        "--pp 4294967295 --chunks 4294967295", "--gbs 4294967295 --mbs 1"}) {
    for (const char* command : {"simulate --schedule interleaved-1f1b ",
                                "compare --schedule gpipe "}) {
      const ProgramRun run =
          RunWeir(absl::StrCat(command, scenario, " ", sizes));
      EXPECT_EQ(run.exit_code, 2) << command << sizes << "\n" << run.err;
      EXPECT_THAT(run.err, HasSubstr("error: ")) << command << sizes;
      EXPECT_THAT(run.out, IsEmpty()) << command << sizes;
    }
  }
}

// The products of the two counts exceed 32 bits; they were truncated to 0 once.
TEST(InputTest, AbsurdSharesOfAReplicaAreRefused) {
  for (const char* sizes :
       {"--dp 65536 --mbs 65536", "--dp 131072 --mbs 98304 --gbs 1073741824"}) {
    for (const char* command : {"simulate", "compare"}) {
      ExpectRefused(absl::StrCat(command, " pipedream-2bw-gpt-2.2b ", sizes),
                    ", expected a multiple of --mbs ");
    }
  }
}

TEST(InputTest, BadCostsAreRefused) {
  for (const char* costs : {"f=", "f=x", "f=-1,b=2", "f=nan,b=2", "f=inf,b=2",
                            "f=1,b=2,q=3", "=", "f=1,f=2,b=1"}) {
    ExpectRefused(absl::StrCat("simulate --schedule gpipe --pp 2 "
                               "--microbatches 2 --costs ",
                               costs),
                  "costs");
  }
}

TEST(InputTest, BadModelsAreRefused) {
  WriteInput("broken.json", "{\"model_type\": \"gpt2\", ");
  ExpectRefused("model show broken.json", "broken.json");
  WriteInput("type.json", "{\"model_type\": \"nonesuch\"}");
  ExpectRefused("model show type.json", "nonesuch");
  WriteInput("huge.textproto", R"(transformer { num_layers: 1000000000
      hidden_size: 64 num_heads: 4 vocabulary_size: 128 })");
  ExpectRefused("model show huge.textproto", "num_layers");
  WriteInput("heads.textproto", R"(transformer { num_layers: 2
      hidden_size: 64 num_heads: 4000000000 vocabulary_size: 128 })");
  ExpectRefused("model show heads.textproto", "num_heads");
  WriteInput("empty", "");
  ExpectRefused("model show empty", "empty");
  WriteInput("cycle.txt",
             "node1 -- A -- forward_compute_time=1.0, "
             "backward_compute_time=2.0, activation_size=4.0, "
             "parameter_size=8.0\n"
             "node2 -- B -- forward_compute_time=1.0, "
             "backward_compute_time=2.0, activation_size=4.0, "
             "parameter_size=8.0\n"
             "\tnode1 -- node2\n\tnode2 -- node1\n");
  ExpectRefused("model show cycle.txt", "cycle");
}

TEST(InputTest, ModelShowNeedsADivisorOfTheHeads) {
  ScenarioFile("");
  EXPECT_EQ(RunWeir("model show model.textproto --tp 4").exit_code, 0);
  ExpectRefused("model show model.textproto --tp 3", "--tp is 3");
}

TEST(InputTest, BadClustersAreRefused) {
  const auto with = [](const std::string& bandwidth) {
    return WriteInput(
        "bad.textproto",
        absl::StrCat("groups { count: 1 node { num_gpus: 2 device: "
                     "\"v100-sxm2-16gb\" nv_switch { bytes_per_second: ",
                     bandwidth, " } } }"));
  };
  ExpectRefused(absl::StrCat("cluster show ", with("0")), "bytes_per_second");
  ExpectRefused(absl::StrCat("cluster show ", with("-1")), "bytes_per_second");
  ExpectRefused(absl::StrCat("cluster show ", with("nan")), "bytes_per_second");
  ExpectRefused(absl::StrCat("cluster show ", with("inf")), "bytes_per_second");
  WriteInput("none.textproto", "name: \"none\"");
  ExpectRefused("cluster show none.textproto", "groups");
}

TEST(InputTest, ABrokenResultIsRefused) {
  WriteInput("broken.pb", "this is no result");
  ExpectRefused("show broken.pb", "broken.pb");
  ExpectRefused("trace broken.pb -o x.json", "broken.pb");
  ExpectRefused("show .", ".: ");
}

TEST(InputTest, WhatDoesNotFitIsAVerdict) {
  const ProgramRun run = RunWeir(absl::StrCat("simulate ", ScenarioFile(""),
                                              " --mbs 262144 --gbs 1048576"));
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_FALSE(run.out.empty());
}

}  // namespace weir::cli::input_test
