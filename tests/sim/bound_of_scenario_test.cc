// SPDX-License-Identifier: Apache-2.0
// Bounds of scenarios that once exceeded the simulated time, or might.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"
#include "scenarios/cluster/cluster.h"
#include "sim/bounds/bound.h"
#include "sim/simulate.h"

namespace weir::sim::bound_of_scenario_test {

constexpr double kRounding = 1e-9;

scenarios::ResolvedScenario Resolved(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.value();
}

void ExpectNotAboveTheRun(const scenarios::ResolvedScenario& scenario) {
  const auto bound = BoundOf(scenario);
  const auto result = Simulate(scenario);
  ASSERT_TRUE(bound.ok() && result.ok()) << bound.status() << result.status();
  EXPECT_LE(bound->batch_seconds, result->batch_seconds() * (1 + kRounding));
}

// The time of the host is a lower bound for a pass with its collectives, which
// transfer whole bytes. Rounding once let such a pass end before its host's
// launches, by up to the transfer time of half a byte, which is below the
// bound.
TEST(BoundOfScenarioTest, NotAboveARunWhosePassesWaitForTheirHost) {
  const scenarios::ResolvedScenario resolved = Resolved(R"pb(
    cluster: "selene"
    parallelism {
      tensor: 2
      data: 2
      pipeline: 2
      chunks: 2
      sequence_parallel: true
      expert: 2
    }
    batch { microbatch_size: 2 global_batch_size: 8 sequence_length: 240 }
    schedule: "v-min"
    training { precision: MIXED_BF16 recompute: RECOMPUTE_SELECTIVE }
    communication {
      gradient_reduction: REDUCTION_OVERLAPPED
      bucket_bytes: 10000000
    }
    transformer {
      num_layers: 4
      hidden_size: 768
      num_heads: 48
      vocabulary_size: 8192
      num_positions: 256
      causal: true
      num_experts: 4
      experts_per_token: 2
      num_dense_blocks: 1
    }
    runtime: "megatron-lm"
  )pb");
  ExpectNotAboveTheRun(resolved);
}

// The slowest hop of the ring of GPUs is not the one with the highest latency,
// so a collective takes less than the two combined.
TEST(BoundOfScenarioTest,
     NotAboveARunWhoseHostWaitsForCollectivesOverUnlikeHops) {
  scenarios::ResolvedScenario resolved = Resolved(R"pb(
    cluster: "dgx-h100"
    parallelism { tensor: 4 pipeline: 2 data: 1 sequence_parallel: true }
    batch { microbatch_size: 2 global_batch_size: 4 sequence_length: 240 }
    schedule: "spp"
    training {
      precision: MIXED_BF16
      recompute: RECOMPUTE_FULL
      fp32_gradients: true
    }
    transformer {
      num_layers: 6
      hidden_size: 768
      num_heads: 48
      vocabulary_size: 8192
      num_positions: 256
      causal: true
    }
    runtime: "megatron-lm"
  )pb");
  resolved.device.clear_collectives();
  Node* node = resolved.cluster.mutable_groups(0)->mutable_node();
  node->clear_nv_switch();
  node->clear_pcie();
  NvLinkMesh* mesh = node->mutable_nv_link_mesh();
  mesh->set_bytes_per_second_per_link(838e9);
  mesh->set_latency_seconds(8.8e-7);
  // GPU 3 reaches GPU 0 over GPU 4, by two fast hops. GPU 2 reaches GPU 3 by a
  // slow one.
  struct Links {
    int a, b, count;
  };
  for (const Links& links : std::vector<Links>{{0, 1, 4},
                                               {1, 2, 3},
                                               {2, 3, 1},
                                               {3, 4, 4},
                                               {4, 5, 1},
                                               {5, 6, 4},
                                               {6, 7, 3},
                                               {0, 7, 3},
                                               {0, 4, 3},
                                               {1, 6, 3},
                                               {1, 7, 2},
                                               {3, 5, 3},
                                               {3, 6, 1},
                                               {5, 7, 1}}) {
    NvLinkMesh::Edge* edge = mesh->add_edges();
    edge->set_a(links.a);
    edge->set_b(links.b);
    edge->set_num_links(links.count);
  }
  ASSERT_TRUE(scenarios::ValidateCluster("test", resolved.cluster).ok());
  ExpectNotAboveTheRun(resolved);
}

// The gradients of a sharded stage are reduced after its last backward, before
// the backwards of other stages of its rank start, so a rank never holds all
// full gradients at once.
TEST(BoundOfScenarioTest, MemoryHoldsGradientsUntilTheirLastBackwardOnly) {
  const scenarios::ResolvedScenario resolved = Resolved(R"pb(
    cluster: "dgx-a100"
    parallelism { data: 2 pipeline: 4 chunks: 2 }
    batch { microbatch_size: 1 global_batch_size: 8 sequence_length: 240 }
    schedule: "bitpipe"
    training {
      precision: MIXED_BF16
      fp32_gradients: true
      flash_attention: true
      fully_sharded: true
    }
    communication { transfers: BLOCKING }
    transformer {
      num_layers: 8
      hidden_size: 768
      num_heads: 48
      vocabulary_size: 8192
      num_positions: 256
      causal: true
      tied_embeddings: true
    }
    runtime: "megatron-lm"
  )pb");
  const auto bound = BoundOf(resolved);
  const auto result = Simulate(resolved);
  ASSERT_TRUE(bound.ok() && result.ok()) << bound.status() << result.status();
  for (const RankResult& rank : result->ranks()) {
    EXPECT_LE(bound->peak_bytes[rank.rank()],
              rank.peak_memory_bytes() * (1 + kRounding));
  }
}

// The pipelines span three nodes. The second replica has faster devices and no
// slow adapter on its path, so it starts earlier and ends sooner than the
// first.
TEST(BoundOfScenarioTest, NeverAboveARunWhoseReplicasAreUnlike) {
  const std::string folder = testing::TempDir();
  const std::string model = absl::StrCat(folder, "/bound_model.json");
  const std::string cluster = absl::StrCat(folder, "/bound.cluster");
  ASSERT_TRUE(WriteFile(model, R"({"model_type": "gpt2", "n_layer": 4,
      "n_embd": 256, "n_head": 4, "n_positions": 1024, "vocab_size": 1024})")
                  .ok());
  const auto node = [](int num_gpus, const char* device, const char* adapter) {
    return absl::StrCat(
        "groups { count: 1 node { name: '", adapter, num_gpus,
        "' num_gpus: ", num_gpus, " device: '", device, "' ",
        num_gpus == 1
            ? ""
            : "nv_switch { bytes_per_second: 150e9 latency_seconds: 3e-6 } ",
        "nics { bytes_per_second: ", adapter, " } } }\n");
  };
  ASSERT_TRUE(
      WriteFile(cluster, absl::StrCat("name: 'bound'\n",
                                      node(4, "v100-sxm2-32gb", "100e9"),
                                      node(1, "h100-sxm", "2.2e9"),
                                      node(3, "h100-sxm", "100e9"),
                                      "fabric { latency_seconds: 10e-6 }\n"))
          .ok());
  for (const char* schedule : {"2bp-1f1b-1", "1f1b", "bapipe-as", "zb-h2"}) {
    Scenario scenario;
    scenario.set_model(model);
    scenario.set_cluster(cluster);
    scenario.mutable_parallelism()->set_pipeline(4);
    scenario.mutable_parallelism()->set_data(2);
    scenario.mutable_parallelism()->set_order("tp-pp-dp");
    scenario.mutable_batch()->set_microbatch_size(16);
    scenario.mutable_batch()->set_global_batch_size(128);
    scenario.set_runtime("none");
    scenario.set_schedule(schedule);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    SCOPED_TRACE(schedule);
    ExpectNotAboveTheRun(*resolved);
  }
}

}  // namespace weir::sim::bound_of_scenario_test
