// SPDX-License-Identifier: Apache-2.0
// The memory formulas of Narayanan et al. 2021, sections 3.1 and 3.2, compared
// with whole simulations of that paper's 2.2B-parameter GPT:
//   2BW                 2|W|/d + d|A_total|/d + ...
//   2BW, recomputed     2|W|/d + |A_total|/d + d|A_in|
//   GPipe, recomputed   |W|/d + |A_total|/d + m|A_in|
//   PipeDream           (p-s)(|w_s| + |a_s|) on stage s
// They are bounds for the worst stage; here each stage has its exact sum.
// Recomputation keeps the input of every block, as the runtimes do. The paper
// keeps one input per stage, which is the same if a stage is one block.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.h"

namespace weir::sim::paper_memory_test {

constexpr double kLayers = 32, kHidden = 2304, kHeads = 32, kSequence = 512;
constexpr double kMicrobatch = 8;
// Values of one block: parameters, bytes of 16-bit activations with dropout
// (Korthikanti et al. 2022), and bytes of its input.
constexpr double kParameters = 12 * kHidden * kHidden + 13 * kHidden;
constexpr double kTotal =
    kSequence * kMicrobatch * kHidden * (34 + 5 * kHeads * kSequence / kHidden);
constexpr double kInput = 2 * kSequence * kMicrobatch * kHidden;
constexpr double kTokenIds = 8 * kSequence * kMicrobatch;

struct Setting {
  const char* schedule;
  int num_ranks;
  int num_microbatches;
  bool recompute;
  int num_chunks = 1;
  Precision precision = MIXED_FP16;
};

Result RunPaper(const Setting& setting) {
  auto scenario = scenarios::LoadScenario("pipedream-2bw-gpt-2.2b");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->set_schedule(setting.schedule);
  scenario->set_runtime("none");  // the formulas omit fp32 copies
  scenario->set_num_nodes((setting.num_ranks + 7) / 8);
  scenario->mutable_parallelism()->set_data(1);
  scenario->mutable_parallelism()->set_pipeline(setting.num_ranks);
  scenario->mutable_parallelism()->set_chunks(setting.num_chunks);
  scenario->mutable_batch()->set_global_batch_size(setting.num_microbatches *
                                                   kMicrobatch);
  scenario->mutable_training()->set_recompute(
      setting.recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE);
  if (setting.num_chunks > 1) {  // more microbatches than ranks deadlock
    scenario->mutable_communication()->set_transfers(OVERLAPPED);
  }
  if (setting.precision == FP32) {
    scenario->mutable_training()->set_precision(FP32);
  }
  const auto resolved = scenarios::ResolveScenario("test", *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

std::map<std::string, double> Classes(const RankResult& rank) {
  std::map<std::string, double> classes;
  for (const MemoryClass& entry : rank.peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
  }
  return classes;
}

// Requires: `in_flight` microbatches and `versions` versions of the weights are
// held.
void ExpectMemory(const RankResult& rank, const Setting& setting,
                  double in_flight, int versions) {
  std::map<std::string, double> classes;
  double sum = 0;
  for (const MemoryClass& entry : rank.peak_memory_classes()) {
    classes[entry.name()] = entry.bytes();
    sum += entry.bytes();
  }
  const double blocks = kLayers / setting.num_ranks;
  const double parameters = blocks * kParameters;
  EXPECT_EQ(classes["weights"], 2 * parameters);
  EXPECT_EQ(classes["gradients"], 2 * parameters);
  EXPECT_EQ(classes["optimizer_state"], 12 * parameters);
  // A stashed version is a copy of the fp32 master weights.
  EXPECT_EQ(classes["weight_stash"], (versions - 1) * 4 * parameters);
  if (setting.recompute) {
    EXPECT_EQ(classes["activations"], in_flight * blocks * kInput);
    EXPECT_EQ(classes["recompute_scratch"], kTotal - kInput);
    // The paper's own bound.
    EXPECT_LE(classes["activations"] + classes["recompute_scratch"],
              blocks * kTotal + in_flight * blocks * kInput);
  } else {
    EXPECT_EQ(classes["activations"], in_flight * blocks * kTotal);
    EXPECT_EQ(classes["recompute_scratch"], 0);
  }
  EXPECT_NEAR(rank.peak_memory_bytes(), sum, 1e-9 * sum);
}

// Checks the stages without embedding or head.
template <typename InFlight, typename Versions>
void ExpectStages(const Setting& setting, InFlight in_flight,
                  Versions versions) {
  const Result result = RunPaper(setting);
  ASSERT_EQ(result.ranks_size(), setting.num_ranks);
  for (int s = 1; s + 1 < setting.num_ranks; ++s) {
    SCOPED_TRACE(testing::Message() << setting.schedule << " stage " << s);
    ExpectMemory(result.ranks(s), setting, in_flight(s), versions(s));
  }
}

TEST(PaperMemoryTest, TwoBufferedWeights) {
  for (int p : {8, 32}) {
    for (bool recompute : {false, true}) {
      ExpectStages(
          {"pipedream-2bw", p, p, recompute}, [p](int s) { return p - s; },
          [](int) { return 2; });
    }
  }
}

TEST(PaperMemoryTest, GPipeRecomputed) {
  for (int m : {8, 24}) {
    ExpectStages(
        {"gpipe", 8, m, true}, [m](int) { return m; }, [](int) { return 1; });
  }
}

TEST(PaperMemoryTest, PipeDreamStashesWeightsAndActivationsAlike) {
  ExpectStages(
      {"pipedream", 8, 16, false}, [](int s) { return 8 - s; },
      [](int s) { return 8 - s; });
}

// Lamy-Poirier 2023: the rank keeps the checkpoints of all microbatches, m for
// each of the v chunks. With the embedding, it also keeps the dropout mask,
// half the size of an input, and the token ids. (The last rank also keeps the
// logits of the head.)
TEST(PaperMemoryTest, BreadthFirstRecomputedKeepsTheInputsOfAllChunks) {
  for (int m : {8, 16}) {
    for (int v : {2, 4}) {
      const Result result = RunPaper({"breadth-first", 8, m, true, v});
      ASSERT_EQ(result.ranks_size(), 8);
      const double blocks_per_chunk = kLayers / 8 / v;
      for (int rank = 0; rank < 7; ++rank) {
        SCOPED_TRACE(testing::Message()
                     << "m " << m << " v " << v << " rank " << rank);
        auto classes = Classes(result.ranks(rank));
        EXPECT_EQ(classes["activations"], m * v * blocks_per_chunk * kInput);
        EXPECT_EQ(classes["end_activations"],
                  rank == 0 ? m * (kInput / 2 + kTokenIds) : 0);
      }
    }
  }
}

// Yang et al. 2021: T2 needs another average in addition to Adam's weights and
// two states, a third more; T1 needs none. The weights are held once.
TEST(PaperMemoryTest, PipeMaresCorrectionIsAThirdOfTheOptimizersMemory) {
  for (const bool corrects : {false, true}) {
    const Result result =
        RunPaper({corrects ? "pipemare" : "pipemare:correction=none", 8, 16,
                  false, 1, FP32});
    ASSERT_EQ(result.ranks_size(), 8);
    EXPECT_EQ(result.weight_versions(), 1u);
    for (int s = 0; s < 8; ++s) {
      SCOPED_TRACE(testing::Message() << "stage " << s);
      auto classes = Classes(result.ranks(s));
      const double optimizer = classes["weights"] + classes["optimizer_state"];
      if (s > 0 && s + 1 < 8) {
        EXPECT_EQ(optimizer, 3 * 4 * (kLayers / 8) * kParameters);
      }
      EXPECT_EQ(classes["estimate_buffers"], corrects ? optimizer / 3 : 0);
      EXPECT_EQ(classes.count("weight_stash"), 0u);
      EXPECT_EQ(classes.count("predicted_weights"), 0u);
    }
  }
}

TEST(PaperMemoryTest, PipeDreamFlush) {
  ExpectStages(
      {"1f1b", 8, 16, true}, [](int s) { return 8 - s; },
      [](int) { return 1; });
}

}  // namespace weir::sim::paper_memory_test
