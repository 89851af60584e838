// SPDX-License-Identifier: Apache-2.0
#include "cli/options/scenario_options.h"

#include "absl/strings/str_split.h"
#include "cli/options/option_group.h"

namespace weir::cli {
namespace {

void AddModel(Options* options, Scenario* scenario) {
  Group group("Model", options);
  group.Text("--model", "M",
             "preset, or file: Hugging Face config.json, textproto or "
             "PipeDream profile graph",
             scenario->mutable_model());
}

// Adds the options of the batch and the optimizer.
void AddOptimizer(Options* options, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  Group group("Training", options);
  group.Count(
      "--gbs,--global-batch-size",
      "sequences per batch, over all data-parallel ranks",
      [=](uint32_t n) { scenario->mutable_batch()->set_global_batch_size(n); });
  group
      .Choice("--optimizer", "optimizer (sgd: SGD with momentum)",
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
  group.Switch("--grad-reduce-in-bf16",
               "keep and reduce gradients of bf16 weights in bf16",
               [=](bool on) {
                 if (on) flags->fp32_gradients = false;
               });
  group.Switch("--use-distributed-optimizer,--distributed-optimizer",
               "shard optimizer states across data-parallel ranks (ZeRO-1)",
               [=](bool on) { flags->distributed_optimizer = on; });
  group.Switch("--fully-sharded",
               "shard weights, gradients and optimizer states across "
               "data-parallel ranks (FSDP, ZeRO-3)",
               [=](bool on) { flags->fully_sharded = on; });
}

void AddPlacement(Options* options, Scenario* scenario) {
  Group group("Parallelism", options);
  group
      .Count("--dp,--data-parallel-size",
             "data-parallel size (replicas of the pipeline)",
             [=](uint32_t n) { scenario->mutable_parallelism()->set_data(n); })
      .fallback = "1";
  group
      .Text("--order", "ORDER",
            "parallel dimensions in the order of GPU numbers, fastest-varying "
            "first: tp-dp-pp or tp-pp-dp",
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
  list("--gpus",
       "explicit placement: GPU numbers of one replica after the other, each "
       "rank by rank",
       0, parallelism->mutable_gpus());
  list("--blocks-per-stage",
       "number of blocks of each stage, for an uneven partition", 0,
       parallelism->mutable_blocks_per_stage());
  group.Text(
      "--layout,--pipeline-model-parallel-layout", "LAYOUT",
      "layers of each stage, in Megatron-LM's notation: \"Et*3|(tt|)*2t|L\"",
      parallelism->mutable_layout());
}

void AddCluster(Options* options, Scenario* scenario) {
  Group group("Cluster", options);
  group.Text("--cluster", "C", "preset, or textproto file",
             scenario->mutable_cluster());
  group
      .Count("--nodes", "number of nodes",
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
            "device profile: preset (weir profile list) or file",
            scenario->mutable_profile())
      .fallback = "the cluster's";
}

void AddSchedule(Options* options, ScenarioFlags* flags, bool several) {
  Scenario* scenario = &flags->overrides;
  Group group("Schedule", options);
  Option& schedule = group.Add(
      "--schedule", several ? "S,S,..." : "S",
      several ? "schedules to compare (weir schedule list)"
              : "schedule (see weir schedule list)",
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
      "seconds per pass, instead of model and cluster: f=1,b=2,c=0.1 or "
      "f=1,i=1,w=1 (f: forward; b: backward; i, w: its halves for inputs and "
      "weights; c: one hop; o: a forward overlapped with a backward; h: one "
      "transfer to or from the host; p: one weight prediction; z: one "
      "compression; a: bytes saved from forward to backward; g: bytes saved "
      "from I to W), or a file; f=1/1/2 gives a value per stage. Values are "
      "per stage, of which a rank has several with --chunks; if weir chooses "
      "the chunks, they are per rank and divided among its stages",
      &flags->costs);
  AddMicrobatches(options, scenario, "", "until steady");
  group
      .Choice("--transfers",
              "whether a rank computes while it sends (overlapped) or waits "
              "(blocking)",
              {{"overlapped", OVERLAPPED}, {"blocking", BLOCKING}},
              [=](int value) {
                scenario->mutable_communication()->set_transfers(
                    static_cast<TransferMode>(value));
              })
      .fallback = "overlapped";
  group
      .Choice("--gradient-reduction",
              "whether gradients are reduced during the backward (overlapped) "
              "or after it (blocking)",
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
           "bucket size of overlapped gradient reductions",
           [=](const std::string& text) {
             ASSIGN_OR_RETURN(const double bytes, ParsePositive(text));
             scenario->mutable_communication()->set_bucket_bytes(bytes);
             return absl::OkStatus();
           })
      .fallback = "25 MiB";
  group.Add(
      "--stash-bytes-per-parameter", "BYTES",
      "bytes per parameter of a stashed weight version",
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
              "activations to recompute in the backward",
              {{"none", RECOMPUTE_NONE},
               {"selective", RECOMPUTE_SELECTIVE},
               {"full", RECOMPUTE_FULL}},
              [=](int value) {
                scenario->mutable_training()->set_recompute(
                    static_cast<RecomputeMode>(value));
              })
      .fallback = "none";
  group
      .Choice("--precision",
              "training precision (fp16 and bf16 keep fp32 master weights)",
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
               "fused attention, which stores no score matrix",
               [=](bool on) { flags->flash_attention = on; });
  group.Switch("--dropout",
               "the model has dropout, whose masks are saved for the backward",
               [=](bool on) { flags->dropout = on; });
}

void AddTensorParallel(Options* options, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  Group group("Parallelism", options);
  group
      .Count(
          "--tp,--tensor-model-parallel-size", "tensor-parallel size",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_tensor(n); })
      .fallback = "1";
  group
      .Count(
          "--ep,--expert-model-parallel-size", "expert-parallel size",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_expert(n); })
      .fallback = "1";
  group.Switch("--sequence-parallel",
               "Megatron sequence parallelism across the tensor-parallel group",
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
