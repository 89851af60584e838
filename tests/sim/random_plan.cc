// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/random_plan.h"

#include <algorithm>
#include <utility>

#include "scenarios/cluster/cluster.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::sim {
namespace {

bool TakesChunks(const std::string& schedule) {
  static constexpr const char* kNames[] = {
      "interleaved-1f1b", "interleaved-zb", "breadth-first", "hanayo", "zb-v",
      "v-half",           "v-min",          "dualpipe-v",    "bitpipe"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return schedule == name; });
}

void DropLatencies(Cluster* cluster) {
  cluster->mutable_fabric()->set_latency_seconds(0);
  cluster->mutable_fabric()->set_hop_latency_seconds(0);
  for (NodeGroup& group : *cluster->mutable_groups()) {
    Node* node = group.mutable_node();
    if (node->has_nv_switch()) {
      node->mutable_nv_switch()->set_latency_seconds(0);
    }
    if (node->has_nv_link_mesh()) {
      node->mutable_nv_link_mesh()->set_latency_seconds(0);
    }
    if (node->has_pcie()) node->mutable_pcie()->set_latency_seconds(0);
  }
}

}  // namespace

Scenario RandomPlan::DrawScenario() {
  Scenario scenario;
  DrawShape(&scenario);
  if (OneIn(6)) {
    DrawGivenCosts(&scenario);
  } else {
    DrawModel(&scenario);
    DrawTraining(&scenario);
    if (OneIn(4)) DrawContext(&scenario);
  }
  Communication* communication = scenario.mutable_communication();
  communication->set_transfers(Of<TransferMode>({OVERLAPPED, BLOCKING}));
  communication->set_gradient_reduction(
      Of<ReductionMode>({REDUCTION_OVERLAPPED, REDUCTION_BLOCKING}));
  communication->set_bucket_bytes(Of<double>({0, 1e6, 1e7}));
  if (OneIn(4)) communication->set_compressed_bits_per_element(4);
  const auto flushes = schedules::ScheduleFlushes(scenario.schedule());
  if (OneIn(2) && !*flushes) scenario.set_num_batches(Int(1, 4));
  DrawRecipe(&scenario);
  if (scenario.training().flash_attention() && OneIn(4)) {
    SequenceLengths::LogNormal* lengths = scenario.mutable_batch()
                                              ->mutable_packed_sequences()
                                              ->mutable_log_normal();
    lengths->set_mean(Int(30, 120));
    lengths->set_deviation(Int(10, 60));
  }
  return scenario;
}

void RandomPlan::DrawRecipe(Scenario* scenario) {
  const bool has_fp8 =
      scenario->cluster() == "dgx-h100" || scenario->cluster() == "dgx-h200";
  if (!has_fp8 || scenario->has_costs() ||
      scenario->training().precision() == FP32 || OneIn(2)) {
    return;
  }
  Training* training = scenario->mutable_training();
  training->set_recipe(Of<std::string>(
      {"fp8-delayed", "fp8-current", "fp8-blockwise", "deepseek-v3"}));
  if (OneIn(2)) training->set_quantized_parameters(OneIn(2));
  const int first = OneIn(3) ? Int(1, 3) : 0;
  const int last = OneIn(3) ? 1 : 0;
  const auto blocks = static_cast<int>(scenario->transformer().num_layers());
  if (first + last >= blocks) return;
  if (first > 0) training->set_first_blocks_in_16_bits(first);
  if (last > 0) training->set_last_blocks_in_16_bits(last);
}

void RandomPlan::DrawShape(Scenario* scenario) {
  const auto& kinds = schedules::AllScheduleKinds();
  scenario->set_schedule(std::string(
      OneIn(3) ? "1f1b" : kinds[Int(0, std::ssize(kinds) - 1)].name));
  Parallelism* parallelism = scenario->mutable_parallelism();
  parallelism->set_pipeline(Of<int>({1, 2, 2, 3, 4, 4, 6, kMostRanks}));
  do {
    parallelism->set_tensor(Of<int>({1, 1, 2, 3, 4, 6, 8, 16}));
    parallelism->set_data(Of<int>({1, 2, 2, 3, 4, 6, 8, 16}));
  } while (parallelism->tensor() * parallelism->data() *
               parallelism->pipeline() >
           limits_.num_gpus);
  parallelism->set_chunks(TakesChunks(scenario->schedule()) ? 2 : 1);
  if (scenario->schedule() == "interleaved-1f1b" && OneIn(3)) {
    parallelism->set_chunks(3);
  }
  parallelism->set_order(Of<std::string>({"tp-dp-pp", "tp-pp-dp"}));
}

