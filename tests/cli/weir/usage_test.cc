// SPDX-License-Identifier: Apache-2.0
// Tests weir's response to valid and invalid arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "cli/weir/weir_app.h"
#include "tests/cli/weir/all_commands.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::usage_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(UsageTest, HelpGoesToStandardOutput) {
  for (const char* arguments : {"help", "--help", "-h"}) {
    const ProgramRun run = RunWeir(arguments);
    EXPECT_EQ(run.exit_code, 0) << arguments;
    EXPECT_THAT(run.out, HasSubstr("Usage: weir [OPTIONS] [COMMAND]"))
        << arguments;
    EXPECT_THAT(run.err, IsEmpty()) << arguments;
  }
}

TEST(UsageTest, EveryCommandHasHelpWithUsageAndExamples) {
  CommandLine line;
  const auto app = MakeWeirApp(&line);
  for (const CLI::App* command : AllCommands(app.get())) {
    const std::string name = NameOf(*command);
    const ProgramRun run = RunWeir(absl::StrCat(name, " --help"));
    EXPECT_EQ(run.exit_code, 0) << name;
    EXPECT_THAT(run.out, StartsWith(absl::StrCat(command->get_description(),
                                                 "\n\nUsage: weir ", name)));
    EXPECT_THAT(run.out, HasSubstr("\n\nExamples:\n  weir "));
    EXPECT_EQ(run.out, RunWeir(absl::StrCat("help ", name)).out);
    for (absl::string_view text : absl::StrSplit(run.out, '\n')) {
      // An example is one line, so that it can be copied.
      if (absl::StartsWith(text, "  weir ")) continue;
      EXPECT_LE(text.size(), 80) << text;
    }
  }
}

// Returns false for examples that need a file of the user.
bool RunsAnywhere(absl::string_view example) {
  return !absl::StrContains(example, "my.textproto") &&
         !absl::StrContains(example, " profile.csv") &&
         !absl::StrContains(example, "graph.txt") &&
         !absl::StrContains(example, "run.args") &&
         !absl::StrContains(example, ".pb") &&
         !absl::StrContains(example, "plan.json") &&
         !absl::StrContains(example, "out/timeline.json.gz") &&
         !absl::StrContains(example, "out/trace.csv.gz") &&
         !absl::StartsWith(example, "report out/grid") &&
         // Reads requests, of which there are none here.
         example != "serve --stdio" &&
         // Ends only when it is interrupted.
         !absl::StartsWith(example, "live ");
}

TEST(UsageTest, EveryExampleOfTheHelpWorks) {
  int num_examples = 0;
  CommandLine line;
  const auto app = MakeWeirApp(&line);
  for (const CLI::App* command : AllCommands(app.get())) {
    for (const std::string& example : ExamplesOf(*command)) {
      if (!RunsAnywhere(example) || example == "doctor") continue;
      const ProgramRun run = RunWeir(example);
      EXPECT_LE(run.exit_code, 1) << example << "\n" << run.err;
      const bool writes_a_file =
          NameOf(*command) == "report" || NameOf(*command) == "draw";
      EXPECT_THAT(writes_a_file ? run.err : run.out, Not(IsEmpty())) << example;
      ++num_examples;
    }
  }
  EXPECT_GE(num_examples, 10);
}

TEST(UsageTest, GroupsOfCommandsHaveHelp) {
  for (const std::string group : {"schedule", "scenario", "model", "cluster"}) {
    for (const char* pattern : {"$0 --help", "$0 -h", "help $0"}) {
      const ProgramRun run = RunWeir(absl::Substitute(pattern, group));
      EXPECT_EQ(run.exit_code, 0) << group << run.err;
      EXPECT_THAT(run.out,
                  HasSubstr("\n\nUsage: weir " + group + " [COMMAND]"));
      EXPECT_THAT(run.out, HasSubstr("\n  " + group + " list "));
      EXPECT_THAT(run.out, HasSubstr("\n  " + group + " show "));
    }
  }
  EXPECT_EQ(RunWeir("nonesuch --help").exit_code, 2);
  EXPECT_EQ(RunWeir("schedule nonesuch --help").exit_code, 2);
}

