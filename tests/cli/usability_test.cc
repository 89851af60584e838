// SPDX-License-Identifier: Apache-2.0
// What people try after the first hour: other sizes than those of their file,
// options that contradict each other, misspelled names, measured rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cli/task.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::usability_test {

constexpr char kSmallCluster[] = R"(
name: "mine"
groups {
  count: 1
  node {
    num_gpus: 8
    device: "a100-sxm-80gb"
    nv_switch { bytes_per_second: 300 }
  }
})";

std::vector<Task> SizeTasks() {
  return {
      {"InitLeavesReplicasOut",
       "init --cluster dgx-h100 --gpus 64 --out ini > log && grep -c data: "
       "ini/scenario.textproto; $WEIR simulate ini/scenario.textproto --tp 4 "
       "--pp 8 --schedule zb-v",
       1,  // does not fit
       {"tensor 4 x pipeline 8 x data 2 = 64 GPUs"}},
      {"InitOnPartOfANode",
       "init --model llama-3.1-8b --cluster dgx-h100 --gpus 4 --out four > log "
       "&& $WEIR simulate four/scenario.textproto",
       0,
       {"= 4 GPUs"}},
      {"InitStatesWhatItAssumed",
       "init --gpus 64 --out assumed < /dev/null",
       0,
       {},
       {"assumed, as there is no terminal to ask on: --model llama-3-70b "
        "--cluster dgx-h100 --seq"}},
      {"QuickStartSweep",
       "init --cluster dgx-h100 --gpus 64 --out swept > log && $WEIR sweep "
       "--scenario swept/scenario.textproto --method fast --grid tp=4,8 --grid "
       "pp=4,8 --out swept-out",
       0,
       {"4 points: 4 done, 0 refused, 0 failed", ": tp="},
       {},
       {},
       {"parallelism.tensor"}},
      {"OtherSizesThanThePreset",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --chunks 1 --tp 4 --pp 4",
       1,  // does not fit
       {"tensor 4 x pipeline 4 x data 4 = 64 GPUs"},
       {"the data-parallel size is 4, as the number of GPUs allows"}},
      {"GivenReplicasAreKept",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --chunks 1 --tp 4 --pp 4 "
       "--dp 2",
       1,  // does not fit
       {"x data 2 = 32 GPUs"},
       {"use --gpus 32 to silence this warning"},
       {},
       {"are meant"}},
      {"TooManyReplicas",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --chunks 1 --tp 8 --pp 8 "
       "--dp 4",
       2,
       {},
       {"needs 256 GPUs, but the cluster has 64; --nodes 32 has enough, --dp 1 "
        "uses 64"}},
      {"SweepWarnsOfIdleGpus",
       "sweep --scenario llama-3-70b-64-h100 --schedule 1f1b --chunks 1 "
       "--method fast --grid tp=4,8 --grid pp=4 --dp 1 --out idle && $WEIR "
       "collect idle",
       0,
       {"tp  pp  gpus"},
       {"2 of 2 points leave GPUs idle: point 0: 48 of the cluster's 64"}},
      {"NearestSizesOfGivenGpus",
       "simulate --model llama-3-70b --cluster dgx-h100 --gpus 60 --tp 8 --pp "
       "4 --gbs 120",
       2,
       {},
       {"nearest: --tp 1, --gpus 32, --gpus 64"},
       {},
       {"--tp 6", "--tp 10"}},
      {"NearestPipeline",
       "simulate --model llama-3-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp "
       "6 --gbs 128",
       2,
       {},
       {"nearest: --pp 4, --pp 8\n"},
       {},
       {"--pp 5"}},
  };
}

std::vector<Task> ScheduleTasks() {
  return {
      {"ContradictoryChunks",
       "simulate llama-3-70b-64-h100 --schedule interleaved-1f1b:v=4 --chunks "
       "5",
       2,
       {},
       {"--chunks is 5, but --schedule interleaved-1f1b:v=4 says v=4"}},
      {"ChunksOfTheName",
       "simulate llama-3-70b-64-h100 --schedule interleaved-1f1b:v=3",
       2,
       {},
       {"v=3"},
       {},
       {"--chunks"}},
      {"SchedulesWithOtherChunks",
       "compare llama-3-70b-64-h100 --chunks 5 --schedule "
       "1f1b,interleaved-1f1b,zb-v",
       0,
       {"fastest that fits"},
       {"1f1b: 1 stage per rank, not the 5 of --chunks",
        "zb-v v=2: 2 stages per rank, not the 5 of --chunks"}},
      {"NameColumnStays",
       "compare llama-3-70b-64-h100 --schedule 1f1b,zb-h1 --columns "
       "step-time,mfu",
       0,
       {"schedule  step time", "zb-h1"}},
      {"StaleWeightsAreMarked",
       "compare pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw",
       0,
       {"pipedream-2bw (*)", "(*) training differs"},
       {},
       {},
       {"gpipe (*)"}},
      {"OneUpdate",
       "simulate pipedream-2bw-gpt-2.2b --schedule pipedream-2bw",
       0,
       {"1 update\n"}},
      {"SlowGpuIsNamed",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --chunks 1 --slow "
       "gpu17=0.5",
       0,
       {"slow: gpu17 x0.5 (on the\n  critical path)"}},
      {"SlowLinkIsNamed",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --chunks 1 --slow "
       "link:node3.nic2=0.01",
       0,
       {"slow: node3.nic2 x0.01"}},
  };
}

