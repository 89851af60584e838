// SPDX-License-Identifier: Apache-2.0
#include "cli/options/scenario_options.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options/adapter_options.h"
#include "cli/options/add_option.h"
#include "cli/options/memory_options.h"
#include "cli/options/precision_options.h"
#include "scenarios/cluster/slow_parts.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/set_figures.h"

namespace weir::cli {
namespace {

absl::StatusOr<double> ParseZeroOrPositive(absl::string_view text) {
  if (text == "0") return 0;
  return ParsePositive(text);
}

absl::StatusOr<uint32_t> ParseNumGpus(const std::string& text) {
  if (absl::StrContains(text, ',')) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", text, ", expected the number of GPUs to use; ",
                     "--placement ", text, " lists GPUs"));
  }
  return ParseCount(text);
}

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text) {
  return ParseCounts(text, 0);
}

absl::StatusOr<std::vector<std::string>> ParseSchedules(
    const std::string& text) {
  std::vector<std::string> schedules =
      absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (schedules.empty()) return absl::InvalidArgumentError("is empty");
  return schedules;
}

absl::StatusOr<std::vector<std::string>> ParseFigureSettings(
    const std::string& text) {
  std::vector<std::string> settings =
      absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (settings.empty()) return absl::InvalidArgumentError("is empty");
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(scenarios::CheckFigureSetting(setting));
  }
  return settings;
}

// Parses a number of MTP modules.
absl::StatusOr<uint32_t> ParseMtpModules(absl::string_view text) {
  if (text == "0") return 0;
  return ParseCount(text);
}

void AddModel(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddText(app, "--model", "M",
          "preset, or file: Hugging Face config.json, textproto or PipeDream "
          "profile graph",
          scenario->mutable_model())
      ->group("Model");
  AddOption(
      app, "--mtp-num-layers", "N",
      "modules of multi-token prediction; 0 leaves out those of the "
      "model",
      ParseMtpModules,
      [=](uint32_t n) { scenario->mutable_training()->set_mtp_num_layers(n); })
      ->group("Model")
      ->default_str("the model's");
}

void AddCluster(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Cluster");
  AddText(app, "--cluster", "C", "preset, or textproto file",
          scenario->mutable_cluster());
  AddNodes(app, flags);
  AddNetwork(app, flags);
  AddText(app, "--runtime", "R",
          "training framework: megatron-lm, megatron-lm-2021, zero-bubble, "
          "megatron-deepspeed, pytorch, weir, none, or textproto file",
          scenario->mutable_runtime())
      ->default_str("by --defaults");
  AddText(app, "--profile", "P",
          "device profile: preset (weir profile list) or file",
          scenario->mutable_profile())
      ->default_str("the cluster's");
  AddOption(app, "--set", "PARAMETER=VALUE,...",
            "replace a parameter of the device profile, of the runtime "
            "(runtime.NAME, or a switch of it with true or false) or of the "
            "cluster (cluster.NAME); weir explain and weir profile show list "
            "them. VALUE+-PERCENT% also gives its uncertainty, otherwise "
            "none. May be repeated",
            ParseFigureSettings, scenario->mutable_set_figures())
      ->join(',');
  AddOption(app, "--slow", "PART=SPEED,...",
            "slow parts of the cluster: gpu17=0.8, link:node3.nic2=0.5, "
            "leaf:2=0.5 (its links to the spine). May be repeated",
            scenarios::ParseSlowParts, scenario->mutable_slow())
      ->join(',');
}

// Adds Megatron-LM's options for other numbers of blocks in the first and the
// last rank, and for a vocabulary that all ranks share.
void AddUnevenSplit(CLI::App* app, Parallelism* parallelism) {
  AddCount(app, "--decoder-first-pipeline-num-layers",
           "blocks of the first pipeline rank",
           [=](uint32_t n) {
             parallelism->set_decoder_first_pipeline_num_layers(n);
           })
      ->default_str("an equal share");
  AddCount(
      app, "--decoder-last-pipeline-num-layers",
      "blocks of the last pipeline rank",
      [=](uint32_t n) { parallelism->set_decoder_last_pipeline_num_layers(n); })
      ->default_str("an equal share");
  AddSwitch(app, "--account-for-embedding-in-pipeline-split",
            "count the embedding as a block of the first stage", [=](bool on) {
              parallelism->set_account_for_embedding_in_pipeline_split(on);
            });
  AddSwitch(app, "--account-for-loss-in-pipeline-split",
            "count the head and loss as a block of the last stage",
            [=](bool on) {
              parallelism->set_account_for_loss_in_pipeline_split(on);
            });
  AddChoice<VocabularyParallel>(
      app, "--vocabulary-parallel",
      "shard the vocabulary across the pipeline ranks, with one or two "
      "barriers per microbatch (algorithms 2 and 1 of Yeung et al. 2024)",
      {{"none", VOCABULARY_PARALLEL_UNSPECIFIED},
       {"one-barrier", VOCABULARY_ONE_BARRIER},
       {"two-barriers", VOCABULARY_TWO_BARRIERS}},
      [=](VocabularyParallel mode) {
        parallelism->set_vocabulary_parallel(mode);
      })
      ->default_str("none");
}

void AddPlacement(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(app, "--dp,--data-parallel-size",
           "data-parallel size (replicas of the pipeline)",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_data(n); })
      ->default_str("GPUs / (tp x pp x cp)");
  AddCount(app, "--data-replicate,--num-distributed-optimizer-instances",
           "groups of data-parallel GPUs, within each of which what training "
           "shards is sharded (hybrid sharding)",
           [=](uint32_t n) {
             scenario->mutable_parallelism()->set_data_replicate(n);
           })
      ->default_str("1");
  AddText(app, "--order", "ORDER",
          "parallel dimensions in the order of GPU numbers, fastest-varying "
          "first: tp-dp-pp or tp-pp-dp",
          [=](const std::string& order) {
            scenario->mutable_parallelism()->set_order(order);
          })
      ->default_str("tp-dp-pp");
  AddOption(
      app, "--gpus", "N",
      "number of GPUs to use; sets the number of nodes unless --nodes is "
      "given",
      ParseNumGpus,
      [=](uint32_t n) { scenario->mutable_parallelism()->set_num_gpus(n); })
      ->default_str("all of the cluster");
  AddOption(app, "--placement", "N,N,...",
            "explicit placement: GPU numbers of one replica after the other, "
            "each rank by rank",
            ParseNumbers, [=](const std::vector<uint32_t>& gpus) {
              scenario->mutable_parallelism()->mutable_gpus()->Assign(
                  gpus.begin(), gpus.end());
            });
  AddOption(
      app, "--blocks-per-stage", "N,N,...",
      "number of blocks of each stage, for an uneven partition", ParseNumbers,
      [=](const std::vector<uint32_t>& blocks) {
        scenario->mutable_parallelism()->mutable_blocks_per_stage()->Assign(
            blocks.begin(), blocks.end());
      });
  AddText(
      app, "--layout,--pipeline-model-parallel-layout", "LAYOUT",
      "layers of each stage, in Megatron-LM's notation: \"Et*3|(tt|)*2t|L\"",
      [=](const std::string& layout) {
        scenario->mutable_parallelism()->set_layout(layout);
      });
  AddUnevenSplit(app, scenario->mutable_parallelism());
}

void AddDefaults(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddText(app, "--defaults", "SET",
          "training options that are not given: modern, megatron-2021, "
          "textbook, or textproto file (docs/defaults.md)",
          scenario->mutable_defaults())
      ->group("Training")
      ->default_str("by the model");
}

