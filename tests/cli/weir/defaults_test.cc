// SPDX-License-Identifier: Apache-2.0
// Checks that the defaults shown in the help are those of the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/options/add_option.h"
#include "cli/options/scenario_options.h"
#include "cli/weir/weir_app.h"
#include "tests/cli/weir/all_commands.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::defaults_test {

// Returns true for defaults in words, which follow from the other arguments.
bool IsProse(const std::string& fallback) {
  static const auto& prose =
      *new std::set<std::string>{"the cluster's",
                                 "the model's",
                                 "the device's",
                                 "the file's name",
                                 "number of cores",
                                 "number of ranks, as for 1F1B",
                                 "the fastest schedule that fits",
                                 "as the schedule requires",
                                 "an equal share",
                                 "until steady",
                                 "depends on the size",
                                 "as in the scenario",
                                 "by --defaults",
                                 "the prediction's interval",
                                 "by the model",
                                 "as --tolerance",
                                 "timeline; heatmap of a sweep, pareto of "
                                 "plans, errors of a validation",
                                 "that of --columns",
                                 "all; eight for memory",
                                 "the first two",
                                 "with Megatron-LM and bf16",
                                 "with split backwards on zero-bubble",
                                 "none",
                                 "transfers are not counted",
                                 "all",
                                 "any that is free",
                                 "the one with the median time",
                                 "both",
                                 "all reasonable values",
                                 "all GPUs of the cluster",
                                 "all of the cluster",
                                 "GPUs / (tp x pp x cp)",
                                 "1f1b, or interleaved-1f1b with --chunks",
                                 "the model's",
                                 "about 1 Mi tokens",
                                 "that of --runtime",
                                 "--tp",
                                 "1 and --tp",
                                 "1 and the powers of two up to 8 that leave "
                                 "each GPU 8192 tokens or more",
                                 "core_attn, if selective",
                                 "uniform, if full",
                                 "1, if full",
                                 "all useful ones",
                                 "where nothing else fits (docs/plan.md)",
                                 "both, if --runtime has it",
                                 "as --runtime does",
                                 "0, or 1 with --optimizer-cpu-offload",
                                 "all, with --lora-rank",
                                 "5, with Muon",
                                 "deepep, with flex",
                                 "20 with DeepEP",
                                 "16 with HybridEP",
                                 "16-bit, unless the recipe says otherwise",
                                 "exact",
                                 "evenly spaced",
                                 "the highest",
                                 "one per adapter",
                                 "1; 3 without a flush",
                                 "as many as the jobs need",
                                 "the recipe's",
                                 "by --order",
                                 "by --gbs",
                                 "by --reliability",
                                 "always enough",
                                 "the best number",
                                 "the trace's, or 1",
                                 "those of 30 days",
                                 "weights and optimizer states of the scenario",
                                 "those of parallelism.gpus, else of the node "
                                 "after earlier jobs"};
  return prose.contains(fallback);
}

std::string ValueOf(const std::string& fallback) {
  return fallback == "25 MiB" ? "26214400" : fallback;
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

// Returns arguments for each command with which the defaults of its options
// matter.
const Arguments* QuestionOf(absl::string_view command) {
  static const Arguments schedule = {{"", "gpipe"}};
  static const auto& questions = *new std::map<std::string, Arguments>{
      {"simulate",
       {{"--model", "gpt2"},
        {"--cluster", "p3-16xlarge"},
        {"--nodes", "1"},
        {"--schedule", "1f1b"},
        {"--gbs", "8"},
        {"--pp", "2"},
        {"--dp", "2"}}},
      {"sweep",
       {{"--costs", "f=1,b=2"},
        {"--pp", "2"},
        {"--schedule", "gpipe"},
        {"--grid", "num_microbatches=2,4"}}},
      {"plan",
       {{"--model", "gpt2"},
        {"--cluster", "p3-16xlarge"},
        {"--nodes", "1"},
        {"--gbs", "4"},
        {"--schedule", "gpipe"},
        {"--tp", "1"},
        {"--dp", "1"},
        {"--mbs", "1"}}},
      {"train-study",
       {{"--costs", "f=1,b=2"},
        {"--pp", "2"},
        {"--microbatches", "2"},
        {"--schedule", "gpipe"},
        {"--updates", "2"},
        {"--seeds", "1"}}},
      {"goodput",
       {{"--step-seconds", "10"},
        {"--num-gpus", "1024"},
        {"--checkpoint-bytes", "1e12"},
        {"--checkpoint-bandwidth", "1e11"}}},
      {"schedule synthesize",
       {{"--costs", "f=1,b=2"}, {"--pp", "2"}, {"--microbatches", "2"}}},
      {"init",
       {{"--model", "gpt2"},
        {"--cluster", "dgx-a100"},
        {"--gpus", "2"},
        {"--gbs", "8"}}},
      {"schedule show", schedule},
      {"schedule semantics", schedule},
      {"schedule lint", schedule},
      {"schedule convert", schedule},
      {"model show", {{"", "gpt2"}}}};
  const auto found = questions.find(std::string(command));
  return found == questions.end() ? nullptr : &found->second;
}

// Runs the command with its arguments except the option `without`, plus `more`.
ProgramRun Ask(absl::string_view command, const Arguments& question,
               const std::string& without, const std::string& more) {
  std::error_code ignored;
  std::filesystem::remove_all(TestFolder() + "/weir-sweep", ignored);
  std::string line(command);
  for (const auto& [name, value] : question) {
    if (name.empty() || name != without) {
      absl::StrAppend(&line, " ", name, " '", value, "'");
    }
  }
  return RunWeir(absl::StrCat(line, " ", more));
}

// Returns true for options that take a minute at their defaults. The help
// prints these defaults from the program's own variables.
bool IsSlow(const std::string& name) {
  return name == "--updates" || name == "--seeds";
}

TEST(DefaultsTest, EveryDefaultOfTheHelpIsWhatTheProgramDoes) {
  ScenarioFlags ignored;
  CLI::App scenario;
  AddScenario(&scenario, /*several=*/false, &ignored);
  int num_compared = 0;
  CommandLine line;
  const auto app = MakeWeirApp(&line);
  for (CLI::App* each : AllCommands(app.get())) {
    const std::string command = NameOf(*each);
    for (CLI::Option* option : each->get_options()) {
      const std::string name = option->get_name();
      const std::string fallback = option->get_default_str();
      if (fallback.empty() || IsProse(fallback)) continue;
      const std::string value = ValueOf(fallback);
      const absl::Status status = SetOption(option, value);
      EXPECT_TRUE(status.ok()) << command << " " << name << " [" << value
                               << "]: " << status.message();
      const Arguments* question = QuestionOf(command);
      // One command represents all others with the same options.
      const bool shared = scenario.get_option_no_throw(name) != nullptr &&
                          (question == nullptr || command == "sweep" ||
                           command == "train-study" || command == "plan" ||
                           command == "schedule synthesize");
      if (shared || name == "--format" || IsSlow(name)) {
        continue;
      }
      if (question == nullptr) {
        EXPECT_TRUE(command == "compare" || command == "explain" ||
                    command == "collect" || command == "report" ||
                    command == "draw" || command == "slack" ||
                    command == "jitter" || command == "import" ||
                    command == "energy")
            << "no question for " << command << " " << name;
        continue;
      }
      const ProgramRun silent = Ask(command, *question, name, "");
      const ProgramRun said =
          Ask(command, *question, name, absl::StrCat(name, " ", value));
      EXPECT_LE(silent.exit_code, 1) << command << ": " << silent.err;
      EXPECT_EQ(silent.exit_code, said.exit_code) << said.err;
      EXPECT_EQ(silent.out, said.out) << command << " " << name;
      ++num_compared;
    }
  }
  EXPECT_GE(num_compared, 35);
}

// Checks the default in the way that a user relies on it.
TEST(DefaultsTest, AMicrobatchHasOneSequenceUnlessItIsSaid) {
  const std::string question =
      "simulate --schedule 1f1b --model gpt2 --cluster dgx-a100 --tp 4 "
      "--gbs 64";
  const ProgramRun silent = RunWeir(question);
  ASSERT_EQ(silent.exit_code, 0) << silent.err;
  EXPECT_EQ(silent.out, RunWeir(question + " --mbs 1").out);
  EXPECT_NE(silent.out, RunWeir(question + " --mbs 2").out);
}

}  // namespace weir::cli::defaults_test
