// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/layout.h"
#include "models/recompute.h"
#include "plan/search/space.h"
#include "scenarios/recomputation.h"

namespace weir::plan {

int NumBlocks(const Model& model) {
  return model.has_transformer()
             ? static_cast<int>(model.transformer().num_layers())
             : model.measured().layers_size();
}

Scenario ScenarioOfShape(const Scenario& base, const Shape& shape,
                         const std::string& schedule) {
  Scenario scenario = base;
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(shape.tensor);
  parallelism.set_data(shape.data);
  parallelism.set_pipeline(shape.pipeline);
  parallelism.set_chunks(shape.chunks);
  parallelism.set_expert(shape.expert);
  parallelism.set_expert_tensor(shape.expert_tensor);
  parallelism.set_data_replicate(shape.data_replicate > 1 ? shape.data_replicate
                                                          : 0);
  if (shape.context > 1) {
    parallelism.set_context(shape.context);
  } else {
    parallelism.clear_context();
    parallelism.clear_context_method();
    parallelism.clear_hierarchical_context();
  }
  parallelism.set_order(shape.order);
  parallelism.set_sequence_parallel(shape.sequence_parallel);
  if (std::count(shape.blocks.begin(), shape.blocks.end(), 0) > 0) {
    parallelism.set_layout(models::LayoutText(shape.blocks, shape.mtp_modules,
                                              shape.cut == Cut::kMtpApart));
  } else {
    for (const int n : shape.blocks) parallelism.add_blocks_per_stage(n);
  }
  scenario.mutable_batch()->set_microbatch_size(shape.microbatch_size);
  Training& training = *scenario.mutable_training();
  parallelism.set_vocabulary_parallel(shape.vocabulary);
  scenarios::SetRecompute(shape.recompute, &training);
  training.set_cpu_offloading_num_layers(shape.offloaded_blocks);
  training.set_optimizer_offload_fraction(shape.optimizer_offload);
  training.set_fully_sharded(shape.sharding == Sharding::kFull);
  training.set_distributed_optimizer(shape.sharding == Sharding::kOptimizer);
  Communication& communication = *scenario.mutable_communication();
  communication.set_gradient_reduction(shape.reduction);
  communication.set_overlap_expert_exchange(shape.expert_overlap);
  if (shape.tensor_overlap == TensorOverlap::kOfRuntime) {
    communication.clear_tp_comm_overlap();
  } else {
    communication.set_tp_comm_overlap(shape.tensor_overlap ==
                                      TensorOverlap::kOn);
  }
  scenario.set_schedule(schedule);
  return scenario;
}

std::vector<int> GivenBlocks(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  if (parallelism.layout().empty()) {
    return {parallelism.blocks_per_stage().begin(),
            parallelism.blocks_per_stage().end()};
  }
  std::vector<int> blocks;
  const auto layout = models::ParseLayout("layout", parallelism.layout());
  if (!layout.ok()) return blocks;
  for (const std::string& stage : *layout) {
    blocks.push_back(
        static_cast<int>(std::count(stage.begin(), stage.end(), 't')));
  }
  return blocks;
}

std::string NameOf(Sharding sharding) {
  switch (sharding) {
    case Sharding::kFull:
      return "full";
    case Sharding::kOptimizer:
      return "optimizer";
    case Sharding::kNone:
      break;
  }
  return "none";
}

std::string NameOf(VocabularyParallel vocabulary) {
  switch (vocabulary) {
    case VOCABULARY_ONE_BARRIER:
      return "one-barrier";
    case VOCABULARY_TWO_BARRIERS:
      return "two-barriers";
    default:
      return "none";
  }
}

std::string DescribeShape(const Shape& shape) {
  std::string text =
      absl::StrFormat("tp=%d pp=%d dp=%d mbs=%d", shape.tensor, shape.pipeline,
                      shape.data, shape.microbatch_size);
  if (shape.context > 1) absl::StrAppend(&text, " cp=", shape.context);
  if (shape.expert > 1) absl::StrAppend(&text, " ep=", shape.expert);
  if (shape.expert_tensor > 0) {
    absl::StrAppend(&text, " etp=", shape.expert_tensor);
  }
  if (shape.data_replicate > 1) {
    absl::StrAppend(&text, " replicate=", shape.data_replicate);
  }
  if (shape.chunks > 1) absl::StrAppend(&text, " chunks=", shape.chunks);
  if (shape.recompute != RECOMPUTE_NONE) {
    absl::StrAppend(&text,
                    " recompute=", models::RecomputeText(shape.recompute));
  }
  if (shape.offloaded_blocks > 0) {
    absl::StrAppend(&text, " offload=", shape.offloaded_blocks);
  }
  if (shape.optimizer_offload > 0) {
    absl::StrAppend(&text, " optimizer-offload=", shape.optimizer_offload);
  }
  if (shape.vocabulary != VOCABULARY_PARALLEL_UNSPECIFIED) {
    absl::StrAppend(&text, " vocabulary=", NameOf(shape.vocabulary));
  }
  if (shape.expert_overlap) absl::StrAppend(&text, " ep-overlap");
  if (shape.tensor_overlap != TensorOverlap::kOfRuntime) {
    absl::StrAppend(&text, shape.tensor_overlap == TensorOverlap::kOn
                               ? " tp-overlap"
                               : " no-tp-overlap");
  }
  if (shape.sharding != Sharding::kNone) {
    absl::StrAppend(&text, " sharding=", NameOf(shape.sharding));
  }
  return text;
}

}  // namespace weir::plan