int RandomPlan::DrawMicrobatches(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const int num_gpus =
      parallelism.tensor() * parallelism.data() * parallelism.pipeline();
  const int p = parallelism.pipeline();
  const int m = Of<int>({1, 2, p, 2 * p, 6, 8, 12, 24, 10 * p, 96, 240, 1000});
  const int most = limits_.num_actions / (2 * num_gpus * parallelism.chunks());
  return m <= most ? m : Of<int>({p, 2 * p, 3 * p, 4 * p + 1});
}

void RandomPlan::DrawGivenCosts(Scenario* scenario) {
  Parallelism* parallelism = scenario->mutable_parallelism();
  parallelism->set_tensor(1);
  parallelism->set_data(1);
  scenario->set_num_microbatches(DrawMicrobatches(*scenario));
  GivenCosts* costs = scenario->mutable_costs();
  costs->set_hop_seconds(Of<double>({0, 0.1, Real(0, 1)}));
  const int num_stages =
      OneIn(3)
          ? 1
          : static_cast<int>(parallelism->pipeline() * parallelism->chunks());
  const bool whole = OneIn(3), nearly = OneIn(3);
  for (int s = 0; s < num_stages; ++s) {
    const auto draw = [&](double low, double high) -> double {
      if (whole) return Int(1, 3);
      return nearly ? 0.1 * Int(1, 3) * (1 + 1e-9 * Int(0, 1))
                    : Real(low, high);
    };
    GivenCosts::Stage* stage = costs->add_stages();
    stage->set_forward_seconds(draw(0.5, 1.5));
    stage->set_backward_input_seconds(draw(0.5, 1.5));
    stage->set_backward_weight_seconds(draw(0.3, 1));
    if (OneIn(3)) stage->set_overlapped_seconds(draw(1, 3));
    if (OneIn(2)) stage->set_offload_seconds(draw(0.1, 2));
    stage->set_prediction_seconds(OneIn(2) ? draw(0, 0.3) : 0);
    stage->set_codec_seconds(OneIn(2) ? draw(0, 0.3) : 0);
    stage->set_activation_bytes(Int(1, 100));
    if (OneIn(2)) stage->set_weight_gradient_bytes(Int(1, 100));
  }
}

void RandomPlan::DrawModel(Scenario* scenario) {
  Parallelism* parallelism = scenario->mutable_parallelism();
  parallelism->set_sequence_parallel(parallelism->tensor() > 1 && OneIn(3));
  const int expert = Of<int>({2, 2, 4});
  const bool has_experts = OneIn(6) && parallelism->data() % expert == 0;
  if (has_experts) {
    parallelism->set_expert(expert);
    parallelism->set_sequence_parallel(parallelism->tensor() > 1);
  }
  Batch* batch = scenario->mutable_batch();
  batch->set_microbatch_size(Int(1, 2));
  batch->set_global_batch_size(DrawMicrobatches(*scenario) *
                               batch->microbatch_size() * parallelism->data());
  batch->set_sequence_length(240);
  scenario->set_cluster(
      Of<std::string>({"p3-16xlarge", "nc24rs-v3", "dgx-h100", "selene",
                       "dgx-1-v100", "dgx-a100", "dgx-h200"}));
  scenario->set_num_nodes(48);
  if (OneIn(3)) {
    scenario->set_runtime(Of<std::string>(
        {"none", "pytorch", "weir", "megatron-lm-2021", "megatron-deepspeed"}));
  }
  Transformer* model = scenario->mutable_transformer();
  model->set_num_layers(parallelism->pipeline() * parallelism->chunks() *
                        Int(1, 2));
  model->set_hidden_size(768 * Of<int>({1, 2, 4}));
  model->set_num_heads(48);
  model->set_vocabulary_size(8192);
  model->set_num_positions(256);
  model->set_causal(true);
  model->set_tied_embeddings(OneIn(2));
  if (has_experts) {
    model->set_num_experts(4);
    model->set_experts_per_token(2);
    if (OneIn(2)) model->set_num_dense_blocks(1);
  }
  DrawBlocks(scenario);
}

// Draws uneven stages, possibly with empty first and last stages.
void RandomPlan::DrawBlocks(Scenario* scenario) {
  Parallelism* parallelism = scenario->mutable_parallelism();
  const int num_stages =
      static_cast<int>(parallelism->pipeline() * parallelism->chunks());
  if (!OneIn(3) || num_stages < 2) return;
  int sum = 0;
  for (int s = 0; s < num_stages; ++s) {
    const bool is_end = s == 0 || s + 1 == num_stages;
    const int blocks = Int(is_end && num_stages > 2 ? 0 : 1, 3);
    parallelism->add_blocks_per_stage(blocks);
    sum += blocks;
  }
  scenario->mutable_transformer()->set_num_layers(sum);
}

void RandomPlan::DrawTraining(Scenario* scenario) {
  Training* training = scenario->mutable_training();
  training->set_precision(Of<Precision>({FP32, MIXED_FP16, MIXED_BF16}));
  training->set_optimizer(Of<Optimizer>({ADAM, ADAM, SGD_MOMENTUM}));
  training->set_fp32_gradients(OneIn(3));
  training->set_flash_attention(OneIn(3));
  training->set_recompute(
      Of<RecomputeMode>({RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL}));
  if (OneIn(5)) {
    training->set_distributed_optimizer(true);
  } else if (OneIn(5) && scenario->parallelism().expert() < 2) {
    training->set_fully_sharded(true);
  }
  if (OneIn(4) && !training->fully_sharded()) {
    training->set_post_validation(true);
    if (OneIn(2)) training->set_rollback_fraction(0.125);
  }
  if (training->recompute() == RECOMPUTE_FULL && OneIn(2)) {
    training->set_recompute_method(Of<RecomputeMethod>(
        {RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK, RECOMPUTE_EVERY}));
    training->set_recompute_num_layers(Int(1, 3));
  }
}

// Turns replicas into ranks that share sequences.
void RandomPlan::DrawContext(Scenario* scenario) {
  Parallelism* parallelism = scenario->mutable_parallelism();
  const int size = Of<int>({2, 2, 3, 4, 4, 6, 8});
  if (parallelism->data() % size != 0) return;
  parallelism->set_data(parallelism->data() / size);
  parallelism->set_context(size);
  parallelism->set_context_method(Of<ContextMethod>(
      {CONTEXT_P2P, CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A}));
  if (size % 2 == 0 && OneIn(4)) {
    parallelism->set_context_method(CONTEXT_A2A_P2P);
    parallelism->add_hierarchical_context(2);
    parallelism->add_hierarchical_context(size / 2);
  }
  Batch* batch = scenario->mutable_batch();
  batch->set_global_batch_size(batch->global_batch_size() / size);
  scenario->mutable_training()->set_flash_attention(true);
  if (240 % (parallelism->tensor() * size) != 0) {
    parallelism->set_sequence_parallel(false);
  }
}

void RandomPlan::Change(scenarios::ResolvedScenario* resolved) {
  if (resolved->given_costs) return;
  ChangeNodes(&resolved->cluster);
  ChangePlacement(&resolved->placement);
  ChangeDevice(resolved);
}

void RandomPlan::ChangeNodes(Cluster* cluster) {
  Fabric* fabric = cluster->mutable_fabric();
  if (OneIn(3)) {
    fabric->set_nodes_per_leaf(Int(1, 5));
    fabric->set_oversubscription(Of<double>({1, 1.5, 4}));
    fabric->set_hop_latency_seconds(1e-6);
  }
  if (OneIn(4)) fabric->set_rail_optimized(!fabric->rail_optimized());
  if (OneIn(4)) cluster->set_plain_links(true);
  if (OneIn(4)) ChangeAdapters(cluster->mutable_groups(0)->mutable_node());
  if (OneIn(6)) SlowOneNode(cluster);
  if (OneIn(6)) DropLatencies(cluster);
}

// Changes the adapters of all nodes: their GPUs, rates and rails, and the PCIe
// and NVLink switches.
void RandomPlan::ChangeAdapters(Node* node) {
  for (Nic& nic : *node->mutable_nics()) {
    if (OneIn(4)) nic.set_bytes_per_second(Of<double>({5e9, 2e10, 1e11}));
  }
  std::vector<int> gpus;
  for (const Nic& nic : node->nics()) {
    gpus.insert(gpus.end(), nic.gpus().begin(), nic.gpus().end());
  }
  if (OneIn(2)) {
    source_.Shuffle(&gpus);
    size_t next = 0;
    for (Nic& nic : *node->mutable_nics()) {
      for (uint32_t& gpu : *nic.mutable_gpus()) gpu = gpus[next++];
    }
  } else if (OneIn(2) && node->nics_size() > 1) {
    // Removes one adapter. Its GPUs use the first one.
    Nic* last = node->mutable_nics(node->nics_size() - 1);
    node->mutable_nics(0)->mutable_gpus()->MergeFrom(last->gpus());
    node->mutable_nics()->RemoveLast();
  }
  if (!node->has_pcie()) return;
  PcieTree* pcie = node->mutable_pcie();
  if (OneIn(3)) pcie->set_uplink_bytes_per_second(Of<double>({6e9, 3e10}));
  if (OneIn(3)) pcie->set_gpu_bytes_per_second(Of<double>({8e9, 4e10}));
  if (OneIn(4)) node->clear_nv_switch();
}

