// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include "absl/strings/str_split.h"
#include "cli/option_group.h"

namespace weir {
namespace {

void AddModel(Options* options, Scenario* scenario) {
  Group group("Model", options);
  group.Text("--model", "M", "preset, or file: config.json, textproto, graph",
             scenario->mutable_model());
}

// How a layer is run: what "model show" needs too.
void AddWork(Options* options, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  Group group("Training", options);
  group
      .Count("--mbs,--micro-batch-size", "sequences per microbatch",
             [=](uint32_t n) {
               scenario->mutable_batch()->set_microbatch_size(n);
             })
      .fallback = "1";
  group
      .Count("--seq,--seq-length", "tokens per sequence",
             [=](uint32_t n) {
               scenario->mutable_batch()->set_sequence_length(n);
             })
      .fallback = "the model's";
  group
      .Choice("--recompute,--recompute-granularity",
              "activations computed again in the backward",
              {{"none", RECOMPUTE_NONE},
               {"selective", RECOMPUTE_SELECTIVE},
               {"full", RECOMPUTE_FULL}},
              [=](int value) {
                scenario->mutable_training()->set_recompute(
                    static_cast<RecomputeMode>(value));
              })
      .fallback = "none";
  group
      .Choice("--precision", "mixed keeps fp32 master weights",
              {{"fp16", MIXED_FP16}, {"bf16", MIXED_BF16}, {"fp32", FP32}},
              [=](int value) {
                scenario->mutable_training()->set_precision(
                    static_cast<Precision>(value));
              })
      .fallback = "fp16";
  group.Switch("--flash-attention", "fused attention, no score matrix",
               [=](bool on) { flags->flash_attention = on; });
  group.Switch("--dropout", "keep dropout masks for the backward",
               [=](bool on) { flags->dropout = on; });
}

void AddOptimizer(Options* options, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  Group group("Training", options);
  group.Count(
      "--gbs,--global-batch-size", "sequences per update, all replicas",
      [=](uint32_t n) { scenario->mutable_batch()->set_global_batch_size(n); });
  group
      .Choice("--optimizer", "sgd is SGD with momentum",
              {{"adam", ADAM}, {"sgd", SGD_MOMENTUM}},
              [=](int value) {
                scenario->mutable_training()->set_optimizer(
                    static_cast<Optimizer>(value));
              })
      .fallback = "adam";
  group.Switch("--fp32-gradients", "accumulate gradients in fp32",
               [=](bool on) { flags->fp32_gradients = on; });
  group.Switch("--use-distributed-optimizer,--distributed-optimizer",
               "share the optimizer's states out over the replicas (ZeRO-1)",
               [=](bool on) { flags->distributed_optimizer = on; });
  group.Switch("--fully-sharded",
               "share weights, gradients and states out over the replicas "
               "(FSDP, ZeRO-3)",
               [=](bool on) { flags->fully_sharded = on; });
}

void AddTensorParallel(Options* options, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  Group group("Parallelism", options);
  group
      .Count(
          "--tp,--tensor-model-parallel-size", "tensor-parallel GPUs",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_tensor(n); })
      .fallback = "1";
  group
      .Count(
          "--ep,--expert-model-parallel-size",
          "replicas that share out the experts",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_expert(n); })
      .fallback = "1";
  group.Switch("--sequence-parallel", "split norms and dropout over them too",
               [=](bool on) { flags->sequence_parallel = on; });
}

void AddPlacement(Options* options, Scenario* scenario) {
  Group group("Parallelism", options);
  group
      .Count("--dp,--data-parallel-size", "replicas of the pipeline",
             [=](uint32_t n) { scenario->mutable_parallelism()->set_data(n); })
      .fallback = "1";
  group
      .Text("--order", "ORDER", "GPU numbering: tp-dp-pp or tp-pp-dp",
            scenario->mutable_parallelism()->mutable_order())
      .fallback = "tp-dp-pp";
  const auto list = [&](absl::string_view name, absl::string_view help,
                        uint32_t lowest, auto* target) {
    group.Add(name, "N,N,...", help, [=](const std::string& text) {
      ASSIGN_OR_RETURN(const auto counts, ParseCounts(text, lowest));
      target->Assign(counts.begin(), counts.end());
      return absl::OkStatus();
    });
  };
  auto* parallelism = scenario->mutable_parallelism();
  list("--gpus", "explicit placement, replica by replica, rank by rank", 0,
       parallelism->mutable_gpus());
  list("--blocks-per-stage", "an uneven cut of the model", 0,
       parallelism->mutable_blocks_per_stage());
  group.Text("--layout,--pipeline-model-parallel-layout", "LAYOUT",
             "Megatron-LM's placement of layers: \"Et*3|(tt|)*2t|L\"",
             parallelism->mutable_layout());
}