TEST(UsageTest, VersionAsJsonNamesTheLibraries) {
  const ProgramRun run = RunWeir("--version --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json.size(), 5);
  for (const char* key : {"weir", "git", "simgrid", "protobuf", "abseil"}) {
    EXPECT_FALSE(json.at(key).get<std::string>().empty()) << key;
  }
  EXPECT_EQ(RunWeir("--version --jsn").exit_code, 2);
}

TEST(UsageTest, HelpSaysWhoseSecondsTheCostsAre) {
  for (const char* command : {"simulate", "compare"}) {
    const std::string help = absl::StrJoin(
        absl::StrSplit(RunWeir(absl::StrCat(command, " --help")).out,
                       absl::ByAnyChar(" \n"), absl::SkipEmpty()),
        " ");
    EXPECT_THAT(help, HasSubstr("Values are per stage, of which a rank has "
                                "several with --chunks"));
    EXPECT_THAT(help, HasSubstr("if weir chooses the chunks, they are per "
                                "rank and divided among its stages"));
  }
}

TEST(UsageTest, VersionNamesTheRevision) {
  const ProgramRun run = RunWeir("--version");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, StartsWith("weir 0."));
  EXPECT_THAT(run.out, HasSubstr("(git "));
}

TEST(UsageTest, DoctorNamesTheLibraries) {
  const ProgramRun run = RunWeir("doctor");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("SimGrid"), HasSubstr("protobuf"),
                             HasSubstr("Abseil"), HasSubstr("CUDA")));
}

TEST(UsageTest, SelfTestPassesEveryCheck) {
  const ProgramRun run = RunWeir("self-test");
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("weir works on this machine"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("FAILED")));
}

struct BadUsage {
  const char* arguments;
  const char* message;
};

