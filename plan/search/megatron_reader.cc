// SPDX-License-Identifier: Apache-2.0
#include "plan/search/megatron_reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "models/layout.h"
#include "plan/search/interleaving.h"
#include "plan/search/megatron_unsupported.h"

namespace weir::plan {
namespace {

// The arguments read so far. Fields besides the scenario start with the
// defaults of arguments.py or are only meaningful in combination.
struct Parsed {
  Scenario scenario;
  bool disable_bias_linear = false, add_qkv_bias = false;
  bool grouped_queries = false, fp32_gradients = false;
  bool gradients_in_bf16 = false, untied = false, learned_positions = true;
  bool experts = false, fp16 = false, bf16 = false;
  uint32_t query_groups = 1, max_positions = 0, shared_width = 0;
  uint32_t bucket_elements = 0;
  std::optional<uint32_t> layers_per_stage;
  uint32_t expert_tensor = 0;
  double attention_dropout = 0.1, hidden_dropout = 0.1;
  std::vector<bool> expert_blocks;

  Transformer& model() { return *scenario.mutable_transformer(); }
  Parallelism& parallelism() { return *scenario.mutable_parallelism(); }
  Batch& batch() { return *scenario.mutable_batch(); }
  Training& training() { return *scenario.mutable_training(); }
  Communication& communication() { return *scenario.mutable_communication(); }
};

// Applies a value. Returns what was expected instead, or empty on success.
using ApplyValue = std::function<std::string(const std::string&, Parsed*)>;

struct Argument {
  bool has_value = true;
  ApplyValue take;
  bool is_list = false;  // takes all words up to the next argument
};

Argument Switch(std::function<void(Parsed*)> set) {
  return {false, [set = std::move(set)](const std::string&, Parsed* parsed) {
            set(parsed);
            return std::string();
          }};
}

Argument Count(std::function<void(Parsed*, uint32_t)> set) {
  return {true,
          [set = std::move(set)](const std::string& text, Parsed* parsed) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count)) {
              return std::string("a whole number");
            }
            set(parsed, count);
            return std::string();
          }};
}

// A count of 1 or more.
Argument Size(std::function<void(Parsed*, uint32_t)> set) {
  return {true,
          [set = std::move(set)](const std::string& text, Parsed* parsed) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count) || count == 0) {
              return std::string("a whole number, 1 or more");
            }
            set(parsed, count);
            return std::string();
          }};
}

Argument Number(std::function<void(Parsed*, double)> set) {
  return {true,
          [set = std::move(set)](const std::string& text, Parsed* parsed) {
            double number = 0;
            if (!absl::SimpleAtod(text, &number))
              return std::string("a number");
            set(parsed, number);
            return std::string();
          }};
}

Argument Word(std::map<std::string, std::function<void(Parsed*)>> words) {
  return {true,
          [words = std::move(words)](const std::string& text, Parsed* parsed) {
            const auto found = words.find(text);
            if (found == words.end()) {
              return absl::StrJoin(words, " or ",
                                   [](std::string* out, const auto& word) {
                                     absl::StrAppend(out, word.first);
                                   });
            }
            found->second(parsed);
            return std::string();
          }};
}

// Returns an argument that accepts only the list `expected` and sets nothing.
Argument ListOf(const std::string& expected) {
  Argument argument = Word({{expected, [](Parsed*) {}}});
  argument.is_list = true;
  return argument;
}

std::string TakeWindow(const std::string& text, Parsed* parsed) {
  const std::string inside(
      absl::StripSuffix(absl::StripPrefix(text, "("), ")"));
  const std::vector<std::string> sides = absl::StrSplit(inside, ',');
  uint32_t left = 0;
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &left) ||
      sides[1] != "0") {
    return "tokens to the left and 0 to the right, as in 4095,0";
  }
  parsed->model().set_sliding_window(left + 1);
  return "";
}

// Takes a list of 0 and 1, or 1 for all blocks.
std::string TakeExpertBlocks(const std::string& text, Parsed* parsed) {
  if (text == "1") return "";
  for (const absl::string_view word : absl::StrSplit(
           absl::StripSuffix(absl::StripPrefix(text, "["), "]"), ',')) {
    if (word != "0" && word != "1") return "1 or a list such as [0,1,1]";
    parsed->expert_blocks.push_back(word == "1");
  }
  return "";
}