// Halves the rates of one node's adapters.
void RandomPlan::SlowOneNode(Cluster* cluster) {
  const NodeGroup whole = cluster->groups(0);
  const int before = Int(0, std::min<int>(whole.count() - 1, 8));
  cluster->clear_groups();
  const auto add = [&](int count) {
    NodeGroup group = whole;
    group.set_count(count);
    if (count > 0) *cluster->add_groups() = group;
  };
  add(before);
  add(1);
  for (Nic& nic :
       *cluster->mutable_groups()->rbegin()->mutable_node()->mutable_nics()) {
    nic.set_bytes_per_second(0.5 * nic.bytes_per_second());
  }
  add(static_cast<int>(whole.count()) - before - 1);
}

void RandomPlan::ChangeDevice(scenarios::ResolvedScenario* resolved) {
  DeviceProfile* device = &resolved->device;
  if (OneIn(6)) {
    device->mutable_collective_slowdown()->set_value(1.25);
    device->mutable_copy_slowdown()->set_value(1.1);
  }
  if (OneIn(6)) device->clear_collectives();
  if (OneIn(6)) {  // measured sends, by distance
    for (const auto distance : {LinkClass::SAME_SWITCH, LinkClass::SAME_LEAF,
                                LinkClass::ACROSS_SPINES}) {
      LinkClass* link = device->add_links();
      link->set_distance(distance);
      TransferPiece* piece = link->add_pieces();
      piece->set_latency_seconds(1e-6 * static_cast<int>(distance));
      piece->set_bytes_per_second(5e10 / static_cast<int>(distance));
    }
  }
  Runtime* runtime = &resolved->runtime;
  if (OneIn(6)) runtime->set_scatters_transfers(!runtime->scatters_transfers());
  if (OneIn(6)) {
    runtime->set_overlaps_tensor_collectives(
        !runtime->overlaps_tensor_collectives());
  }
  if (OneIn(6)) runtime->mutable_exchange_seconds()->set_value(3e-5);
  if (OneIn(6)) SlowOneGpu(resolved);
}

void RandomPlan::SlowOneGpu(scenarios::ResolvedScenario* resolved) {
  if (!resolved->other_devices.empty()) return;
  DeviceProfile slow = resolved->device;
  slow.mutable_kernel_seconds()->set_value(3e-5);
  slow.mutable_memory_bytes_per_second()->set_value(
      0.5 * slow.memory_bytes_per_second().value());
  resolved->other_devices = {slow};
  const std::vector<int>& gpus = resolved->placement.gpus;
  resolved->gpu_device.assign(*std::max_element(gpus.begin(), gpus.end()) + 1,
                              0);
  resolved->gpu_device[Of(gpus)] = 1;
}

void RandomPlan::ChangePlacement(scenarios::Placement* placement) {
  std::vector<int>& gpus = placement->gpus;
  const int row = placement->tensor;
  switch (Int(0, 23)) {
    case 0:
      source_.Shuffle(&gpus);
      break;
    case 1:
      std::reverse(gpus.begin(), gpus.end());
      break;
    case 2:  // almost symmetric
      std::swap(gpus[Int(0, std::ssize(gpus) - 1)],
                gpus[Int(0, std::ssize(gpus) - 1)]);
      break;
    case 3:  // rotates each tensor group
      for (auto at = gpus.begin(); at < gpus.end(); at += row) {
        std::rotate(at, at + Int(0, row - 1), at + row);
      }
      break;
    case 4: {  // shifted: no group starts with a node
      const int by = Int(1, 5);
      for (int& gpu : gpus) gpu += by;
      break;
    }
    case 5: {  // gaps
      const int stride = Int(2, 3);
      if (std::ssize(gpus) * stride > 128) break;
      for (int& gpu : gpus) gpu *= stride;
      break;
    }
    default:
      break;
  }
}

}  // namespace weir::sim