constexpr BadUsage kBadUsages[] = {
    {"", "no command given"},
    {"simulte", "did you mean simulate?"},
    {"hlep", "did you mean help?"},
    {"schedule", "no command given (list, show"},
    {"schedule shwo", "did you mean show?"},
    {"list model", "did you mean weir model list?"},
    {"list --color never model", "did you mean weir model list?"},
    {"list models", "unknown command list; did you mean weir model list?"},
    {"list", "did you mean weir schedule list or weir model list or"},
    {"lint", "unknown command lint; did you mean weir schedule lint?"},
    {"--bogus", "unknown option --bogus"},
    {"simulate --shedule gpipe", "did you mean --schedule?"},
    {"simulate --schedule", "--schedule requires a value"},
    {"simulate given-costs-1f1b --pp= --format json",
     "--pp is empty, expected N"},
    {"simulate --bogus= --format json", "unknown option --bogus"},
    {"simulate --sequence-parallel=", "is empty, expected true or false"},
    {"serve", "--stdio is missing, expected this option"},
    {"schema nope", "error, tools, tools-openai, tools-anthropic"},
    {"simulate --costs f=1,b=2 --pp 2 --microbatches 2 --topology dragonfly "
     "--slow gpu0=0.5 --failed node0.nic0",
     "--topology cannot be combined with costs"},
    {"simulate --costs f=1,b=2 --pp 2 --microbatches 2 --slow gpu0=0.5",
     "--slow cannot be combined with costs"},
    {"cluster show dgx-h100 --uplinks-per-leaf 4",
     "--uplinks-per-leaf is 4, which has no effect on adaptive routing"},
    {"cluster show dgx-h100 --nodes 4 --topology dragonfly --nodes-per-leaf 1 "
     "--leaves-per-group 2 --routing valiant",
     "--routing is valiant, which has no effect on a dragonfly of 2 groups, "
     "expected at least 3 groups"},
    {"plan --model gpt2 --cluster dgx-h100 --nodes 1 --gbs 16 --seq 512 "
     "--energy h100-sxm --nodes-per-rack 2",
     "nodes_per_rack is 2, which has no effect without rack_power_cap_watts"},
    {"plan pipedream-2bw-gpt-2.2b --algorithm pipedream-2bw --energy h100-sxm "
     "--node-power-cap 4000",
     "--node-power-cap is given with --algorithm, which does not take it"},
    {"plan pipedream-2bw-gpt-2.2b --algorithm pipedream-2bw --energy h100-sxm",
     "--energy is given with --algorithm, which does not take it"},
    {"cluster show dgx-h100 --routing valiant",
     "--routing is valiant, but the network is not a dragonfly"},
    {"cluster show dgx-h100 --topology one-switch --routing ecmp",
     "--routing is ecmp, but the network has no leaf switches under a spine"},
    {"simulate a b", "unexpected argument b"},
    {"simulate ''", "SCENARIO is empty"},
    {"simulate --pp 0", "--pp is 0, expected a whole number"},
    {"simulate --pp -3", "--pp is -3"},
    {"simulate --pp 1e3", "--pp is 1e3"},
    {"simulate --pp 99999999999999999999", "--pp is 9999"},
    {"simulate --mbs nan", "--mbs is nan"},
    {"simulate --stash-bytes-per-parameter nan", "is nan"},
    {"simulate --stash-bytes-per-parameter inf", "is inf"},
    {"simulate --placement 0,x", "--placement is x"},
    {"simulate --gpus 0,1",
     "--gpus is 0,1, expected the number of GPUs to use; --placement 0,1 "
     "lists GPUs"},
    {"simulate --cp 0", "--cp is 0, expected a whole number"},
    {"simulate --context-parallel-degree 2",
     "did you mean --context-parallel-size?"},
    {"simulate --cp-comm-type ring", "p2p or all_gather or a2a or a2a+p2p"},
    {"simulate --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 8 "
     "--seq 8192 --cp 3",
     "--tp 1 x --pp 1 x --cp 3 = 3, expected a divisor of the cluster's 8 "
     "GPUs"},
    {"simulate --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 8 "
     "--seq 8192 --cp 2 --flash-attention=false",
     "--flash-attention is off, expected on: context parallelism needs"},
    {"simulate --recompute-modules norm", "core_attn or mlp or moe or"},
    {"simulate --recompute-method first", "uniform or block or every"},
    {"simulate --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 8 "
     "--recompute full --recompute-modules mlp",
     "--recompute is full, expected selective with"},
    {"simulate --optimizer-offload-fraction 2", "is 2, expected 0 to 1"},
    {"simulate --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 8 "
     "--cpu-offloading-num-layers 32",
     "--cpu-offloading-num-layers is 32, expected less than the model's 32 "
     "blocks"},
    {"plan --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 8 "
     "--recompute full:half",
     "is full:half, expected none, selective, operators or full, selective: "},
    {"simulate --pipeline 4", "--pipeline; did you mean --pp?"},
    {"simulate --micro-batch 4", "--micro-batch; did you mean --mbs?"},
    {"simulate --gbs 8z", "--gbs is 8z"},
    {"simulate --recompute some", "none or selective or operators or full"},
    {"simulate --dropout=maybe", "true or false"},
    {"simulate --format xml", "table or json or csv"},
    {"simulate --trace x.txt", ".pftrace, .json, .svg"},
    {"simulate --schedule gpipe,1f1b", "weir compare takes several"},
    {"compare", "command line: --model is missing"},
    {"simulate --model gpt2 --cluster dgx-a100 --pp 3 --gbs 64 --nodes 1",
     "--tp 1 x --pp 3 = 3, expected a divisor of the cluster's 8 GPUs; "
     "nearest: --pp 2, --pp 4, --gpus 6"},
    {"simulate --model gpt2 --cluster dgx-a100 --tp 4 --pp 3 --dp 2 --gbs 64 "
     "--nodes 1",
     "--tp 4 x --pp 3 x --dp 2 needs 24 GPUs, but the cluster has 8; "
     "--nodes 3 has enough"},
    {"simulate --model gpt2 --cluster dgx-a100 --pp 4 --nodes 1 --gbs 9",
     "--gbs is 9, expected a multiple of --mbs 1 x --dp 2 = 2; nearest: 8 or "
     "10, or --dp 1"},
    {"simulate --model gpt2 --cluster dgx-a100 --nodes 1 --gbs 8 --pp 4 "
     "--chunks 2 --schedule 1f1b",
     "1f1b"},
    {"compare --schedule ''", "--schedule is empty"},
    {"simulate given-costs-1f1b --schedule ''", "--schedule is empty"},
    {"trace x.pb", "--output is missing"},
    {"trace x.pb -o x.csv", ".pftrace, .json, .svg"},
    {"trace missing.pb -o x.json", "missing.pb"},
    {"show missing.pb", "missing.pb"},
    {"simulate --report x.pdf", "--report is x.pdf, expected a name ending in"},
    {"report x.pb", "--output is missing"},
    {"report",
     "weir report: --output is missing, expected FILE.html, as in weir report "
     "out/compare.pb -o out/report.html"},
    {"report -o x.html",
     "there is no input, expected a file written by --out or by --format json, "
     "the folder of a sweep, or a scenario, such as run.pb after weir import "
     "TRACE -o run.pb"},
    {"report x.pb -o x.pdf", "--output is x.pdf, expected a name ending in"},
    {"report missing.pb -o x.html", "missing.pb"},
    {"report missing.pb --pp 4 -o x.html",
     "missing.pb is a result, expected no options of a scenario with it"},
    {"report --costs f=1,b=2 --pp 2 --microbatches 2 --result a -o x.html",
     "--result needs a file written by --out"},
    {"draw gpipe", "--output is missing"},
    {"draw gpipe -o x.gif",
     "--output is x.gif, expected a name ending in .svg, .pdf or .png"},
    {"draw gpipe -o x.svg --kind pie",
     "--kind is pie, expected timeline or memory or slack or idle or pareto or "
     "heatmap or roofline or errors"},
    {"draw gpipe -o x.svg --kind memory",
     "--kind is memory, but gpipe is a schedule, expected timeline; --costs "
     "f=1,b=2 simulates it"},
    {"draw gpipe -o x.svg --width 5",
     "--width is 5, expected millimeters from 40 to 2000"},
    {"draw gpipe -o x.svg --columns 3", "--columns is 3, expected 1 or 2"},
    {"draw gpipe -o x.svg --ranks 0,x", "expected ranks such as 0,3,7"},
    {"draw gpipe -o x.svg --ranks 9", "--ranks has 9, expected ranks below 4"},
    {"draw gpip -o x.svg", "gpip: is neither a file nor a preset"},
    {"draw gpip -o x.svg", "it is no schedule either"},
    {"draw missing.pb -o x.svg", "missing.pb"},
    {"draw missing.pb -o x.svg --kind roofline",
     "expected timeline or memory or idle or pareto; a roofline needs a "
     "scenario"},
    {"draw . -o x.svg --kind timeline",
     ". is a sweep, expected heatmap or pareto"},
    {"draw . -o x.svg", "shard"},
    {"draw gpipe --result a -o x.svg",
     "--result needs a file written by --out"},
    {"simulate given-costs-1f1b --timeline --format json",
     "--timeline is given with --format json or csv"},
    {"simulate llama-3-70b-64-h100 --timeline --method fast",
     "--timeline needs every GPU and microbatch"},
    {"model show", "MODEL is missing"},
    {"simulate a plan", "unexpected argument plan"},
    {"help weir-calibrate", "weir-calibrate is a separate program"},
    {"simulate --json", "--json requires --version"},
    {"schedule show nonesuch", "nonesuch"},
    {"schedule show gpip", "gpipe"},
    {"schedule show gpipe --pp 2147483647", "2147483647"},
    {"schedule show gpipe --pp 9999 --microbatches 2147483647", "2147483647"}};

