// SPDX-License-Identifier: Apache-2.0
#include "cli/options/scenario_options.h"

#include "absl/strings/str_split.h"
#include "cli/options/option_group.h"

namespace weir::cli {
namespace {

void AddModel(Options* options, Scenario* scenario) {
  Group group("Model", options);
  group.Text("--model", "M", "preset, or file: config.json, textproto, graph",
             scenario->mutable_model());
}

// Adds the options of the batch and the optimizer.
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
  group
      .Switch("--fp32-gradients,--accumulate-allreduce-grads-in-fp32",
              "accumulate gradients in fp32",
              [=](bool on) { flags->fp32_gradients = on; })
      .fallback = "with Megatron-LM and bf16";
  group.Switch("--grad-reduce-in-bf16", "gradients of bf16 weights in bf16",
               [=](bool on) {
                 if (on) flags->fp32_gradients = false;
               });
  group.Switch("--use-distributed-optimizer,--distributed-optimizer",
               "share the optimizer's states out over the replicas (ZeRO-1)",
               [=](bool on) { flags->distributed_optimizer = on; });
  group.Switch("--fully-sharded",
               "share weights, gradients and states out over the replicas "
               "(FSDP, ZeRO-3)",
               [=](bool on) { flags->fully_sharded = on; });
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
  group.Switch("--overlap-grad-reduce", "--gradient-reduction overlapped",
               [=](bool on) {
                 scenario->mutable_communication()->set_gradient_reduction(
                     on ? REDUCTION_OVERLAPPED : REDUCTION_BLOCKING);
               });
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

}  // namespace

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
  group.Switch("--fp16", "--precision fp16", [=](bool on) {
    if (on) scenario->mutable_training()->set_precision(MIXED_FP16);
  });
  group.Switch("--bf16", "--precision bf16", [=](bool on) {
    if (on) scenario->mutable_training()->set_precision(MIXED_BF16);
  });
  group.Switch("--flash-attention,--use-flash-attn",
               "fused attention, no score matrix",
               [=](bool on) { flags->flash_attention = on; });
  group.Switch("--dropout", "keep dropout masks for the backward",
               [=](bool on) { flags->dropout = on; });
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

Options OptionsOfScenario(ScenarioFlags* flags) {
  Options options;
  AddScenario(&options, flags, /*several=*/false);
  return options;
}

}  // namespace weir::cli
