// SPDX-License-Identifier: Apache-2.0
#include "cli/options/options.h"

#include "absl/strings/str_split.h"
#include "cli/options/option_group.h"
#include "cli/options/scenario_options.h"

namespace weir::cli {
namespace {

void AddTolerance(absl::string_view help, double* tolerance, Options* options,
                  absl::string_view title) {
  Group(title, options)
      .Add("--tolerance", "PART", help, [=](const std::string& text) {
        ASSIGN_OR_RETURN(*tolerance, ParsePositive(text));
        return absl::OkStatus();
      });
}

// Adds the options for validating an execution.
void AddReplay(Options* options, Flags* flags) {
  Group group("A replay", options);
  group.Text("--replay", "REPLAY",
             "what weir-calibrate replay wrote, or FILE.csv with rank, action, "
             "start_ms and end_ms of any runtime",
             &flags->measured.replay);
  group.Text("--against", "RESULT.pb",
             "its prediction: what weir simulate --out wrote",
             &flags->measured.against);
  group.Text("--result", "NAME", "schedule or name, where it holds several",
             &flags->result);
  group.Text("--trace", "FILE",
             "predicted above measured, rank by rank: .pftrace or .json",
             &flags->output.trace);
}

void AddMegatronArgs(Options* options, Flags* flags) {
  Group("Model", options)
      .Text("--megatron-args", "FILE",
            "model and layout from Megatron-LM's arguments, as weir plan --out "
            "writes them, instead of a scenario; with --cluster",
            &flags->scenario.megatron_args);
}

Options OptionsOfRun(Flags* flags, bool several) {
  Options options;
  Group("", &options)
      .Text("SCENARIO", "", "preset or textproto file; flags override it",
            &flags->scenario.scenario);
  AddMegatronArgs(&options, flags);
  AddScenario(&options, &flags->scenario, several);
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group output("Output", &options);
  output.Text("--out", "FILE.pb", "results with timelines, for show and trace",
              &flags->output.out);
  output.Text("--trace", "FILE",
              several ? "timeline of the fastest that fits: .pftrace, .json, "
                        "or a folder/"
                      : "timeline: .pftrace (ui.perfetto.dev) or .json",
              &flags->output.trace);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace

std::vector<std::string> AllNames(const Option& option) {
  return absl::StrSplit(option.names, ',');
}

std::string FirstName(const Option& option) { return AllNames(option).front(); }

Options OptionsOfSimulate(Flags* flags) {
  Options options = OptionsOfRun(flags, /*several=*/false);
  AddMethod(
      "every GPU and microbatch, or only what tells of the others: the "
      "same time and memory, no --trace, --out and CSV",
      "Output", &flags->fast, &options);
  return options;
}

Options OptionsOfExplain(Flags* flags) {
  Options options;
  Group scenario("", &options);
  scenario.Text("SCENARIO", "", "preset or textproto file; flags override it",
                &flags->scenario.scenario);
  scenario
      .Count("--jobs,-j", "simulations at the same time",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "the machine's cores";
  AddMegatronArgs(&options, flags);
  AddScenario(&options, &flags->scenario, /*several=*/false);
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfCompare(Flags* flags) {
  return OptionsOfRun(flags, /*several=*/true);
}

Options OptionsOfTrainStudy(Flags* flags) {
  Options options;
  Group("", &options)
      .Text("SCENARIO", "",
            "says what a batch takes: preset or textproto file [train-study]",
            &flags->scenario.scenario);
  TrainStudyFlags* study = &flags->study;
  Group group("Training study", &options);
  group
      .Text("--train-model", "M",
            "what is trained, under the scenario's ranks, stages and "
            "microbatches: preset or file",
            &study->train_model)
      .fallback = "tiny-gpt";
  group
      .Count("--updates", "batches that are trained",
             [=](uint32_t n) { study->updates = n; })
      .fallback = absl::StrCat(study->updates);
  group
      .Count("--seeds", "times that each schedule trains",
             [=](uint32_t n) { study->seeds = n; })
      .fallback = absl::StrCat(study->seeds);
  group
      .Add("--learning-rate", "RATE",
           "of an update of a whole batch; of fewer microbatches in "
           "proportion",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(study->learning_rate, ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = absl::StrCat(study->learning_rate);
  group
      .Add("--momentum", "PART", "of SGD; none: 0",
           [=](const std::string& text) {
             if (text == "0") {
               study->momentum = 0;
               return absl::OkStatus();
             }
             ASSIGN_OR_RETURN(study->momentum, ParsePositive(text));
             return study->momentum < 1
                        ? absl::OkStatus()
                        : absl::InvalidArgumentError(absl::StrCat(
                              "is ", text, ", expected a number below 1"));
           })
      .fallback = absl::StrCat(study->momentum);
  group
      .Count("--jobs,-j", "trainings at the same time",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "the machine's cores";
  AddScenario(&options, &flags->scenario, /*several=*/true);
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group output("Output", &options);
  output.Text("--out", "FILE.csv", "the loss of every batch",
              &flags->output.out);
  output.Text("--plot", "FILE.svg",
              "loss against samples and against seconds, by gnuplot",
              &study->plot);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfValidate(Flags* flags) {
  Options options;
  MeasuredFlags* measured = &flags->measured;
  Group runs("Measured runs", &options);
  runs.Text("--measured", "FILE.csv", "one measured run a row",
            &measured->file);
  runs.Text("--scenario", "SCENARIO",
            "preset or file: what the rows do not say",
            &flags->scenario.scenario);
  runs.Text("--columns", "MAP", "textproto: what the file's columns mean",
            &measured->columns);
  Option& where = runs.Text("--where", "COLUMN=VALUE,...",
                            "only rows with these values (a|b: one of them)",
                            &measured->where);
  where.repeats = true;
  runs.Count("--jobs,-j", "runs simulated at the same time",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "the machine's cores";
  AddReplay(&options, flags);
  AddTolerance(
      "exit 1 when a mean absolute error is above it (0.1: 10 %); of a replay: "
      "the error of the makespan, or of a rank's peak memory, by the replay's "
      "count or by its allocator's",
      &measured->tolerance, &options, "Verdict");
  AddScenario(&options, &flags->scenario, /*several=*/false);
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group("Output", &options)
      .Switch("--all", "every row in the tables, not only the worst",
              [=](bool on) { measured->all = on; });
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfShow(Flags* flags) {
  Options options = OptionsOfNamed("RESULT.pb", "what --out wrote", flags);
  Group("Output", &options)
      .Text("--result", "NAME", "only this schedule or name", &flags->result);
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfTrace(Flags* flags) {
  Options options = OptionsOfNamed("RESULT.pb", "what --out wrote", flags);
  Group output("Output", &options);
  output
      .Text("--result", "NAME", "schedule or name of the result",
            &flags->result)
      .fallback = "the fastest that fits";
  output
      .Text("--output,-o", "FILE", ".pftrace (ui.perfetto.dev) or .json",
            &flags->output.trace)
      .required = true;
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfList(Flags* flags) {
  Options options;
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfModelShow(Flags* flags) {
  Options options = OptionsOfNamed(
      "MODEL", "preset, or file: config.json, textproto, graph", flags);
  AddWork(&options, &flags->scenario);
  AddTensorParallel(&options, &flags->scenario);
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfClusterShow(Flags* flags) {
  Options options = OptionsOfNamed("CLUSTER", "preset or file", flags);
  Scenario* scenario = &flags->scenario.overrides;
  Group("Cluster", &options)
      .Count("--nodes", "how many nodes of it",
             [=](uint32_t n) { scenario->set_num_nodes(n); })
      .fallback = "the cluster's";
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfScenarioShow(Flags* flags) {
  Options options = OptionsOfNamed("SCENARIO", "preset or file", flags);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfProfileShow(Flags* flags) {
  Options options = OptionsOfNamed("PROFILE", "preset or file", flags);
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfProfileDiff(Flags* flags) {
  Options options = OptionsOfNamed("A", "preset or file", flags);
  Group("", &options)
      .Text("B", "", "preset or file", &flags->profile.other)
      .required = true;
  AddTolerance("exit 1 when a figure or a kernel differs by more (0.02: 2 %)",
               &flags->profile.tolerance, &options, "Output");
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfProfileImport(Flags* flags) {
  Options options = OptionsOfNamed(
      "FILE", "measurements: a CSV of products with m, n, k and latency_ms",
      flags);
  ProfileFlags* profile = &flags->profile;
  Group group("Profile", &options);
  group
      .Text("--profile", "P", "device profile to begin with, preset or file",
            &profile->start)
      .required = true;
  group
      .Text("--source", "TEXT", "where the measurements come from",
            &profile->source)
      .fallback = "the file's name";
  Group("Output", &options)
      .Text("--out", "FILE", "the fitted profile, a textproto", &profile->out)
      .required = true;
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