// Adds the layout of a layer's work, which "plan" searches.
void AddLayerLayout(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(app, "--tp,--tensor-model-parallel-size", "tensor-parallel size",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_tensor(n); })
      ->default_str("1");
  AddCount(app, "--cp,--context-parallel-size",
           "context-parallel size: GPUs that share the tokens of a sequence",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_context(n); })
      ->default_str("1");
  AddCount(app, "--ep,--expert-model-parallel-size", "expert-parallel size",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_expert(n); })
      ->default_str("1");
  AddCount(app, "--etp,--expert-tensor-parallel-size",
           "expert tensor-parallel size: GPUs that share each expert",
           [=](uint32_t n) {
             scenario->mutable_parallelism()->set_expert_tensor(n);
           })
      ->default_str("--tp");
  app->option_defaults()->group("Training");
  AddCount(
      app, "--mbs,--micro-batch-size", "sequences per microbatch",
      [=](uint32_t n) { scenario->mutable_batch()->set_microbatch_size(n); })
      ->default_str("1");
  AddChoice<RecomputeMode>(app, "--recompute,--recompute-granularity",
                           "activations to recompute in the backward",
                           {{"none", RECOMPUTE_NONE},
                            {"selective", RECOMPUTE_SELECTIVE},
                            {"operators", RECOMPUTE_OPERATORS},
                            {"full", RECOMPUTE_FULL}},
                           [=](RecomputeMode mode) {
                             scenario->mutable_training()->set_recompute(mode);
                           })
      ->default_str("none");
  AddRecomputation(app, scenario);
}

// Adds what else changes a layer's work.
void AddLayerSettings(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddChoice<ContextMethod>(
      app, "--cp-comm-type",
      "exchange of keys and values between context-parallel GPUs",
      {{"p2p", CONTEXT_P2P},
       {"all_gather", CONTEXT_ALL_GATHER},
       {"a2a", CONTEXT_A2A},
       {"a2a+p2p", CONTEXT_A2A_P2P}},
      [=](ContextMethod method) {
        scenario->mutable_parallelism()->set_context_method(method);
      })
      ->group("Parallelism")
      ->default_str("p2p");
  AddOption(
      app, "--hierarchical-context-parallel-sizes", "N,N",
      "GPUs of an all-to-all and of a ring, for a2a+p2p", ParseNumbers,
      [=](const std::vector<uint32_t>& sizes) {
        scenario->mutable_parallelism()->mutable_hierarchical_context()->Assign(
            sizes.begin(), sizes.end());
      })
      ->group("Parallelism");
  AddSwitch(app, "--sequence-parallel",
            "Megatron sequence parallelism across the tensor-parallel group",
            &flags->sequence_parallel)
      ->group("Parallelism")
      ->default_str("by --defaults");
  app->option_defaults()->group("Training");
  AddOption(
      app, "--seq,--seq-length", "N", "tokens per sequence, as in 8192 or 8k",
      ParseSize,
      [=](uint32_t n) { scenario->mutable_batch()->set_sequence_length(n); })
      ->default_str("the model's");
  AddOption(app, "--packed-sequences,--sequence-lengths", "LENGTHS",
            "tokens of the documents that are packed into a sequence: 2048, "
            "uniform:SHORTEST-LONGEST, lognormal:MEAN,DEVIATION or "
            "TOKENS*COUNT,... (docs/packed-sequences.md)",
            scenarios::ParseSequenceLengths,
            [=](const SequenceLengths& lengths) {
              *scenario->mutable_batch()->mutable_packed_sequences() = lengths;
            })
      ->default_str("none");
  AddPrecision(app, flags);
  AddSwitch(app, "--flash-attention,--use-flash-attn",
            "fused attention, which stores no score matrix",
            &flags->flash_attention)
      ->default_str("by --defaults");
  AddChoice<AttentionKernel>(
      app, "--attention-kernel",
      "library of fused attention: flash-attention-1, flash-attention-triton, "
      "flash-attention-2, flash-attention-3 or cudnn",
      {{"flash-attention-1", FLASH_ATTENTION_1},
       {"flash-attention-triton", FLASH_ATTENTION_TRITON},
       {"flash-attention-2", FLASH_ATTENTION_2},
       {"flash-attention-3", FLASH_ATTENTION_3},
       {"cudnn", CUDNN}},
      [=](AttentionKernel kernel) {
        scenario->mutable_training()->set_attention_kernel(kernel);
      })
      ->type_name("LIBRARY")
      ->default_str("that of --runtime");
  AddOption(app, "--expert-imbalance", "X",
            "tokens of the most loaded expert over the mean, in expectation",
            ParsePositive,
            [=](double imbalance) {
              scenario->mutable_training()->set_expert_imbalance(imbalance);
            })
      ->default_str("1");
  AddSwitch(app, "--dropout",
            "the model has dropout, whose masks are saved for the backward",
            &flags->dropout);
}

void AddSchedule(CLI::App* app, bool several, ScenarioFlags* flags) {
  app->option_defaults()->group("Schedule");
  CLI::Option* schedule =
      AddOption(app, "--schedule", several ? "S,S,..." : "S",
                several ? "schedules to compare (weir schedule list); "
                          "interleaved-1f1b:v=4 has 4 stages per rank"
                        : "schedule (weir schedule list); "
                          "interleaved-1f1b:v=4 has 4 stages per rank",
                ParseSchedules, &flags->schedules)
          ->default_str("1f1b, or interleaved-1f1b with --chunks");
  if (several) schedule->join(',');
  AddText(
      app, "--costs", "COSTS",
      "seconds per pass, instead of model and cluster: f=1,b=2,c=0.1 or "
      "f=1,i=1,w=1 (f: forward; b: backward; i, w: its halves for inputs and "
      "weights; c: one hop; o: a forward overlapped with a backward; h: one "
      "transfer to or from the host; p: one weight prediction; z: one "
      "compression; a: bytes saved from forward to backward; g: bytes saved "
      "from I to W), or a file; f=1/1/2 gives a value per stage. Values are "
      "per stage, of which a rank has several with --chunks; if weir chooses "
      "the chunks, they are per rank and divided among its stages",
      &flags->costs);
  AddMicrobatches(app, "", "until steady", flags);
}

void AddCommunication(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  const auto set_reduction = [=](ReductionMode mode) {
    scenario->mutable_communication()->set_gradient_reduction(mode);
  };
  app->option_defaults()->group("Schedule");
  AddChoice<TransferMode>(
      app, "--transfers",
      "whether a rank computes while it sends (overlapped) or waits (blocking)",
      {{"overlapped", OVERLAPPED}, {"blocking", BLOCKING}},
      [=](TransferMode mode) {
        scenario->mutable_communication()->set_transfers(mode);
      })
      ->default_str("overlapped");
  AddChoice<ReductionMode>(
      app, "--gradient-reduction",
      "whether gradients are reduced during the backward (overlapped) or after "
      "it (blocking)",
      {{"blocking", REDUCTION_BLOCKING}, {"overlapped", REDUCTION_OVERLAPPED}},
      set_reduction)
      ->default_str("by --defaults");
  AddSwitch(app, "--overlap-grad-reduce", "--gradient-reduction overlapped",
            [=](bool on) {
              set_reduction(on ? REDUCTION_OVERLAPPED : REDUCTION_BLOCKING);
            });
  AddOption(app, "--bucket-bytes", "BYTES",
            "bucket size of overlapped gradient reductions", ParseBytes,
            [=](double bytes) {
              scenario->mutable_communication()->set_bucket_bytes(bytes);
            })
      ->default_str("25 MiB");
  AddTokenDispatcher(app, scenario);
  app->option_defaults()->group("Schedule");
  AddOption(
      app, "--stash-bytes-per-parameter", "BYTES",
      "bytes per parameter of a stashed weight version", ParsePositive,
      [=](double bytes) {
        scenario->mutable_training()->set_stash_bytes_per_parameter(bytes);
      });
}

// Adds the options of the batch and the optimizer.
void AddOptimizer(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Training");
  AddOption(
      app, "--gbs,--global-batch-size", "N",
      "sequences per batch, over all data-parallel ranks", ParseSize,
      [=](uint32_t n) { scenario->mutable_batch()->set_global_batch_size(n); });
  AddChoice<Optimizer>(
      app, "--optimizer",
      "optimizer (sgd: SGD with momentum; dist_muon: Muon whose "
      "data-parallel ranks share the matrices; docs/optimizers.md)",
      {{"adam", ADAM},
       {"sgd", SGD_MOMENTUM},
       {"muon", MUON},
       {"dist_muon", DIST_MUON}},
      [=](Optimizer optimizer) {
        scenario->mutable_training()->set_optimizer(optimizer);
      })
      ->default_str("adam");
  AddMuon(app, scenario);
  AddAdapters(app, scenario);
  AddGradientFormat(app, flags);
  AddSwitch(app, "--use-distributed-optimizer,--distributed-optimizer",
            "shard optimizer states across data-parallel ranks (ZeRO-1)",
            &flags->distributed_optimizer)
      ->default_str("by --defaults");
  AddSwitch(app, "--post-validation,!--no-post-validation",
            "optimizer steps without a barrier, validated later (schedules "
            "with a flush)",
            &flags->post_validation)
      ->default_str("with split backwards on zero-bubble");
  AddOption(app, "--rollback-fraction", "FRACTION",
            "fraction of post-validated steps that are rolled back",
            ParseZeroOrPositive,
            [=](double fraction) {
              scenario->mutable_training()->set_rollback_fraction(fraction);
            })
      ->default_str("0");
  AddSwitch(app, "--fully-sharded",
            "shard weights, gradients and optimizer states across "
            "data-parallel ranks (FSDP, ZeRO-3)",
            &flags->fully_sharded);
  AddOffload(app, scenario);
}

}  // namespace

void AddScenario(CLI::App* app, bool several, ScenarioFlags* flags) {
  AddModel(app, flags);
  AddCluster(app, flags);
  AddPipeline(app, "1", flags);
  AddPlacement(app, flags);
  AddSchedule(app, several, flags);
  AddCommunication(app, flags);
  AddLayerWork(app, flags);
  AddOptimizer(app, flags);
}

void AddGivenScenario(CLI::App* app, ScenarioFlags* flags) {
  AddModel(app, flags);
  AddCluster(app, flags);
  AddCommunication(app, flags);
  AddDefaults(app, flags);
  AddLayerSettings(app, flags);
  AddOptimizer(app, flags);
}

void AddLayerWork(CLI::App* app, ScenarioFlags* flags) {
  AddLayerLayout(app, flags);
  AddDefaults(app, flags);
  AddLayerSettings(app, flags);
}

void AddPipeline(CLI::App* app, const std::string& pipeline,
                 ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Parallelism");
  AddCount(
      app, "--pp,--pipeline-model-parallel-size",
      "pipeline-parallel size (ranks)",
      [=](uint32_t n) { scenario->mutable_parallelism()->set_pipeline(n); })
      ->default_str(pipeline);
  AddCount(app, "--chunks,--vpp,--num-virtual-stages-per-pipeline-rank",
           "stages per rank (virtual pipeline stages)",
           [=](uint32_t n) { scenario->mutable_parallelism()->set_chunks(n); })
      ->default_str("as the schedule requires");
}

void AddMicrobatches(CLI::App* app, const std::string& microbatches,
                     const std::string& batches, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Schedule");
  AddCount(app, "--microbatches", "microbatches per batch and pipeline",
           [=](uint32_t n) { scenario->set_num_microbatches(n); })
      ->default_str(microbatches);
  AddCount(app, "--batches", "batches to simulate (schedules without a flush)",
           [=](uint32_t n) { scenario->set_num_batches(n); })
      ->default_str(batches);
}

void AddNodes(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddCount(app, "--nodes", "number of nodes",
           [=](uint32_t n) { scenario->set_num_nodes(n); })
      ->group("Cluster")
      ->default_str("the cluster's");
}

absl::StatusOr<double> ParseOversubscription(absl::string_view text) {
  const absl::StatusOr<double> ratio = ParsePositive(text);
  if (ratio.ok() && *ratio >= 1 && *ratio <= 1e6) return ratio;
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text), ", expected a number from 1 to 1000000"));
}

void AddNetwork(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Cluster");
  AddChoice<Topology>(
      app, "--topology", "network between the nodes (docs/clusters.md)",
      {{"one-switch", ONE_SWITCH},
       {"fat-tree", FAT_TREE},
       {"rail-optimized", RAIL_OPTIMIZED},
       {"dragonfly", DRAGONFLY}},
      [=](Topology topology) {
        scenario->mutable_cluster_changes()->set_topology(topology);
      })
      ->default_str("the cluster's");
  AddOption(app, "--oversubscription", "RATIO",
            "capacity into the leaf switches over that out of them, of a "
            "dragonfly over that between groups; 1: non-blocking",
            ParseOversubscription,
            [=](double ratio) {
              scenario->mutable_cluster_changes()->set_oversubscription(ratio);
            })
      ->default_str("the cluster's");
  AddCount(app, "--nodes-per-leaf", "nodes of a leaf switch", [=](uint32_t n) {
    scenario->mutable_cluster_changes()->set_nodes_per_leaf(n);
  })->default_str("the cluster's");
  AddCount(app, "--leaves-per-group", "switches in a group of a dragonfly",
           [=](uint32_t n) {
             scenario->mutable_cluster_changes()->set_leaves_per_group(n);
           })
      ->default_str("the cluster's");
  AddCount(app, "--nvlink-domain",
           "GPUs that NVLink switches connect, 72 for example: joins nodes, or "
           "uses the first GPUs of each; --nodes then counts domains",
           [=](uint32_t n) {
             scenario->mutable_cluster_changes()->set_nvlink_domain(n);
           })
      ->default_str("the cluster's");
}

void AddImports(CLI::App* app, ScenarioFlags* flags) {
  ImportFlags* imports = &flags->imports;
  app->option_defaults()->group("Run of a framework (needs --cluster)");
  AddText(app, "--megatron-args", "FILE",
          "read model, layout and training from arguments of Megatron-LM, "
          "such as weir plan --out writes",
          &imports->megatron_args);
  AddText(app, "--sbatch", "FILE",
          "the same from a Slurm script that starts Megatron-LM; nothing is "
          "executed",
          &imports->sbatch);
  AddText(app, "--nemo", "FILE",
          "the same from overrides of Megatron-Bridge or a configuration of "
          "NeMo (YAML, or key=value lines)",
          &imports->nemo);
  AddText(app, "--torchtitan", "FILE",
          "the same from a job configuration of torchtitan (TOML)",
          &imports->torchtitan);
  AddText(app, "--deepspeed", "FILE",
          "batch, precision and ZeRO from a configuration of DeepSpeed (JSON); "
          "the model and the layout come from another option or the scenario",
          &imports->deepspeed);
  AddOption(
      app, "--leave-out", "KEY,...",
      "ignore these settings of the file, for those that weir refuses",
      [](const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
        return std::vector<std::string>(
            absl::StrSplit(text, ',', absl::SkipWhitespace()));
      },
      &imports->left_out)
      ->join(',');
}

std::vector<results::RunSetting> ScenarioSettings(ScenarioFlags* flags) {
  const auto app = std::make_shared<CLI::App>();
  app->set_help_flag();
  AddScenario(app.get(), /*several=*/false, flags);
  std::vector<results::RunSetting> settings;
  for (CLI::Option* option : app->get_options()) {
    results::RunSetting& setting = settings.emplace_back();
    for (const std::string& name : option->get_lnames()) {
      setting.columns.push_back(absl::StrReplaceAll(name, {{"-", "_"}}));
    }
    setting.set = [app, option](const std::string& text) {
      return SetOption(option, text);
    };
  }
  return settings;
}

}  // namespace weir::cli
