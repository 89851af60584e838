// SPDX-License-Identifier: Apache-2.0
// Words of Megatron-LM's megatron/training/arguments.py (main, August 2026).
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/emit.h"
#include "plan/space.h"
#include "schedules/registry.h"

namespace weir {
namespace {

class Arguments {
 public:
  explicit Arguments(const ResolvedScenario& resolved)
      : scenario_(resolved.scenario), model_(resolved.model) {}

  std::string Text() {
    AddSchedule();
    AddParallelism();
    AddModel();
    AddTraining();
    return absl::StrCat(absl::StrJoin(lines_, "\n"), "\n");
  }

 private:
  template <typename Value>
  void Add(absl::string_view name, const Value& value) {
    lines_.push_back(absl::StrCat("--", name, " ", value));
  }
  void Switch(bool on, absl::string_view name) {
    if (on) lines_.push_back(absl::StrCat("--", name));
  }
  void Say(absl::string_view text) {
    lines_.push_back(absl::StrCat("# ", text));
  }

  void AddSchedule() {
    const auto kind = FindScheduleKind(scenario_.schedule());
    if (!kind.ok()) return;
    const absl::string_view name = (*kind)->name;
    const bool one_rank = scenario_.parallelism().pipeline() == 1;
    if (one_rank || name == "pipedream-flush" || name == "interleaved-1f1b") {
      return;
    }
    Say(absl::StrCat(
        "Megatron-LM does not have the schedule ", scenario_.schedule(),
        ": with these arguments it runs ",
        scenario_.parallelism().chunks() > 1 ? "interleaved 1F1B" : "1F1B"));
  }

  void AddParallelism() {
    const Parallelism& parallelism = scenario_.parallelism();
    Add("tensor-model-parallel-size", parallelism.tensor());
    Add("pipeline-model-parallel-size", parallelism.pipeline());
    Switch(parallelism.sequence_parallel() && parallelism.tensor() > 1,
           "sequence-parallel");
    if (parallelism.expert() > 1) {
      Add("expert-model-parallel-size", parallelism.expert());
    }
    Switch(parallelism.order() == "tp-pp-dp", "use-tp-pp-dp-mapping");
    AddLayers();
  }

  void AddLayers() {
    const Parallelism& parallelism = scenario_.parallelism();
    std::string layout = parallelism.layout();
    if (layout.empty() && !parallelism.blocks_per_stage().empty() &&
        model_.has_transformer()) {
      layout = LayoutText({parallelism.blocks_per_stage().begin(),
                           parallelism.blocks_per_stage().end()});
    }
    if (!layout.empty()) {
      // Its stages, divided by the ranks, say how many each rank has.
      Add("pipeline-model-parallel-layout", absl::StrCat("\"", layout, "\""));
    } else if (parallelism.chunks() > 1) {
      Add("num-virtual-stages-per-pipeline-rank", parallelism.chunks());
    }
  }

  void AddModel() {
    Add("micro-batch-size", scenario_.batch().microbatch_size());
    Add("global-batch-size", scenario_.batch().global_batch_size());
    if (!model_.has_transformer()) {
      Say("the model was measured: its layers are no arguments");
      return;
    }
    const Transformer& transformer = model_.transformer();
    Add("seq-length", scenario_.batch().sequence_length());
    if (transformer.num_positions() > 0) {
      Add("max-position-embeddings", transformer.num_positions());
    }
    Add("num-layers", transformer.num_layers());
    Add("hidden-size", transformer.hidden_size());
    Add("ffn-hidden-size", transformer.feed_forward_size());
    Add("num-attention-heads", transformer.num_heads());
    if (transformer.num_kv_heads() > 0 &&
        transformer.num_kv_heads() != transformer.num_heads()) {
      Switch(true, "group-query-attention");
      Add("num-query-groups", transformer.num_kv_heads());
    }
    if (transformer.num_experts() > 0) {
      Add("num-experts", transformer.num_experts());
    }
    Switch(!transformer.tied_embeddings(),
           "untie-embeddings-and-output-weights");
  }

  void AddTraining() {
    const Training& training = scenario_.training();
    if (training.recompute() == RECOMPUTE_SELECTIVE) {
      Add("recompute-granularity", "selective");
    } else if (training.recompute() == RECOMPUTE_FULL) {
      Add("recompute-granularity", "full");
      Add("recompute-method", "uniform");
      Add("recompute-num-layers", 1);
    }
    Switch(training.precision() == MIXED_FP16, "fp16");
    Switch(training.precision() == MIXED_BF16, "bf16");
    Switch(training.fp32_gradients(), "accumulate-allreduce-grads-in-fp32");
    Switch(training.distributed_optimizer(), "use-distributed-optimizer");
    Switch(training.fully_sharded(), "use-torch-fsdp2");
    Switch(
        scenario_.communication().gradient_reduction() == REDUCTION_OVERLAPPED,
        "overlap-grad-reduce");
    Add("optimizer", training.optimizer() == SGD_MOMENTUM ? "sgd" : "adam");
    if (training.flash_attention()) Add("attention-backend", "flash");
  }

  const Scenario& scenario_;
  const Model& model_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string MegatronArguments(const ResolvedScenario& scenario) {
  return Arguments(scenario).Text();
}

}  // namespace weir
