// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/frameworks/megatron_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weir::plan {
namespace {

enum class Kind { kSwitch, kWhole, kReal, kText };

struct Rule {
  Kind kind = Kind::kSwitch;
  std::set<std::string> choices = {};  // for kText; empty: any value
};

const std::map<std::string, Rule>& Rules() {
  static const auto& rules = *new std::map<std::string, Rule>{
      // _add_network_size_args
      {"--num-layers", {Kind::kWhole}},
      {"--hidden-size", {Kind::kWhole}},
      {"--ffn-hidden-size", {Kind::kWhole}},
      {"--num-attention-heads", {Kind::kWhole}},
      {"--attention-backend",
       {Kind::kText, {"flash", "fused", "unfused", "local", "auto"}}},
      {"--kv-channels", {Kind::kWhole}},
      {"--group-query-attention", {}},
      {"--num-query-groups", {Kind::kWhole}},
      {"--window-size", {Kind::kText}},
      {"--max-position-embeddings", {Kind::kWhole}},
      {"--position-embedding-type",
       {Kind::kText,
        {"learned_absolute", "rope", "mrope", "relative", "none"}}},
      {"--rotary-base", {Kind::kWhole}},
      {"--rotary-percent", {Kind::kReal}},
      {"--make-vocab-size-divisible-by", {Kind::kWhole}},
      {"--normalization", {Kind::kText, {"LayerNorm", "RMSNorm"}}},
      {"--swiglu", {}},
      {"--untie-embeddings-and-output-weights", {}},
      {"--qk-layernorm", {}},
      // _add_regularization_args
      {"--attention-dropout", {Kind::kReal}},
      {"--hidden-dropout", {Kind::kReal}},
      // _add_training_args
      {"--micro-batch-size", {Kind::kWhole}},
      {"--global-batch-size", {Kind::kWhole}},
      {"--recompute-granularity", {Kind::kText, {"full", "selective"}}},
      {"--recompute-method", {Kind::kText, {"uniform", "block"}}},
      {"--recompute-num-layers", {Kind::kWhole}},
      {"--recompute-modules", {Kind::kText}},
      {"--cuda-graph-impl",
       {Kind::kText, {"none", "local", "transformer_engine"}}},
      {"--cuda-graph-scope", {Kind::kText}},
      {"--train-iters", {Kind::kWhole}},
      {"--no-masked-softmax-fusion", {}},
      {"--no-bias-gelu-fusion", {}},
      {"--no-bias-swiglu-fusion", {}},
      {"--no-bias-dropout-fusion", {}},
      {"--cross-entropy-loss-fusion", {}},
      {"--disable-bias-linear", {}},
      {"--add-qkv-bias", {}},
      {"--optimizer", {Kind::kText, {"adam", "sgd", "muon", "dist_muon"}}},
      {"--sequence-parallel", {}},
      {"--tp-comm-overlap", {}},
      {"--no-gradient-accumulation-fusion", {}},
      // _add_learning_rate_args
      {"--lr", {Kind::kReal}},
      // _add_mixed_precision_args
      {"--fp16", {}},
      {"--bf16", {}},
      {"--grad-reduce-in-bf16", {}},
      {"--accumulate-allreduce-grads-in-fp32", {}},
      // _add_distributed_args
      {"--tensor-model-parallel-size", {Kind::kWhole}},
      {"--pipeline-model-parallel-size", {Kind::kWhole}},
      {"--pipeline-model-parallel-layout", {Kind::kText}},
      {"--num-layers-per-virtual-pipeline-stage", {Kind::kWhole}},
      {"--num-virtual-stages-per-pipeline-rank", {Kind::kWhole}},
      {"--no-overlap-p2p-communication", {}},
      {"--overlap-grad-reduce", {}},
      {"--overlap-param-gather", {}},
      {"--no-scatter-gather-tensors-in-pipeline", {}},
      {"--ddp-bucket-size", {Kind::kWhole}},
      {"--use-distributed-optimizer", {}},
      {"--use-torch-fsdp2", {}},
      {"--context-parallel-size", {Kind::kWhole}},
      {"--cp-comm-type",
       {Kind::kText, {"p2p", "a2a", "all_gather", "a2a+p2p"}}},
      {"--hierarchical-context-parallel-sizes", {Kind::kText}},
      {"--use-tp-pp-dp-mapping", {}},
      // _add_tokenizer_args, _add_data_args
      {"--vocab-size", {Kind::kWhole}},
      {"--tokenizer-type",
       {Kind::kText,
        {"GPT2BPETokenizer", "SentencePieceTokenizer", "HuggingFaceTokenizer",
         "Llama2Tokenizer", "TikTokenizer", "NullTokenizer"}}},
      {"--mock-data", {}},
      {"--seq-length", {Kind::kWhole}},
      // _add_moe_args
      {"--expert-model-parallel-size", {Kind::kWhole}},
      {"--expert-tensor-parallel-size", {Kind::kWhole}},
      {"--num-distributed-optimizer-instances", {Kind::kWhole}},
      {"--num-experts", {Kind::kWhole}},
      {"--moe-layer-freq", {Kind::kText}},
      {"--moe-ffn-hidden-size", {Kind::kWhole}},
      {"--moe-shared-expert-intermediate-size", {Kind::kWhole}},
      {"--moe-grouped-gemm", {}},
      {"--moe-router-topk", {Kind::kWhole}},
      {"--moe-router-num-groups", {Kind::kWhole}},
      {"--moe-router-group-topk", {Kind::kWhole}},
      {"--moe-router-fusion", {}},
      {"--moe-token-dispatcher-type",
       {Kind::kText, {"allgather", "alltoall", "flex"}}},
      {"--moe-expert-capacity-factor", {Kind::kReal}},
      {"--moe-pad-expert-input-to-capacity", {}},
  };
  return rules;
}

bool IsNumber(const std::string& text, Kind kind) {
  char* end = nullptr;
  if (kind == Kind::kWhole) {
    std::strtoll(text.c_str(), &end, 10);
  } else {
    std::strtod(text.c_str(), &end);
  }
  return !text.empty() && *end == '\0';
}

class Checker {
 public:
  Checker(const MegatronArgs& args, int num_gpus)
      : args_(args), num_gpus_(num_gpus) {}

  std::vector<std::string> All() {
    for (const auto& [name, value] : args_) CheckOne(name, value);
    for (const char* required :
         {"--num-layers", "--hidden-size", "--num-attention-heads",
          "--max-position-embeddings", "--micro-batch-size", "--seq-length",
          "--train-iters", "--lr", "--tokenizer-type"}) {
      Require(Has(required), absl::StrCat(required, " is missing"));
    }
    if (!refusals_.empty()) return refusals_;
    CheckLayers();
    CheckBatch();
    CheckPrecision();
    CheckExperts();
    CheckSharding();
    return refusals_;
  }

 private:
  bool Has(const std::string& name) const { return args_.contains(name); }
  int Whole(const std::string& name, int otherwise) const {
    return Has(name) ? std::atoi(args_.at(name).c_str()) : otherwise;
  }
  void Require(bool holds, std::string rule) {
    if (!holds) refusals_.push_back(std::move(rule));
  }

  void CheckOne(const std::string& name, const std::string& value) {
    const auto found = Rules().find(name);
    if (found == Rules().end()) {
      refusals_.push_back("unrecognized arguments: " + name);
      return;
    }
    const Rule& rule = found->second;
    switch (rule.kind) {
      case Kind::kSwitch:
        Require(value.empty(), name + " takes no value");
        break;
      case Kind::kWhole:
      case Kind::kReal:
        Require(IsNumber(value, rule.kind), name + ": invalid " + value);
        break;
      case Kind::kText:
        Require(!value.empty() &&
                    (rule.choices.empty() || rule.choices.contains(value)),
                name + ": invalid choice " + value);
    }
  }

  void CheckLayers() {
    const int ranks = pipeline();
    const int layers = Whole("--num-layers", 0);
    const bool has_layout = Has("--pipeline-model-parallel-layout");
    const bool has_chunks = Has("--num-virtual-stages-per-pipeline-rank");
    Require(!has_layout || !has_chunks, "one of layout and virtual stages");
    int chunks = Whole("--num-virtual-stages-per-pipeline-rank", 1);
    if (has_layout) {
      CheckLayout(layers, &chunks);
    } else {
      Require(layers % (ranks * chunks) == 0,
              "layers are divisible by ranks x virtual stages");
    }
    if (chunks > 1) {
      Require(ranks > (Has("--no-overlap-p2p-communication") ? 2 : 1),
              "interleaving needs 2 ranks, 3 without overlap");
    } else {
      Require(!Has("--no-overlap-p2p-communication"), "is for interleaving");
    }
    Require(
        Whole("--hidden-size", 0) % Whole("--num-attention-heads", 1) == 0 ||
            Has("--kv-channels"),
        "heads divide the hidden size, or --kv-channels");
    Require(Whole("--num-attention-heads", 0) % tensor() == 0,
            "heads are divisible by tensor parallelism");
    Require(Whole("--num-query-groups", tensor()) % tensor() == 0 ||
                tensor() % Whole("--num-query-groups", 1) == 0,
            "query groups go with tensor parallelism");
    Require(Whole("--max-position-embeddings", 0) >= Whole("--seq-length", 0),
            "positions for the whole sequence");
    Require(tensor() > 1 || !Has("--sequence-parallel"),
            "sequence parallelism needs tensor parallelism");
    Require(!Has("--recompute-method") ||
                args_.at("--recompute-granularity") == "full",
            "a method is for full recomputation");
  }