void AddCluster(Options* options, Scenario* scenario) {
  Group group("Cluster", options);
  group.Text("--cluster", "C", "preset, or textproto file",
             scenario->mutable_cluster());
  group
      .Count("--nodes", "how many nodes of it",
             [=](uint32_t n) { scenario->set_num_nodes(n); })
      .fallback = "the cluster's";
  group
      .Text("--runtime", "R",
            "training framework: megatron-lm, megatron-lm-2021, "
            "megatron-deepspeed, pytorch, weir, none, or textproto file",
            scenario->mutable_runtime())
      .fallback = "megatron-lm";
  group
      .Text("--profile", "P",
            "device profile, preset (weir profile list) or file",
            scenario->mutable_profile())
      .fallback = "the cluster's";
}

void AddSchedule(Options* options, ScenarioFlags* flags, bool several) {
  Scenario* scenario = &flags->overrides;
  Group group("Schedule", options);
  Option& schedule = group.Add(
      "--schedule", several ? "S,S,..." : "S",
      several ? "schedules to compare (weir schedule list)"
              : "see weir schedule list",
      [=](const std::string& text) {
        flags->schedules = absl::StrSplit(text, ',', absl::SkipWhitespace());
        if (flags->schedules.empty()) {
          return absl::InvalidArgumentError("is empty");
        }
        return absl::OkStatus();
      });
  schedule.repeats = several;
  group.Text(
      "--costs", "COSTS",
      "instead of model and cluster: f=1,b=2,c=0.1 or f=1,i=1,w=1 "
      "(c: one hop; o: a forward beside a backward; h: one way to the "
      "host; p: one prediction of weights; z: one compression; a: bytes "
      "kept from forward to backward; g: from I to W), or a "
      "file; f=1/1/2 is stage by stage; seconds of one stage: with --chunks a "
      "rank has several stages; where weir chooses the chunks, seconds "
      "of a whole rank, divided among its stages",
      &flags->costs);
  AddMicrobatches(options, scenario, "", "until steady");
  group
      .Choice("--transfers", "does a rank compute while it sends?",
              {{"overlapped", OVERLAPPED}, {"blocking", BLOCKING}},
              [=](int value) {
                scenario->mutable_communication()->set_transfers(
                    static_cast<TransferMode>(value));
              })
      .fallback = "overlapped";
  group
      .Choice("--gradient-reduction", "all-reduce of the gradients",
              {{"blocking", REDUCTION_BLOCKING},
               {"overlapped", REDUCTION_OVERLAPPED}},
              [=](int value) {
                scenario->mutable_communication()->set_gradient_reduction(
                    static_cast<ReductionMode>(value));
              })
      .fallback = "blocking";
  group
      .Add("--bucket-bytes", "BYTES",
           "overlapped gradients are reduced in pieces this large",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const double bytes, ParsePositive(text));
             scenario->mutable_communication()->set_bucket_bytes(bytes);
             return absl::OkStatus();
           })
      .fallback = "25 MiB";
  group.Add(
      "--stash-bytes-per-parameter", "BYTES", "of one stashed weight version",
      [=](const std::string& text) {
        ASSIGN_OR_RETURN(const double bytes, ParsePositive(text));
        scenario->mutable_training()->set_stash_bytes_per_parameter(bytes);
        return absl::OkStatus();
      });
}

void AddScenario(Options* options, ScenarioFlags* flags, bool several) {
  Scenario* scenario = &flags->overrides;
  AddModel(options, scenario);
  AddCluster(options, scenario);
  AddPipeline(options, scenario, "1");
  AddPlacement(options, scenario);
  AddTensorParallel(options, flags);
  AddSchedule(options, flags, several);
  AddWork(options, flags);
  AddOptimizer(options, flags);
}

void AddTolerance(absl::string_view help, double* tolerance, Options* options,
                  absl::string_view title) {
  Group(title, options)
      .Add("--tolerance", "PART", help, [=](const std::string& text) {
        ASSIGN_OR_RETURN(*tolerance, ParsePositive(text));
        return absl::OkStatus();
      });
}

// "validate" of an execution.
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

Options OptionsOfRun(Flags* flags, bool several) {
  Options options;
  Group("", &options)
      .Text("SCENARIO", "", "preset or textproto file; flags override it",
            &flags->scenario.scenario);
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
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace

std::vector<std::string> AllNames(const Option& option) {
  return absl::StrSplit(option.names, ',');
}

std::string FirstName(const Option& option) { return AllNames(option).front(); }

Options OptionsOfScenario(ScenarioFlags* flags) {
  Options options;
  AddScenario(&options, flags, /*several=*/false);
  return options;
}

Options OptionsOfSimulate(Flags* flags) {
  return OptionsOfRun(flags, /*several=*/false);
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
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir
