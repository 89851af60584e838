// SPDX-License-Identifier: Apache-2.0
// Compares the simulator with the independent longest-path oracle: equal
// without contention, in thousands of random cases of all schedules.
#include "tests/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/registry.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/random_schedule.h"

namespace weir::sim::oracle_test {

class Cases {
 public:
  explicit Cases(int seed) : random_(seed) {}

  std::mt19937* random() { return &random_; }
  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Seconds(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  // Returns a valid random shape for a schedule kind, usually with unequal
  // stages.
  GivenScenario Next(const schedules::ScheduleKind& kind, bool blocking) {
    GivenScenario given;
    given.schedule = std::string(kind.name);
    given.blocking = blocking;
    while (true) {
      given.num_ranks = Int(1, 8);
      given.num_microbatches = Int(1, 20);
      given.num_chunks = Int(1, 4);
      given.num_batches = kind.flush ? 1 : Int(1, 4);
      if (kind.check(Spec(given)).ok()) break;
    }
    const bool uneven = Int(0, 3) > 0;
    DrawCosts(uneven ? given.num_ranks * given.num_chunks : 1, &given);
    return given;
  }

  void DrawCosts(int num_stages, GivenScenario* given) {
    const auto draw = [&](double low, double high) {
      std::vector<double> seconds(num_stages);
      for (double& value : seconds) value = Seconds(low, high);
      return seconds;
    };
    given->forward_seconds = draw(0.1, 2);
    given->backward_seconds = draw(1.5, 3);
    given->weight_gradient_seconds = draw(0.1, 1.4);
    if (Int(0, 1) == 0) given->overlapped_seconds = draw(1, 4);
    given->offload_seconds = draw(0, 3);
    given->prediction_seconds = draw(0, 0.5);
    given->codec_seconds = draw(0, 0.5);
    given->hop_seconds = Int(0, 2) == 0 ? 0 : Seconds(0, 1.5);
  }

  static schedules::ScheduleSpec Spec(const GivenScenario& given) {
    return {given.num_ranks, given.num_microbatches, given.num_chunks,
            given.num_batches};
  }

 private:
  std::mt19937 random_;
};

// Returns one entry per stage.
std::vector<double> PerStage(const std::vector<double>& given, int num_stages) {
  return given.size() == 1 ? std::vector<double>(num_stages, given[0]) : given;
}

oracle::Costs CostsOf(const GivenScenario& given, int num_stages) {
  oracle::Costs costs;
  costs.forward_seconds = PerStage(given.forward_seconds, num_stages);
  costs.backward_seconds = PerStage(given.backward_seconds, num_stages);
  costs.backward_weight_seconds =
      PerStage(given.weight_gradient_seconds, num_stages);
  for (int s = 0; s < num_stages; ++s) {
    costs.backward_input_seconds.push_back(costs.backward_seconds[s] -
                                           costs.backward_weight_seconds[s]);
  }
  costs.overlapped_seconds = PerStage(given.overlapped_seconds, num_stages);
  costs.offload_seconds = PerStage(given.offload_seconds, num_stages);
  costs.prediction_seconds = PerStage(given.prediction_seconds, num_stages);
  costs.codec_seconds = PerStage(given.codec_seconds, num_stages);
  costs.latency_seconds = given.hop_seconds;
  return costs;
}

// Returns the costs that the simulator passes to kinds of schedules that use
// them.
schedules::PassCosts KnownCosts(const GivenScenario& given) {
  schedules::PassCosts costs;
  const int num_stages = given.num_ranks * given.num_chunks;
  const oracle::Costs of = CostsOf(given, num_stages);
  for (int s = 0; s < num_stages; ++s) {
    schedules::StagePassCosts& stage = costs.stages.emplace_back();
    stage.forward = of.forward_seconds[s];
    stage.backward_input = of.backward_input_seconds[s];
    stage.backward_weight = of.backward_weight_seconds[s];
    stage.backward = stage.backward_input + stage.backward_weight;
    if (!of.overlapped_seconds.empty()) {
      stage.overlapped = of.overlapped_seconds[s];
    }
    stage.offload = of.offload_seconds[s];
  }
  if (given.num_ranks > 1) costs.hop = given.hop_seconds;
  return costs;
}

void ExpectEqual(double actual, double expected, const char* what) {
  EXPECT_NEAR(actual, expected, 1e-9 * std::max(expected, 1.0)) << what;
}

// Compares all values of each rank and the start and end of each action.
// Returns false if both report a deadlock.
bool ExpectSameAsOracle(const schedules::Schedule& schedule,
                        const GivenScenario& given) {
  const auto expected =
      oracle::Evaluate(schedule, CostsOf(given, schedule.num_stages),
                       given.blocking ? oracle::Transfers::kBlocking
                                      : oracle::Transfers::kBuffered);
  SimulateOptions options;
  options.keep_timeline = true;
  const auto result = schedule.name == "random"
                          ? SimulateSchedule(Resolve(given), schedule, options)
                          : Simulate(Resolve(given), options);
  EXPECT_EQ(result.ok(), expected.ok()) << result.status() << expected.status();
  if (!result.ok() || !expected.ok()) return false;
  ExpectEqual(result->makespan_seconds(), expected->makespan_seconds,
              "makespan");
  int event = 0;
  const auto& actions = result->timeline().actions();
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const RankResult& actual = result->ranks(rank);
    ExpectEqual(actual.busy_seconds(), expected->busy_seconds[rank], "busy");
    ExpectEqual(actual.idle_seconds(), expected->idle_seconds[rank], "idle");
    ExpectEqual(actual.span_seconds(), expected->span_seconds[rank], "span");
    ExpectEqual(actual.busy_seconds() + actual.idle_seconds(),
                result->makespan_seconds(), "busy + idle");
    ExpectEqual(actual.peak_activation_microbatches(),
                expected->peak_microbatches[rank], "peak");
    for (size_t i = 0; i < schedule.rank_actions[rank].size(); ++i) {
      const schedules::Action& action = schedule.rank_actions[rank][i];
      EXPECT_EQ(actions.stage(event), action.stage);
      EXPECT_EQ(actions.microbatch(event), action.microbatch);
      ExpectEqual(actions.start_seconds(event),
                  expected->start_seconds[rank][i], "start");
      ExpectEqual(actions.end_seconds(event), expected->end_seconds[rank][i],
                  "end");
      ++event;
    }
    while (event < actions.op_size() &&
           actions.op(event) == Timeline::Actions::OPTIMIZER_STEP)
      ++event;
  }
  return true;
}

std::string Describe(const GivenScenario& given) {
  return absl::StrCat(given.schedule, " p ", given.num_ranks, " m ",
                      given.num_microbatches, " v ", given.num_chunks, " n ",
                      given.num_batches, " c ", given.hop_seconds);
}

// Returns false if both report a deadlock.
bool ExpectSameAsOracle(const schedules::ScheduleKind& kind,
                        const GivenScenario& given) {
  schedules::ScheduleSpec spec = Cases::Spec(given);
  if (kind.uses_costs) spec.costs = KnownCosts(given);
  const auto schedule = schedules::GenerateSchedule(given.schedule, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return ExpectSameAsOracle(*schedule, given);
}

TEST(SimulatorOracleTest, OverlappedTransfersEqualTheLongestPath) {
  Cases cases(1);
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    for (int i = 0; i < 80; ++i) {
      const GivenScenario given = cases.Next(kind, /*blocking=*/false);
      SCOPED_TRACE(Describe(given));
      const bool runs = ExpectSameAsOracle(kind, given);
      ASSERT_TRUE(runs) << Simulate(Resolve(given)).status();
      if (HasFailure()) return;
    }
  }
}

// Bidirectional orders may deadlock; then both must report it.
TEST(SimulatorOracleTest, BlockingTransfersEqualTheLongestPath) {
  constexpr absl::string_view kAlwaysRun[] = {
      "gpipe", "1f1b", "interleaved-1f1b", "pipedream", "pipedream-2bw"};
  Cases cases(2);
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    int completed = 0;
    for (int i = 0; i < 50; ++i) {
      const GivenScenario given = cases.Next(kind, /*blocking=*/true);
      SCOPED_TRACE(Describe(given));
      completed += ExpectSameAsOracle(kind, given);
      if (HasFailure()) return;
    }
    if (std::find(std::begin(kAlwaysRun), std::end(kAlwaysRun), kind.name) !=
        std::end(kAlwaysRun)) {
      EXPECT_GT(completed, 25) << kind.name;
    }
  }
}

// Counts the random schedules with each feature.
struct Features {
  int copies = 0, pairs = 0, spans = 0, offloads = 0, limits = 0, inference = 0,
      async = 0;

  void Add(const schedules::Schedule& schedule) {
    bool pair = false, span = false, offload = false, copy = false;
    for (const auto& actions : schedule.rank_actions) {
      for (const schedules::Action& action : actions) {
        pair |= action.overlaps_next;
        span |= action.num_microbatches > 1;
        offload |= action.op == schedules::Op::kOffload;
      }
    }
    for (int s = 0; s < schedule.num_stages; ++s) {
      copy |= schedule.RanksOf(s).size() > 1;
    }
    copies += copy;
    pairs += pair;
    spans += span;
    offloads += offload;
    limits += offload && schedule.resident_activations > 0;
    inference += schedule.forward_only;
    async += !schedule.flush;
  }
};

// Uses all features of schedules, in unusual orders.
TEST(SimulatorOracleTest, AnyScheduleEqualsTheLongestPath) {
  for (const bool blocking : {false, true}) {
    Cases cases(3);
    int completed = 0;
    Features seen;
    for (int i = 0; i < 1000; ++i) {
      const schedules::Schedule schedule = RandomSchedule(cases.random());
      seen.Add(schedule);
      GivenScenario given;
      given.schedule = "random";
      given.num_ranks = schedule.num_ranks;
      given.num_microbatches = schedule.num_microbatches;
      given.num_batches = schedule.num_batches;
      given.blocking = blocking;
      cases.DrawCosts(schedule.num_stages, &given);
      SCOPED_TRACE(absl::StrCat("case ", i, ": ", Describe(given), "\n",
                                schedules::PrintCsv(schedule)));
      completed += ExpectSameAsOracle(schedule, given);
      if (HasFailure()) return;
    }
    EXPECT_GT(completed, blocking ? 150 : 900);
    for (int count : {seen.copies, seen.pairs, seen.spans, seen.offloads,
                      seen.limits, seen.inference, seen.async}) {
      EXPECT_GT(count, 50);
    }
  }
}

}  // namespace weir::sim::oracle_test