  // Checks a layout as written by weir: "Et*3|t*2|...L", without parentheses.
  void CheckLayout(int layers, int* chunks) {
    const std::string& layout = args_.at("--pipeline-model-parallel-layout");
    const std::vector<std::string> stages = absl::StrSplit(layout, '|');
    int blocks = 0;
    for (const std::string& stage : stages) {
      const size_t block = stage.find('t');
      if (block == std::string::npos) continue;
      const size_t star = stage.find('*', block);
      blocks +=
          star == std::string::npos ? 1 : std::atoi(stage.c_str() + star + 1);
    }
    const int num_stages = static_cast<int>(stages.size());
    Require(blocks == layers, "the layout has all layers");
    Require(layout.front() == 'E' && layout.back() == 'L',
            "the layout has embedding and loss");
    Require(num_stages % pipeline() == 0, "ranks divide the layout's stages");
    *chunks = num_stages / pipeline();
  }

  void CheckBatch() {
    const int group = tensor() * pipeline();
    Require(num_gpus_ % group == 0, "the world is divisible by its model");
    if (num_gpus_ % group != 0) return;
    const int step = num_gpus_ / group * Whole("--micro-batch-size", 1);
    Require(Whole("--global-batch-size", 0) % step == 0,
            "the batch is divisible by replicas x microbatch");
  }

  void CheckPrecision() {
    Require(!Has("--fp16") || !Has("--bf16"), "fp16 or bf16");
    Require(!Has("--grad-reduce-in-bf16") ||
                (Has("--bf16") && !Has("--accumulate-allreduce-grads-in-fp32")),
            "gradients of bf16 in bf16 or fp32");
    Require(!Has("--moe-grouped-gemm") || Has("--bf16"),
            "grouped GEMMs take bf16");
    Require(args_.at("--attention-backend") != "flash" || Has("--fp16") ||
                Has("--bf16"),
            "FlashAttention takes 16 bits");
  }

  void CheckExperts() {
    const int experts = Whole("--num-experts", 0);
    const int parallel = Whole("--expert-model-parallel-size", 1);
    if (parallel > 1) {
      Require(experts > 0 && experts % parallel == 0,
              "experts are divisible by expert parallelism");
      Require(!Has("--fp16"), "no fp16 with expert parallelism");
    }
    const int expert_tensor = Whole("--expert-tensor-parallel-size", tensor());
    Require(num_gpus_ / pipeline() % (parallel * expert_tensor) == 0,
            "expert and expert tensor parallelism divide the GPUs of a stage");
    if (experts > 0 && tensor() > 1) {
      Require(Has("--sequence-parallel"),
              "experts with tensor parallelism need sequence parallelism");
    }
    Require(Has("--moe-expert-capacity-factor") ||
                !Has("--moe-pad-expert-input-to-capacity"),
            "padding needs a capacity");
    Require(Whole("--moe-router-topk", 1) <= std::max(experts, 1),
            "no more experts per token than there are");
  }

  void CheckSharding() {
    Require(
        !Has("--overlap-param-gather") || (Has("--use-distributed-optimizer") &&
                                           Has("--overlap-grad-reduce")),
        "overlapped gathers need a distributed optimizer and overlapped "
        "reductions");
    const int instances = Whole("--num-distributed-optimizer-instances", 1);
    Require(instances == 1 || Has("--use-distributed-optimizer"),
            "instances are of a distributed optimizer");
    Require(num_gpus_ / (tensor() * pipeline()) % instances == 0,
            "instances divide the replicas");
    Require(!Has("--tp-comm-overlap") || Has("--sequence-parallel"),
            "userbuffers need sequence parallelism");
    Require(!Has("--use-distributed-optimizer") ||
                args_.at("--optimizer") == "adam",
            "the distributed optimizer is Adam");
    if (!Has("--use-torch-fsdp2")) return;
    Require(pipeline() == 1 && Whole("--expert-model-parallel-size", 1) == 1 &&
                !Has("--use-distributed-optimizer") && !Has("--fp16") &&
                Has("--no-gradient-accumulation-fusion") &&
                Has("--untie-embeddings-and-output-weights"),
            "FSDP2 goes with none of these");
  }

  int tensor() const { return Whole("--tensor-model-parallel-size", 1); }
  int pipeline() const { return Whole("--pipeline-model-parallel-size", 1); }

  const MegatronArgs& args_;
  const int num_gpus_;
  std::vector<std::string> refusals_;
};

}  // namespace

MegatronArgs ParseMegatronArgs(const std::string& text) {
  MegatronArgs args;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.find(' ');
    const std::string name = line.substr(0, blank);
    std::string value =
        blank == std::string::npos ? "" : line.substr(blank + 1);
    std::erase(value, '"');
    EXPECT_EQ(name.substr(0, 2), "--") << line;
    EXPECT_TRUE(args.emplace(name, value).second) << line << " comes twice";
  }
  return args;
}

std::vector<std::string> MegatronRefusals(const MegatronArgs& args,
                                          int num_gpus) {
  return Checker(args, num_gpus).All();
}

}  // namespace weir::plan