std::map<std::string, Argument> ModelArguments() {
  return {
      {"num-layers",
       Size([](Parsed* p, uint32_t n) { p->model().set_num_layers(n); })},
      {"hidden-size",
       Size([](Parsed* p, uint32_t n) { p->model().set_hidden_size(n); })},
      {"ffn-hidden-size", Size([](Parsed* p, uint32_t n) {
         p->model().set_feed_forward_size(n);
       })},
      {"num-attention-heads",
       Size([](Parsed* p, uint32_t n) { p->model().set_num_heads(n); })},
      {"kv-channels",
       Size([](Parsed* p, uint32_t n) { p->model().set_head_size(n); })},
      {"group-query-attention",
       Switch([](Parsed* p) { p->grouped_queries = true; })},
      {"num-query-groups",
       Size([](Parsed* p, uint32_t n) { p->query_groups = n; })},
      {"swiglu",
       Switch([](Parsed* p) { p->model().set_gated_feed_forward(true); })},
      {"normalization",
       Word(
           {{"RMSNorm", [](Parsed* p) { p->model().set_rms_norm(true); }},
            {"LayerNorm", [](Parsed* p) { p->model().set_rms_norm(false); }}})},
      {"disable-bias-linear",
       Switch([](Parsed* p) { p->disable_bias_linear = true; })},
      {"add-qkv-bias", Switch([](Parsed* p) { p->add_qkv_bias = true; })},
      {"qk-layernorm",
       Switch([](Parsed* p) { p->model().set_query_key_norm(true); })},
      {"position-embedding-type",
       Word({{"rope", [](Parsed* p) { p->learned_positions = false; }},
             {"learned_absolute",
              [](Parsed* p) { p->learned_positions = true; }}})},
      {"max-position-embeddings",
       Size([](Parsed* p, uint32_t n) { p->max_positions = n; })},
      {"untie-embeddings-and-output-weights",
       Switch([](Parsed* p) { p->untied = true; })},
      {"vocab-size", Count([](Parsed* p, uint32_t n) {
         p->model().set_vocabulary_size(n + 1);
       })},
      {"use-rotary-position-embeddings",
       Switch([](Parsed* p) { p->learned_positions = false; })},
      {"window-size", {true, TakeWindow}},
      {"num-experts", Count([](Parsed* p, uint32_t n) {
         p->model().set_num_experts(n);
         p->experts = n > 0;
       })},
      {"moe-router-topk", Size([](Parsed* p, uint32_t n) {
         p->model().set_experts_per_token(n);
       })},
      {"moe-ffn-hidden-size", Size([](Parsed* p, uint32_t n) {
         p->model().set_expert_feed_forward_size(n);
       })},
      {"moe-shared-expert-intermediate-size",
       Count([](Parsed* p, uint32_t n) { p->shared_width = n; })},
      {"moe-expert-capacity-factor",
       Number([](Parsed* p, double n) { p->model().set_capacity_factor(n); })},
      {"moe-layer-freq", {true, TakeExpertBlocks}},
      {"moe-token-dispatcher-type", Word({{"alltoall", [](Parsed*) {}}})},
  };
}

