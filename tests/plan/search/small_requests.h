// SPDX-License-Identifier: Apache-2.0
// Requests small enough to try every plan.
#ifndef WEIR_TESTS_PLAN_SEARCH_SMALL_REQUESTS_H_
#define WEIR_TESTS_PLAN_SEARCH_SMALL_REQUESTS_H_

#include <random>
#include <string>
#include <vector>

#include "plan/search/plan.pb.h"

namespace weir::plan {

// Returns a request for a GPT of a few blocks on a node of A100.
inline PlanRequest SmallRequest(int num_layers, int num_gpus, int batch) {
  PlanRequest request;
  Scenario& scenario = *request.mutable_scenario();
  Transformer& model = *scenario.mutable_transformer();
  model.set_num_layers(num_layers);
  model.set_hidden_size(512);
  model.set_num_heads(8);
  model.set_vocabulary_size(4096);
  model.set_causal(true);
  model.set_tied_embeddings(true);
  model.set_default_sequence_length(256);
  scenario.set_cluster("dgx-a100");
  scenario.set_num_nodes(1);
  scenario.mutable_batch()->set_global_batch_size(batch);
  request.mutable_space()->add_gpus(num_gpus);
  request.set_memory_margin(0);  // limits are exact
  return request;
}

template <typename T>
T OneOf(const std::vector<T>& values, std::mt19937& random) {
  return values[random() % values.size()];
}

// Returns a randomly restricted request; with `tiny`, it has a few tens of
// plans.
inline PlanRequest RandomRequest(uint32_t seed, bool tiny = false) {
  std::mt19937 random(seed);
  PlanRequest request = SmallRequest(OneOf<int>({2, 3, 4, 6}, random),
                                     OneOf<int>({2, 3, 4}, random),
                                     tiny ? 4 : OneOf<int>({4, 6, 8}, random));
  // Validates steps of split backwards after they were taken.
  if (seed % 3 == 1) request.mutable_scenario()->set_runtime("zero-bubble");
  PlanSpace& space = *request.mutable_space();
  const std::vector<std::string> schedules = {
      "1f1b",      "gpipe",         "interleaved-1f1b", "zb-h1",
      "zb-1p",     "zb-v",          "chimera",          "hanayo",
      "2bw",       "breadth-first", "optpipe",          "1f1b-so",
      "dualpipev", "v-min",         "dapple-pa",        "dapple",
      "pipedream", "zb-2p",         "2bp-gpipe"};
  for (int i = 0; i < (tiny ? 2 : 3); ++i) {
    space.add_schedules(OneOf(schedules, random));
  }
  space.add_tensor(1);
  if (random() % 3 == 0) space.add_tensor(2);
  space.add_recompute(OneOf<RecomputeMode>(
      {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL}, random));
  if (!tiny || random() % 2 == 0) space.add_microbatch_size(1);
  if (!tiny || space.microbatch_size().empty()) space.add_microbatch_size(2);
  space.add_chunks(1);
  space.add_chunks(2);
  if (tiny || random() % 2 == 0) space.add_orders("tp-dp-pp");
  space.set_even_layers_only(random() % 3 == 0);
  for (const char* sharding : {"none", "optimizer", "full"}) {
    if (random() % (tiny ? 4 : 3) == 0) space.add_sharding(sharding);
  }
  if (space.sharding().empty()) space.add_sharding("none");
  if (random() % 3 > 0) {
    request.mutable_scenario()->mutable_communication()->set_gradient_reduction(
        OneOf<ReductionMode>({REDUCTION_BLOCKING, REDUCTION_OVERLAPPED},
                             random));
  }
  if (random() % 4 == 0) {
    space.clear_gpus();
    space.add_gpus(2);
    space.add_gpus(4);
  }
  request.set_objective(OneOf<Objective>(
      {OBJECTIVE_TIME, OBJECTIVE_MEMORY, OBJECTIVE_COST, OBJECTIVE_PARETO},
      random));
  // Variants have tests of their own (variants_test.cc).
  space.add_cpu_offloading_num_layers(0);
  space.add_optimizer_offload_fraction(0);
  space.add_tp_comm_overlap(false);
  request.set_price_per_gpu_hour(2.5);
  request.set_num_plans(1 + random() % 3);
  return request;
}

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_SEARCH_SMALL_REQUESTS_H_