std::vector<Task> MessageTasks() {
  return {
      {"Gpu", "simulate --gpu 64", 2, {}, {"did you mean --gpus?"}},
      {"OptionOfAnotherCommand",
       "simulate --memory-limit 70GiB",
       2,
       {},
       {"unknown option --memory-limit; weir plan, weir schedule synthesize "
        "have it"}},
      {"PartOfAName",
       "simulate --model gpt2 --cluster h100 --gbs 8",
       2,
       {},
       {"did you mean dgx-h100"}},
      {"UnknownSweepField",
       "sweep --scenario llama-3-70b-64-h100 --grid tpp=2",
       2,
       {},
       {"tpp is not a field"},
       {},
       {"nothing to sweep"}},
      {"ImplausibleValueNamesTheFile",
       "cluster show slow.textproto",
       0,
       {},
       {"slow.textproto: "},
       {},
       {"cluster mine"}},
      {"Boolean",
       "scenario show boolean.textproto",
       2,
       {},
       {"expected true or false"}},
      {"FieldName",
       "scenario show field.textproto",
       2,
       {},
       {"did you mean pipeline?"}},
      {"EnumName",
       "scenario show enum.textproto",
       2,
       {},
       {"expected one of FP32, MIXED_FP16, MIXED_BF16"}},
      {"OtherSweep",
       "sweep --scenario llama-3-70b-64-h100 --schedule 1f1b --chunks 1 "
       "--method fast --grid tp=8 --out other > log 2>&1; $WEIR sweep "
       "--scenario llama-3-70b-64-h100 --schedule zb-h1 --chunks 1 --method "
       "fast --grid tp=8 --out other",
       2,
       {},
       {"belongs to a different sweep", "\n  modified: "},
       {},
       {"error: modified"}},
      {"MeasuredRate",
       "explain llama-3-70b-64-h100 --schedule 1f1b --measured 300TFLOPS",
       0,
       {"settings of the run that bring the prediction nearer",
        "--slow gpu0=0.8", "more (--all)"},
       {"--measured: 300 TFLOP/s per GPU by --flops model mean"}},
      {"MeasuredNonsense",
       "explain llama-3-70b-64-h100 --measured 3miles",
       2,
       {},
       {"--measured is 3miles, expected seconds"}},
      {"RateWithoutFormula",
       "validate --measured rates.csv --scenario llama-3-70b-64-h100",
       0,
       {"1 measured run\n", "tflops_per_gpu"},
       {"rates.csv:2: tflops_per_gpu without flops_formula is compared with "
        "the formula model"}},
      {"ExplicitLimitIsTheLimit",
       "plan --model gpt2-medium --cluster dgx-a100 --nodes 1 --gbs 16 "
       "--memory-limit 80e9 --time-limit 5",
       0,
       {"memory limit: 74.5 GiB"}},
      {"PlanWithoutPrice",
       "plan --model gpt2-medium --cluster dgx-a100 --nodes 1 --gbs 16 "
       "--time-limit 5 --format csv",
       0,
       {",flops_per_second_per_gpu,flops_formula", ",,false,"}},
      {"LimitToRaise",
       "plan --model gpt2-medium --cluster dgx-a100 --nodes 1 --gbs 16 "
       "--memory-limit 70 --time-limit 5",
       1,
       {},
       {"70GiB has a unit", "raise --memory-limit to ", "GiB\n"},
       {},
       {" bytes\n"}},
  };
}

class UsabilityTest : public testing::TestWithParam<Task> {
 protected:
  void SetUp() override {
    WriteInput("slow.textproto", kSmallCluster);
    WriteInput("boolean.textproto", "training { fp32_gradients: yes }\n");
    WriteInput("field.textproto", "parallelism { pipelne: 4 }\n");
    WriteInput("enum.textproto", "training { precision: BF16 }\n");
    WriteInput("rates.csv", "schedule,tflops_per_gpu\n1f1b,400\n");
  }
};

TEST_P(UsabilityTest, Works) { RunTask(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Sizes, UsabilityTest, testing::ValuesIn(SizeTasks()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Schedules, UsabilityTest,
                         testing::ValuesIn(ScheduleTasks()), NameOf);
INSTANTIATE_TEST_SUITE_P(Messages, UsabilityTest,
                         testing::ValuesIn(MessageTasks()), NameOf);

}  // namespace weir::cli::usability_test