std::map<std::string, Argument> RunArguments() {
  return {
      {"tensor-model-parallel-size",
       Size([](Parsed* p, uint32_t n) { p->parallelism().set_tensor(n); })},
      {"pipeline-model-parallel-size",
       Size([](Parsed* p, uint32_t n) { p->parallelism().set_pipeline(n); })},
      {"expert-model-parallel-size",
       Size([](Parsed* p, uint32_t n) { p->parallelism().set_expert(n); })},
      {"num-virtual-stages-per-pipeline-rank",
       Size([](Parsed* p, uint32_t n) { p->parallelism().set_chunks(n); })},
      {"pipeline-model-parallel-layout",
       {true,
        [](const std::string& text, Parsed* p) {
          p->parallelism().set_layout(text);
          return std::string();
        }}},
      {"num-layers-per-virtual-pipeline-stage",
       Size([](Parsed* p, uint32_t n) { p->layers_per_stage = n; })},
      {"context-parallel-size", Word({{"1", [](Parsed*) {}}})},
      {"expert-tensor-parallel-size",
       Size([](Parsed* p, uint32_t n) { p->expert_tensor = n; })},
      {"sequence-parallel",
       Switch([](Parsed* p) { p->parallelism().set_sequence_parallel(true); })},
      {"use-tp-pp-dp-mapping",
       Switch([](Parsed* p) { p->parallelism().set_order("tp-pp-dp"); })},
      {"no-overlap-p2p-communication",
       Switch([](Parsed* p) { p->communication().set_transfers(BLOCKING); })},
      {"micro-batch-size",
       Size([](Parsed* p, uint32_t n) { p->batch().set_microbatch_size(n); })},
      {"global-batch-size", Size([](Parsed* p, uint32_t n) {
         p->batch().set_global_batch_size(n);
       })},
      {"seq-length",
       Size([](Parsed* p, uint32_t n) { p->batch().set_sequence_length(n); })},
      {"fp16", Switch([](Parsed* p) { p->fp16 = true; })},
      {"bf16", Switch([](Parsed* p) { p->bf16 = true; })},
      {"accumulate-allreduce-grads-in-fp32",
       Switch([](Parsed* p) { p->fp32_gradients = true; })},
      {"grad-reduce-in-bf16",
       Switch([](Parsed* p) { p->gradients_in_bf16 = true; })},
      {"attention-backend",
       Word({{"flash",
              [](Parsed* p) { p->training().set_flash_attention(true); }},
             {"fused",
              [](Parsed* p) { p->training().set_flash_attention(true); }},
             {"unfused",
              [](Parsed* p) { p->training().set_flash_attention(false); }}})},
      {"use-flash-attn",
       Switch([](Parsed* p) { p->training().set_flash_attention(true); })},
      {"recompute-granularity",
       Word({{"full",
              [](Parsed* p) { p->training().set_recompute(RECOMPUTE_FULL); }},
             {"selective",
              [](Parsed* p) {
                p->training().set_recompute(RECOMPUTE_SELECTIVE);
              }}})},
      {"recompute-activations", Switch([](Parsed* p) {
         p->training().set_recompute(RECOMPUTE_SELECTIVE);
       })},
      // Other ways of recomputation are not simulated.
      {"recompute-method", Word({{"uniform", [](Parsed*) {}}})},
      {"recompute-num-layers", Word({{"1", [](Parsed*) {}}})},
      {"recompute-modules", ListOf("core_attn")},
      {"cuda-graph-impl", Word({{"none", [](Parsed*) {}}})},
      {"attention-dropout",
       Number([](Parsed* p, double n) { p->attention_dropout = n; })},
      {"hidden-dropout",
       Number([](Parsed* p, double n) { p->hidden_dropout = n; })},
      {"optimizer",
       Word({{"adam", [](Parsed* p) { p->training().set_optimizer(ADAM); }},
             {"sgd",
              [](Parsed* p) { p->training().set_optimizer(SGD_MOMENTUM); }}})},
      {"use-distributed-optimizer", Switch([](Parsed* p) {
         p->training().set_distributed_optimizer(true);
       })},
      {"use-torch-fsdp2",
       Switch([](Parsed* p) { p->training().set_fully_sharded(true); })},
      {"overlap-grad-reduce", Switch([](Parsed* p) {
         p->communication().set_gradient_reduction(REDUCTION_OVERLAPPED);
       })},
      {"ddp-bucket-size",
       Size([](Parsed* p, uint32_t n) { p->bucket_elements = n; })},
  };
}

const std::map<std::string, Argument>& Known() {
  static const auto& known = *new std::map<std::string, Argument>([] {
    std::map<std::string, Argument> all = ModelArguments();
    all.merge(RunArguments());
    return all;
  }());
  return known;
}

// Returns the default feed-forward width of arguments.py: 4 x the hidden size,
// or with gates two thirds of that, rounded down to a multiple of 64.
uint32_t DefaultWidth(const Transformer& model) {
  const uint64_t width = uint64_t{4} * model.hidden_size();
  return static_cast<uint32_t>(
      model.gated_feed_forward() ? width * 2 / 3 / 64 * 64 : width);
}

void FinishExperts(Parsed* parsed, Problems* problems);

