// SPDX-License-Identifier: Apache-2.0
// Checks that the search is never worse than layouts published in papers, on
// spaces around them.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "plan/search/joint_search.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"

namespace weir::plan::published_test {

// Table 1 of Narayanan et al., SC 2021, with the microbatches of its
// run_table_1.sh.
struct Row {
  const char* name;
  int num_layers, hidden_size, num_heads;
  int tensor, pipeline, num_gpus, microbatch_size, batch;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

Scenario ScenarioOf(const Row& row) {
  Scenario scenario;
  Transformer& model = *scenario.mutable_transformer();
  model.set_num_layers(row.num_layers);
  model.set_hidden_size(row.hidden_size);
  model.set_num_heads(row.num_heads);
  model.set_vocabulary_size(51200);
  model.set_attention_bias(true);
  model.set_attention_output_bias(true);
  model.set_feed_forward_bias(true);
  model.set_tied_embeddings(true);
  model.set_causal(true);
  scenario.set_cluster("selene");
  scenario.set_num_nodes(row.num_gpus / 8);
  scenario.set_runtime("megatron-lm-2021");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(row.tensor);
  parallelism.set_pipeline(row.pipeline);
  parallelism.set_data(row.num_gpus / row.tensor / row.pipeline);
  scenario.mutable_batch()->set_microbatch_size(row.microbatch_size);
  scenario.mutable_batch()->set_global_batch_size(row.batch);
  scenario.mutable_batch()->set_sequence_length(2048);
  scenario.set_schedule("1f1b");
  scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  scenario.mutable_training()->set_dropout(true);
  scenario.mutable_communication()->set_transfers(BLOCKING);
  return scenario;
}

PlanRequest Around(const Scenario& scenario) {
  PlanRequest request;
  request.set_memory_margin(0);
  *request.mutable_scenario() = scenario;
  const Parallelism& parallelism = scenario.parallelism();
  PlanSpace& space = *request.mutable_space();
  space.add_tensor(parallelism.tensor());
  space.add_pipeline(parallelism.pipeline());
  space.add_microbatch_size(scenario.batch().microbatch_size());
  space.add_microbatch_size(scenario.batch().microbatch_size() / 2);
  space.add_recompute(scenario.training().recompute());
  space.add_schedules(scenario.schedule());
  space.add_orders("tp-dp-pp");
  request.set_num_plans(1);
  return request;
}

void ExpectNotWorse(const Scenario& published, const PlanRequest& request) {
  const auto resolved = scenarios::ResolveScenario("published", published);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto result = sim::Simulate(*resolved);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto report = SearchPlans("published", request, {.num_processes = 2});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->plans(0).batch_seconds(),
            result->batch_seconds() * (1 + 1e-9));
}

class MegatronTable1 : public testing::TestWithParam<Row> {};

TEST_P(MegatronTable1, ThePlanIsNotSlower) {
  const Scenario published = ScenarioOf(GetParam());
  ExpectNotWorse(published, Around(published));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, MegatronTable1,
    testing::Values(Row{"1.7B", 24, 2304, 24, 1, 1, 32, 16, 512},
                    Row{"3.6B", 30, 3072, 32, 2, 1, 64, 16, 512},
                    Row{"7.5B", 36, 4096, 32, 4, 1, 128, 16, 512},
                    Row{"18.4B", 40, 6144, 48, 8, 1, 256, 8, 1024}),
    [](const auto& row) {
      std::string name = row.param.name;
      name[name.find('.')] = '_';
      return name;
    });

// Figure 6 of Narayanan et al., ICML 2021: (width, depth) and batches, with
// microbatches of 8 if memory allows.
struct TwoBwRow {
  const char* name;
  int hidden_size, num_servers, width, depth, batch;
};
void PrintTo(const TwoBwRow& row, std::ostream* out) { *out << row.name; }

class TwoBwFigure6 : public testing::TestWithParam<TwoBwRow> {};

TEST_P(TwoBwFigure6, ThePlanIsNotSlower) {
  const TwoBwRow& row = GetParam();
  auto published = scenarios::LoadScenario("pipedream-2bw-gpt-2.2b");
  ASSERT_TRUE(published.ok());
  published->clear_model();
  Transformer& model = *published->mutable_transformer();
  model.set_num_layers(32);
  model.set_hidden_size(row.hidden_size);
  model.set_num_heads(32);
  model.set_vocabulary_size(50257);
  model.set_num_positions(512);
  model.set_attention_bias(true);
  model.set_attention_output_bias(true);
  model.set_feed_forward_bias(true);
  model.set_tied_embeddings(true);
  model.set_causal(true);
  published->set_num_nodes(row.num_servers);
  published->mutable_parallelism()->set_data(row.width);
  published->mutable_parallelism()->set_pipeline(row.depth);
  published->mutable_batch()->set_global_batch_size(row.batch);
  PlanRequest request = Around(*published);
  request.mutable_space()->mutable_tensor()->Clear();
  request.mutable_space()->add_tensor(1);
  ExpectNotWorse(*published, request);
}

INSTANTIATE_TEST_SUITE_P(
    Bars, TwoBwFigure6,
    testing::Values(TwoBwRow{"OneServer", 2304, 1, 1, 8, 64},
                    TwoBwRow{"Batch512", 2304, 8, 8, 8, 512},
                    TwoBwRow{"Batch2048", 2304, 8, 8, 8, 2048},
                    TwoBwRow{"Larger512", 3072, 8, 4, 16, 512},
                    TwoBwRow{"Larger2048", 3072, 8, 4, 16, 2048}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace weir::plan::published_test
