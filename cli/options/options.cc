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
  Group group("Executed schedule", options);
  group.Text("--replay", "REPLAY",
             "result of weir-calibrate replay, or FILE.csv from any runtime "
             "with the columns rank, action, start_ms and end_ms",
             &flags->measured.replay);
  group.Text("--against", "RESULT.pb",
             "the prediction, a file written by weir simulate --out",
             &flags->measured.against);
  group.Text("--result", "NAME",
             "schedule or name of the result, if the file has several",
             &flags->result);
  group.Text("--trace", "FILE",
             "write predicted and measured timelines side by side for each "
             "rank: .pftrace or .json",
             &flags->output.trace);
}

void AddMegatronArgs(Options* options, Flags* flags) {
  Group("Model", options)
      .Text("--megatron-args", "FILE",
            "read model and layout from a file of Megatron-LM arguments, such "
            "as weir plan --out writes, instead of a scenario; needs --cluster",
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
  output.Text("--out", "FILE.pb",
              "write results with timelines, for weir show and weir trace",
              &flags->output.out);
  output.Text("--trace", "FILE",
              several
                  ? "write the timeline of the fastest schedule that fits "
                    "(.pftrace or .json), or all timelines into FOLDER/"
                  : "write the timeline: .pftrace (ui.perfetto.dev) or .json",
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
      "full simulates every GPU and microbatch; fast simulates only "
      "representative ones: same time and memory, but no --trace, --out and "
      "CSV",
      "Output", &flags->fast, &options);
  return options;
}

Options OptionsOfExplain(Flags* flags) {
  Options options;
  Group scenario("", &options);
  scenario.Text("SCENARIO", "", "preset or textproto file; flags override it",
                &flags->scenario.scenario);
  scenario
      .Count("--jobs,-j", "parallel simulations",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "number of cores";
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
            "determines the time per batch: preset or textproto file "
            "[train-study]",
            &flags->scenario.scenario);
  TrainStudyFlags* study = &flags->study;
  Group group("Training study", &options);
  group
      .Text("--train-model", "M",
            "model to train, with the scenario's ranks, stages and "
            "microbatches: preset or file",
            &study->train_model)
      .fallback = "tiny-gpt";
  group
      .Count("--updates", "batches to train",
             [=](uint32_t n) { study->updates = n; })
      .fallback = absl::StrCat(study->updates);
  group
      .Count("--seeds", "training runs per schedule",
             [=](uint32_t n) { study->seeds = n; })
      .fallback = absl::StrCat(study->seeds);
  group
      .Add("--learning-rate", "RATE",
           "learning rate for updates of a whole batch; scaled down for "
           "updates of fewer microbatches",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(study->learning_rate, ParsePositive(text));
             return absl::OkStatus();
           })
      .fallback = absl::StrCat(study->learning_rate);
  group
      .Add("--momentum", "PART", "momentum of SGD (0: none)",
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
      .Count("--jobs,-j", "parallel training runs",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "number of cores";
  AddScenario(&options, &flags->scenario, /*several=*/true);
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group output("Output", &options);
  output.Text("--out", "FILE.csv", "write the loss of every batch",
              &flags->output.out);
  output.Text("--plot", "FILE.svg",
              "plot the loss over samples and over seconds (needs gnuplot)",
              &study->plot);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfValidate(Flags* flags) {
  Options options;
  MeasuredFlags* measured = &flags->measured;
  Group runs("Measured runs", &options);
  runs.Text("--measured", "FILE.csv", "measured runs, one per row",
            &measured->file);
  runs.Text("--scenario", "SCENARIO",
            "preset or file: settings that the rows do not give",
            &flags->scenario.scenario);
  runs.Text("--columns", "MAP", "textproto that maps the columns of the file",
            &measured->columns);
  Option& where = runs.Text(
      "--where", "COLUMN=VALUE,...",
      "use only rows with these values (a|b: either value)", &measured->where);
  where.repeats = true;
  runs.Count("--jobs,-j", "parallel simulations",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "number of cores";
  AddReplay(&options, flags);
  AddTolerance(
      "exit with 1 if a mean absolute error is larger (0.1: 10 %); with "
      "--replay: if the error of the makespan or of the peak memory of a rank "
      "is larger, by the replay's own count or by its allocator's",
      &measured->tolerance, &options, "Verdict");
  AddScenario(&options, &flags->scenario, /*several=*/false);
  AddFormat(&options, &flags->output, /*csv=*/true);
  Group("Output", &options)
      .Switch("--all", "show all rows in the tables, not only the worst",
              [=](bool on) { measured->all = on; });
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfShow(Flags* flags) {
  Options options = OptionsOfNamed("RESULT.pb", "file written by --out", flags);
  Group("Output", &options)
      .Text("--result", "NAME", "show only this schedule or name",
            &flags->result);
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfTrace(Flags* flags) {
  Options options = OptionsOfNamed("RESULT.pb", "file written by --out", flags);
  Group output("Output", &options);
  output
      .Text("--result", "NAME", "schedule or name of the result",
            &flags->result)
      .fallback = "the fastest schedule that fits";
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
  Options options = OptionsOfNamed("MODEL",
                                   "preset, or file: Hugging Face config.json, "
                                   "textproto or PipeDream profile graph",
                                   flags);
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
      .Count("--nodes", "number of nodes",
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
  AddTolerance(
      "exit with 1 if a parameter or a kernel time differs by more (0.02: 2 %)",
      &flags->profile.tolerance, &options, "Output");
  AddFormat(&options, &flags->output, /*csv=*/false);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfProfileImport(Flags* flags) {
  Options options =
      OptionsOfNamed("FILE",
                     "measurements: a CSV of GEMMs with the columns m, n, k "
                     "and latency_ms, or output of nccl-tests",
                     flags);
  ProfileFlags* profile = &flags->profile;
  Group group("Profile", &options);
  group
      .Text("--profile", "P", "device profile to start from: preset or file",
            &profile->start)
      .required = true;
  group.Text("--source", "TEXT", "source of the measurements", &profile->source)
      .fallback = "the file's name";
  Group("Output", &options)
      .Text("--out", "FILE", "write the fitted profile (textproto)",
            &profile->out)
      .required = true;
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