// Sets model fields that depend on several arguments.
void FinishModel(Parsed* parsed, Problems* problems) {
  Transformer& model = parsed->model();
  if (model.feed_forward_size() == 0) {
    model.set_feed_forward_size(DefaultWidth(model));
  }
  model.set_causal(true);
  model.set_tied_embeddings(!parsed->untied);
  model.set_attention_bias(!parsed->disable_bias_linear ||
                           parsed->add_qkv_bias);
  model.set_attention_output_bias(!parsed->disable_bias_linear);
  model.set_feed_forward_bias(!parsed->disable_bias_linear);
  if (parsed->grouped_queries) model.set_num_kv_heads(parsed->query_groups);
  if (parsed->learned_positions) {
    model.set_num_positions(parsed->max_positions);
  } else {
    model.set_default_sequence_length(parsed->max_positions);
  }
  if (parsed->experts) FinishExperts(parsed, problems);
}

void FinishExperts(Parsed* parsed, Problems* problems) {
  Transformer& model = parsed->model();
  const uint32_t tensor = std::max(parsed->parallelism().tensor(), 1u);
  if (parsed->expert_tensor > 0 && parsed->expert_tensor != tensor) {
    problems->Add(
        "--expert-tensor-parallel-size",
        absl::StrCat("is ", parsed->expert_tensor,
                     ", expected --tensor-model-parallel-size, ", tensor));
  }
  if (model.experts_per_token() == 0) model.set_experts_per_token(2);
  const uint32_t width = model.expert_feed_forward_size() > 0
                             ? model.expert_feed_forward_size()
                             : model.feed_forward_size();
  if (parsed->shared_width == 0) {
    model.set_num_shared_experts(0);
  } else if (width > 0 && parsed->shared_width % width == 0) {
    model.set_num_shared_experts(parsed->shared_width / width);
  } else {
    problems->Add("--moe-shared-expert-intermediate-size",
                  absl::StrCat("is ", parsed->shared_width,
                               ", expected a multiple of "
                               "--moe-ffn-hidden-size, which is ",
                               width));
  }
  const auto& blocks = parsed->expert_blocks;
  const auto first = std::find(blocks.begin(), blocks.end(), true);
  model.set_num_dense_blocks(static_cast<uint32_t>(first - blocks.begin()));
  if (first == blocks.end()) return;
  const auto second = std::find(first + 1, blocks.end(), true);
  model.set_expert_block_interval(
      second == blocks.end() ? 1 : static_cast<uint32_t>(second - first));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const auto position = static_cast<int64_t>(b) - model.num_dense_blocks();
    const bool expected =
        position >= 0 && position % model.expert_block_interval() == 0;
    if (blocks[b] == expected) continue;
    problems->Add("--moe-layer-freq",
                  "is irregular, expected blocks with experts at a fixed "
                  "interval from the first one on");
    return;
  }
}

// Sets the chunks and checks that Megatron-LM accepts them.
void FinishStages(Parsed* parsed, Problems* problems) {
  Parallelism& parallelism = parsed->parallelism();
  const uint32_t ranks = std::max(parallelism.pipeline(), 1u);
  const bool has_layout = !parallelism.layout().empty();
  uint32_t chunks = parallelism.chunks();
  std::vector<std::string> given;
  if (has_layout) given.emplace_back("--pipeline-model-parallel-layout");
  if (chunks > 0) given.emplace_back("--num-virtual-stages-per-pipeline-rank");
  if (parsed->layers_per_stage.has_value()) {
    given.emplace_back("--num-layers-per-virtual-pipeline-stage");
  }
  if (given.size() > 1) {
    problems->Add(given[0], absl::StrCat("cannot be combined with ", given[1]));
    return;
  }
  if (parsed->layers_per_stage.has_value()) {
    const uint32_t layers = parsed->model().num_layers();
    const uint32_t each = *parsed->layers_per_stage;
    if (layers % ranks != 0 || layers / ranks % each != 0) {
      problems->Add(
          "--num-layers-per-virtual-pipeline-stage",
          absl::StrCat("is ", each, ", expected a divisor of the layers of a ",
                       "pipeline rank: --num-layers is ", layers,
                       ", --pipeline-model-parallel-size is ", ranks));
      return;
    }
    chunks = layers / ranks / each;
    parallelism.set_chunks(chunks);
  }
  const auto layout = models::ParseLayout("", parallelism.layout());
  if (has_layout && layout.ok()) {
    if (layout->size() % ranks != 0) {
      problems->Add("--pipeline-model-parallel-layout",
                    absl::StrCat("has ", layout->size(),
                                 " stages, expected a multiple of "
                                 "--pipeline-model-parallel-size, which is ",
                                 ranks));
      return;
    }
    chunks = static_cast<uint32_t>(layout->size()) / ranks;
  }
  const bool interleaved = chunks > 1;
  const int least = MegatronMinRanksToInterleave(parsed->communication());
  if (interleaved && ranks < static_cast<uint32_t>(least)) {
    problems->Add(
        "--pipeline-model-parallel-size",
        absl::StrCat("is ", ranks, ", expected at least ", least, " with ",
                     chunks, " virtual stages per rank",
                     least > 2 ? " and --no-overlap-p2p-communication" : ""));
  }
  parsed->scenario.set_schedule(interleaved ? "interleaved-1f1b" : "1f1b");
}