TEST(UsageTest, BadUsageExitsWithTwoAndSaysWhy) {
  for (const BadUsage& bad : kBadUsages) {
    const ProgramRun run = RunWeir(bad.arguments);
    EXPECT_EQ(run.exit_code, 2) << bad.arguments;
    EXPECT_THAT(run.out, IsEmpty()) << bad.arguments;
    EXPECT_THAT(run.err, StartsWith("error: ")) << bad.arguments;
    EXPECT_THAT(run.err, HasSubstr(bad.message)) << bad.arguments;
  }
}

TEST(UsageTest, EveryBadFlagIsToldAtOnce) {
  const ProgramRun run =
      RunWeir("simulate --pp x --tp 0 --bogus 3 --optimizer lion");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--pp is x"), HasSubstr("--tp is 0"),
                             HasSubstr("unknown option --bogus"),
                             HasSubstr("--optimizer is lion")));
  for (absl::string_view line :
       absl::StrSplit(run.err, '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(absl::StartsWith(line, "error: ")) << line;
  }
}

TEST(UsageTest, AnUnknownOptionIsToldOnceAndItsValueNotAtAll) {
  const ProgramRun run = RunWeir(
      "simulate gpt3-175b-selene --num-layers 8 --bogus=3 --num-layers 9 "
      "--hidden 8192");
  EXPECT_EQ(run.err,
            "error: weir simulate: unknown option --num-layers\n"
            "error: weir simulate: unknown option --bogus\n"
            "error: weir simulate: unknown option --hidden\n");
}

