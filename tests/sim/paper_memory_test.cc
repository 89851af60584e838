// SPDX-License-Identifier: Apache-2.0
// The memory formulas of Narayanan et al. 2021, section 3.1 and 3.2, through
// whole simulations of that paper's 2.2B-parameter GPT:
//   2BW                 2|W|/d + d|A_total|/d + ...
//   2BW, recomputed     2|W|/d + |A_total|/d + d|A_in|
//   GPipe, recomputed   |W|/d + |A_total|/d + m|A_in|
//   PipeDream           (p-s)(|w_s| + |a_s|) on stage s
// They are bounds for the worst stage; here every stage has its own exact sum.
// Recomputation keeps the input of every block, as the runtimes do: the paper's
// one input per stage where a stage is one block.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simulate.h"

namespace weir {
namespace {

constexpr double kLayers = 32, kHidden = 2304, kHeads = 32, kSequence = 512;
constexpr double kMicrobatch = 8;
// Of one block: parameters, activations in 16 bits with dropout (Korthikanti et
// al. 2022), and its input.
constexpr double kParameters = 12 * kHidden * kHidden + 13 * kHidden;
constexpr double kTotal =
    kSequence * kMicrobatch * kHidden * (34 + 5 * kHeads * kSequence / kHidden);
constexpr double kInput = 2 * kSequence * kMicrobatch * kHidden;

struct Setting {
  const char* schedule;
  int num_ranks;
  int num_microbatches;
  bool recompute;
};

Result RunPaper(const Setting& setting) {
  auto scenario = LoadScenario("pipedream-2bw-gpt-2.2b");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  scenario->set_schedule(setting.schedule);
  scenario->set_num_nodes((setting.num_ranks + 7) / 8);
  scenario->mutable_parallelism()->set_data(1);
  scenario->mutable_parallelism()->set_pipeline(setting.num_ranks);
  scenario->mutable_batch()->set_global_batch_size(setting.num_microbatches *
                                                   kMicrobatch);
  scenario->mutable_training()->set_recompute(
      setting.recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE);
  const auto resolved = ResolveScenario("test", *scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

// `in_flight` microbatches are held, `versions` versions of the weights.
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
  // A stashed version is one of the fp32 master weights.
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

// The stages between the embedding's and the head's.
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

TEST(PaperMemoryTest, PipeDreamFlush) {
  ExpectStages(
      {"pipedream-flush", 8, 16, true}, [](int s) { return 8 - s; },
      [](int) { return 1; });
}

}  // namespace
}  // namespace weir