void FinishRun(Parsed* parsed, Problems* problems) {
  Training& training = parsed->training();
  if (parsed->fp16 && parsed->bf16) {
    problems->Add("--fp16", "cannot be combined with --bf16");
  }
  training.set_precision(parsed->fp16   ? MIXED_FP16
                         : parsed->bf16 ? MIXED_BF16
                                        : FP32);
  const bool wide =
      training.precision() == FP32 || parsed->fp32_gradients ||
      (training.precision() == MIXED_BF16 && !parsed->gradients_in_bf16);
  training.set_fp32_gradients(wide);
  training.set_dropout(parsed->attention_dropout > 0 ||
                       parsed->hidden_dropout > 0);
  if (parsed->bucket_elements > 0) {
    parsed->communication().set_bucket_bytes(parsed->bucket_elements *
                                             (wide ? 4.0 : 2.0));
  }
  FinishStages(parsed, problems);
}

std::vector<std::string> WordsOf(absl::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    for (absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" \t\r\\"), absl::SkipEmpty())) {
      while (
          absl::ConsumePrefix(&word, "\"") || absl::ConsumePrefix(&word, "'") ||
          absl::ConsumeSuffix(&word, "\"") || absl::ConsumeSuffix(&word, "'")) {
      }
      if (!word.empty()) words.emplace_back(word);
    }
  }
  return words;
}

}  // namespace

absl::StatusOr<MegatronRun> ReadMegatronArguments(const std::string& label,
                                                  absl::string_view text) {
  Problems problems(label);
  Parsed parsed;
  MegatronRun run;
  std::set<std::string> ignored;
  const std::vector<std::string> words = WordsOf(text);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    absl::string_view name = parts.first;
    const bool is_argument = absl::ConsumePrefix(&name, "--");
    const auto found = Known().find(std::string(name));
    if (!is_argument || found == Known().end()) {
      if (is_argument && IsUnsupportedMegatronArgument(name)) {
        problems.Add(parts.first,
                     "is not supported, because its effect is not simulated: "
                     "remove it to predict the run without it");
      } else if (is_argument && ignored.insert(parts.first).second) {
        run.ignored.push_back(parts.first);
      }
      continue;  // ignored, or the value of an ignored argument
    }
    std::string value = parts.second;
    const bool separate = words[i].size() == parts.first.size();
    if (found->second.has_value && separate) {
      if (i + 1 == words.size() || absl::StartsWith(words[i + 1], "--")) {
        problems.Add(parts.first, "has no value");
        continue;
      }
      value = words[++i];
      while (found->second.is_list && i + 1 < words.size() &&
             !absl::StartsWith(words[i + 1], "--")) {
        absl::StrAppend(&value, " ", words[++i]);
      }
    }
    const std::string expected = found->second.take(value, &parsed);
    if (!expected.empty()) {
      problems.Add(parts.first,
                   absl::StrCat("is ", value, ", expected ", expected));
    }
  }
  FinishModel(&parsed, &problems);
  FinishRun(&parsed, &problems);
  if (!problems.empty()) return problems.ToStatus();
  run.scenario = std::move(parsed.scenario);
  return run;
}

}  // namespace weir::plan