TEST(UsageTest, MessagesOfAKindAreCounted) {
  WriteInput("bad.csv", "F0,F1,F2,F3,F4,F5,F6\n");
  const ProgramRun run = RunWeir("schedule lint bad.csv");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              HasSubstr("\nerror: bad.csv: and 2 more cells with errors\n"));
}

TEST(UsageTest, ColorFollowsTheFlagAndTheEnvironment) {
  const auto colored = [](const ProgramRun& run) {
    return absl::StrContains(run.err, "\033[");
  };
  EXPECT_FALSE(colored(RunWeir("trace x.pb -o x.json")));
  EXPECT_TRUE(colored(RunWeir("trace x.pb -o x.json --color always")));
  // Usage errors, before and after the flag is parsed.
  for (const char* bad : {"nonesuch $0", "simulate --pp x $0",
                          "simulate $0 --pp x", "schedule nonesuch $0"}) {
    for (const char* flag : {"--color always", "--color=ALWAYS"}) {
      EXPECT_TRUE(colored(RunWeir(absl::Substitute(bad, flag)))) << bad << flag;
    }
    for (const char* flag : {"--color never", "--color=never"}) {
      EXPECT_FALSE(colored(
          RunWeirAfter("CLICOLOR_FORCE=1", absl::Substitute(bad, flag))))
          << bad << flag;
    }
  }
  EXPECT_TRUE(
      colored(RunWeirAfter("CLICOLOR_FORCE=1", "trace x.pb -o x.json")));
  EXPECT_FALSE(colored(
      RunWeirAfter("NO_COLOR=1 CLICOLOR_FORCE=1", "trace x.pb -o x.json")));
}

TEST(UsageTest, AFullDiskIsAnError) {
  const ProgramRun run = RunWeir("help > /dev/full");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("standard output: cannot be written"));
}

}  // namespace weir::cli::usage_test
