// SPDX-License-Identifier: Apache-2.0
// Whole reports of the program, stored as text and reviewed as diffs.
// tools/update_goldens rewrites them.
#include "tests/golden.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/textproto.h"
#include "tests/cli/weir/program.h"
#include "tests/toy_profile.h"

namespace weir::golden_test {

struct Case {
  const char* name;
  const char* arguments;
};

// Prints the name only, as test names must not contain addresses.
void PrintTo(const Case& report, std::ostream* out) { *out << report.name; }

const Case kCases[] = {
    // The main example and its parts.
    {"main",
     "compare llama-3-70b-64-h100 --schedule "
     "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v"},
    {"compare_2bw",
     "compare pipedream-2bw-gpt-2.2b --schedule "
     "gpipe,pipedream,pipedream-2bw,1f1b,interleaved-1f1b"},
    {"pipedream_2bw", "simulate pipedream-2bw-gpt-2.2b"},
    {"pipedream", "simulate pipedream-2bw-gpt-2.2b --schedule pipedream"},
    {"pipedream_2bw_overlapped",
     "simulate pipedream-2bw-gpt-2.2b --transfers overlapped "
     "--gradient-reduction overlapped"},
    // Other machines and models.
    {"gpt3_selene", "simulate gpt3-175b-selene"},
    {"llama_h100", "simulate llama-2-70b-dgx-h100"},
    {"mistral_h200",
     "simulate --model mistral-7b-v0.1 --cluster dgx-h200 --nodes 1 --tp 2 "
     "--pp 4 --chunks 2 --mbs 1 --gbs 16 --seq 4096 --flash-attention "
     "--sequence-parallel --precision bf16 --schedule interleaved-1f1b"},
    {"bert_a100",
     "simulate --model bert-base-uncased --cluster dgx-a100 --nodes 1 --pp 4 "
     "--dp 2 --mbs 8 --gbs 128 --seq 512 --optimizer sgd --schedule gpipe"},
    {"gpt2_dgx1",
     "simulate --model gpt2-large --cluster dgx-1-v100 --nodes 1 --pp 4 --tp 2 "
     "--order tp-pp-dp --mbs 1 --gbs 8 --recompute selective "
     "--schedule 1f1b"},
    {"graph_p3",
     "simulate --model SOURCE/tests/fuzz/corpus/graph.txt "
     "--cluster p3-16xlarge --nodes 1 --pp 2 --dp 2 --mbs 1 --gbs 16 "
     "--precision fp32 --optimizer sgd --schedule pipedream"},
    // Given costs.
    {"given_costs_gpipe",
     "simulate --schedule gpipe --costs f=1,b=2,c=0.25 --pp 4 "
     "--microbatches 8"},
    {"given_costs_interleaved",
     "simulate --schedule interleaved-1f1b --costs f=1,i=1,w=1,c=0 --pp 4 "
     "--microbatches 8 --chunks 3"},
    {"given_costs_blocking",
     "simulate --schedule 1f1b --costs f=1,b=2,c=0.25 --pp 4 "
     "--microbatches 8 --transfers blocking"},
    {"given_costs_compare",
     "compare --schedule gpipe,1f1b,interleaved-1f1b,pipedream,pipedream-2bw "
     "--costs f=1,b=2,c=0.1 --pp 4 --microbatches 8"},
    // Descriptions of schedules, models and clusters.
    {"schedule_2bw",
     "schedule show pipedream-2bw --pp 4 --microbatches 4 --batches 3"},
    {"schedule_semantics",
     "schedule semantics pipemare --pp 4 --microbatches 4 --batches 5"},
    {"schedule_interleaved",
     "schedule show interleaved-1f1b --pp 2 --microbatches 4 --chunks 2"},
    {"model_mistral", "model show mistral-7b-v0.1 --seq 4096"},
    {"model_mixtral",
     "model show mixtral-8x7b --seq 4096 --tp 2 --sequence-parallel --ep 4"},
    {"cluster_p3", "cluster show p3-16xlarge"},
    {"cluster_h100", "cluster show dgx-h100"},
    // A measured profile (of no real GPU: tests/toy_profile.h).
    {"measured_simulate",
     "simulate --model gpt2 --cluster dgx-a100 --nodes 1 --pp 4 --dp 2 --mbs 1 "
     "--gbs 16 --precision bf16 --flash-attention --schedule 1f1b "
     "--profile toy.textproto"},
    {"measured_compare",
     "compare --model gpt2 --cluster dgx-a100 --gpus 4 --pp 4 --mbs 2 "
     "--gbs 16 --precision bf16 --flash-attention --schedule gpipe,1f1b "
     "--profile toy.textproto"},
    {"measured_explain",
     "explain --model gpt2 --cluster dgx-a100 --nodes 1 --pp 4 --dp 2 --mbs 1 "
     "--gbs 16 --precision bf16 --flash-attention --schedule 1f1b "
     "--profile toy.textproto"},
    {"profile_show", "profile show toy.textproto"},
    {"profile_diff", "profile diff toy.textproto a100-sxm-80gb"},
    // Errors.
    {"error_scenario",
     "simulate --model gpt2 --cluster p3-16xlarge --nodes 1 --pp 5 --dp 3 "
     "--mbs 3 --gbs 16 --tp 5 --seq 4096 --schedule 1f1b"},
    {"error_schedule", "simulate pipedream-2bw-gpt-2.2b --schedule 2wb"},
    {"error_layers",
     "simulate --model gpt2 --cluster p3-16xlarge --nodes 1 --pp 7 --mbs 1 "
     "--gbs 16 --schedule 1f1b"},
};

// Removes the parts that differ between builds.
std::string WithoutBuild(absl::string_view text) {
  std::string kept;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "made by ")) {
      absl::StrAppend(&kept, kept.empty() ? "" : "\n", line);
    }
  }
  return absl::StrReplaceAll(kept, {{WEIR_SOURCE_DIR, "SOURCE"}});
}

class GoldenTest : public testing::TestWithParam<Case> {};

TEST_P(GoldenTest, ReportIsAsReviewed) {
  const std::string arguments =
      absl::StrReplaceAll(GetParam().arguments, {{"SOURCE", WEIR_SOURCE_DIR}});
  cli::WriteInput("toy.textproto", PrintTextProto(ToyProfile()));
  const cli::ProgramRun run = cli::RunWeir(arguments);
  ExpectGolden(
      absl::StrCat("golden/", GetParam().name, ".txt"),
      absl::StrCat("$ weir ", GetParam().arguments, "\n", WithoutBuild(run.out),
                   WithoutBuild(run.err), "exit ", run.exit_code, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Reports, GoldenTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace weir::golden_test
