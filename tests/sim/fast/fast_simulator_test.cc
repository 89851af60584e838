// SPDX-License-Identifier: Apache-2.0
// Checks that a FastSimulator returns the values of the full simulation.
#include "sim/fast/fast_simulator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "results/result.pb.h"
#include "scenarios/cluster/cluster.h"
#include "sim/engine/graph_runner.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"
#include "tests/sim/measured.h"
#include "tests/sim/nudge.h"
#include "tests/sim/random_plan.h"

namespace weir::sim::fast_simulator_test {

struct Case {
  int seed = 0;
  scenarios::ResolvedScenario scenario;
};

std::vector<Case> DrawCases(int num_seeds) {
  std::vector<Case> cases;
  for (int seed = 0; seed < num_seeds; ++seed) {
    RandomPlan plan(seed);
    auto resolved = scenarios::ResolveScenario("test", plan.DrawScenario());
    if (!resolved.ok()) continue;
    plan.Change(&*resolved);
    if (!resolved->given_costs &&
        !scenarios::ValidateCluster("test", resolved->cluster).ok()) {
      continue;
    }
    cases.push_back({seed, *std::move(resolved)});
  }
  return cases;
}

constexpr int kMostRanks = RandomPlan::kMostRanks;

struct Answer {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  double batch_seconds = 0, makespan_seconds = 0;
  double peak_bytes[kMostRanks] = {};
  bool fits_memory = false, reduced = false, extrapolated = false,
       shared_links = false;
};

Answer AnswerOf(const absl::StatusOr<FastEstimate>& run) {
  Answer answer;
  answer.code = run.status().code();
  if (!run.ok()) return answer;
  answer.batch_seconds = run->batch_seconds;
  answer.makespan_seconds = run->makespan_seconds;
  std::copy(run->peak_bytes.begin(), run->peak_bytes.end(), answer.peak_bytes);
  answer.fits_memory = run->fits_memory;
  answer.reduced = run->reduced;
  answer.extrapolated = run->extrapolated;
  answer.shared_links = run->shared_links;
  return answer;
}

Answer AnswerOf(const absl::StatusOr<Result>& result) {
  Answer answer;
  answer.code = result.status().code();
  if (!result.ok()) return answer;
  answer.batch_seconds = result->batch_seconds();
  answer.makespan_seconds = result->makespan_seconds();
  for (const RankResult& rank : result->ranks()) {
    double& peak = answer.peak_bytes[rank.rank()];
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  answer.fits_memory = result->fits_memory();
  return answer;
}

bool AreEqual(const Answer& a, const Answer& b, double tolerance) {
  const auto near = [tolerance](double x, double y) {
    return std::fabs(x - y) <= tolerance * std::fabs(y);
  };
  return a.code == b.code && near(a.batch_seconds, b.batch_seconds) &&
         near(a.makespan_seconds, b.makespan_seconds) &&
         std::equal(a.peak_bytes, a.peak_bytes + kMostRanks, b.peak_bytes,
                    near) &&
         a.fits_memory == b.fits_memory;
}

// Describes the relative errors of seconds and bytes.
std::string MostOff(const Answer& a, const Answer& b) {
  const auto off = [](double x, double y) {
    return y == 0 ? 0 : std::fabs(x / y - 1);
  };
  double bytes = 0;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    bytes = std::max(bytes, off(a.peak_bytes[rank], b.peak_bytes[rank]));
  }
  return absl::StrCat(off(a.batch_seconds, b.batch_seconds), " in seconds, ",
                      bytes, " in bytes");
}

// Runs in a child process, forked first because a process that has run SimGrid,
// as Simulate does, may not be forked.
std::vector<Answer> RankAll(const std::vector<Case>& cases) {
  const size_t bytes = cases.size() * sizeof(Answer);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* answers = new (memory) Answer[cases.size()];
  const pid_t child = fork();
  if (child == 0) {
    FastSimulator ranker;
    for (size_t i = 0; i < cases.size(); ++i) {
      answers[i] = AnswerOf(ranker.Estimate(cases[i].scenario));
    }
    // The answers are bit-identical no matter what was ranked before.
    int num_others = 0;
    for (size_t i = std::min<size_t>(cases.size(), 400); i-- > 0;) {
      num_others += !AreEqual(AnswerOf(ranker.Estimate(cases[i].scenario)),
                              answers[i], 0);
    }
    _exit(num_others > 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::vector<Answer> all(answers, answers + cases.size());
  munmap(memory, bytes);
  return all;
}

// Rounding errors accumulate where flows of many sizes share many links, so the
// simulation itself may lack nine significant digits. This is the case if
// changes in the thirteenth digit of rates change the answer as much.
bool IsWellConditioned(const Case& one, const Answer& simulated,
                       const SimulateOptions& options = {}) {
  std::mt19937 random(1);
  for (int i = 0; i < 8; ++i) {
    scenarios::ResolvedScenario other = one.scenario;
    NudgeRates(&random, &other.cluster);
    if (!AreEqual(AnswerOf(Simulate(other, options)), simulated, 1e-10))
      return false;
  }
  return true;
}

TEST(FastSimulatorTest, EqualsTheFullSimulationWhateverIsAsked) {
  const char* more = std::getenv("WEIR_RANK_TEST_SEEDS");
  const std::vector<Case> cases =
      DrawCases(more != nullptr ? std::atoi(more) : 300);
  const std::vector<Answer> answers = RankAll(cases);
  int num_folded = 0, num_declined = 0, num_extrapolated = 0, num_shared = 0,
      num_alone = 0, num_errors = 0, num_ill_conditioned = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Answer& ranked = answers[i];
    const scenarios::Placement& place = cases[i].scenario.placement;
    const Answer simulated = AnswerOf(Simulate(cases[i].scenario));
    if (!AreEqual(ranked, simulated, 1e-9)) {
      if (!IsWellConditioned(cases[i], simulated)) {
        ++num_ill_conditioned;
        std::cout << "seed " << cases[i].seed << " is ill conditioned: off by "
                  << MostOff(ranked, simulated) << "\n";
        continue;
      }
      ADD_FAILURE() << "seed " << cases[i].seed << ": ranked "
                    << ranked.batch_seconds << ", simulated "
                    << simulated.batch_seconds << ", peak "
                    << ranked.peak_bytes[0] << ", " << simulated.peak_bytes[0]
                    << ", folded " << ranked.reduced << ", extrapolated "
                    << ranked.extrapolated << ", shared " << ranked.shared_links
                    << "\n"
                    << PrintTextProto(cases[i].scenario.scenario);
      continue;
    }
    num_errors += ranked.code != absl::StatusCode::kOk;
    if (ranked.code != absl::StatusCode::kOk) continue;
    num_folded += ranked.reduced;
    num_declined += place.data * place.tensor > 1 && !ranked.reduced;
    num_extrapolated += ranked.extrapolated;
    num_shared += ranked.shared_links;
    num_alone += !ranked.shared_links;
  }
  std::cout << cases.size() << " cases: folded " << num_folded << ", declined "
            << num_declined << ", extrapolated " << num_extrapolated
            << ", links shared " << num_shared << ", not shared " << num_alone
            << ", errors " << num_errors << ", ill conditioned "
            << num_ill_conditioned << "\n";
  EXPECT_GT(num_folded, 60);
  EXPECT_GT(num_declined, 20);
  EXPECT_GT(num_extrapolated, 30);
  EXPECT_GT(num_shared, 80);
  EXPECT_GT(num_alone, 40);
  EXPECT_LT(num_ill_conditioned, 10);
}

// A single rank is never idle, regardless of the order of its passes. A batch
// takes m (F + B), summed over its stages, and is extrapolated from few
// microbatches.
TEST(FastSimulatorTest, OneRankIsExtrapolatedFromAFewMicrobatches) {
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "breadth-first"}) {
    for (const int m : {40, 400}) {
      GivenScenario given;
      given.schedule = schedule;
      given.num_ranks = 1;
      given.num_microbatches = m;
      given.num_chunks = std::string(schedule) == "1f1b" ? 1 : 2;
      given.forward_seconds = {1, 3};
      given.backward_seconds = {4, 5};
      given.forward_seconds.resize(given.num_chunks);
      given.backward_seconds.resize(given.num_chunks);
      FastSimulator ranker;
      const auto run = ranker.Estimate(Resolve(given));
      ASSERT_TRUE(run.ok()) << run.status();
      const double seconds = m * (given.num_chunks == 1 ? 5.0 : 13.0);
      EXPECT_NEAR(run->batch_seconds, seconds, 1e-9 * seconds) << schedule;
      EXPECT_TRUE(run->extrapolated) << schedule << " " << m;
      EXPECT_LT(run->num_simulated_microbatches, 10) << schedule << " " << m;
    }
  }
}

// Batches end in the middle of periods of the microbatches in flight.
TEST(FastSimulatorTest, BatchesWithoutFlushAreJoined) {
  int num_short = 0;
  for (const char* schedule :
       {"pipedream", "pipedream-2bw", "pipemare", "spectrain", "xpipe"}) {
    for (const int ranks : {1, 2, 4, 7}) {
      for (const int m : {8, 9, 13, 24, 50}) {
        for (const double hop : {0.0, 0.1, 0.37}) {
          SCOPED_TRACE(absl::StrCat(schedule, " ", ranks, " ", m, " ", hop));
          GivenScenario given;
          given.schedule = schedule;
          given.num_ranks = ranks;
          given.num_microbatches = m;
          given.hop_seconds = hop;
          given.forward_seconds.clear();
          given.backward_seconds.clear();
          for (int rank = 0; rank < ranks; ++rank) {
            given.forward_seconds.push_back(1 + 0.01 * (rank * m % 5));
            given.backward_seconds.push_back(2 + 0.03 * (rank % 3));
            // Only schedules that predict weights use it.
            given.prediction_seconds.push_back(m % 2 * 0.07 * (1 + rank % 2));
          }
          FastSimulator simulator;
          const auto fast = simulator.Estimate(Resolve(given));
          const auto full = Simulate(Resolve(given), {});
          ASSERT_TRUE(fast.ok() && full.ok()) << fast.status();
          EXPECT_TRUE(AreEqual(AnswerOf(fast), AnswerOf(full), 1e-9));
          EXPECT_EQ(fast->num_microbatches,
                    full->num_batches() * full->num_microbatches());
          num_short +=
              fast->num_simulated_microbatches < fast->num_microbatches;
        }
      }
    }
  }
  std::cout << num_short << " shortened\n";
  EXPECT_GE(num_short, 160);
}

// Models have optimizer steps and gradient reductions at the ends of batches.
TEST(FastSimulatorTest, BatchesWithoutFlushAreShortened) {
  GraphRunner runner;
  SimulateOptions options;
  options.runner = &runner;
  FastSimulator simulator(&runner);
  constexpr const char* kSchedules[] = {"pipedream", "pipedream-2bw",
                                        "pipemare",  "pipemare:order=1f1b",
                                        "spectrain", "xpipe"};
  std::map<std::string, int> num_short;
  int num_whole = 0;
  for (int seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan plan(seed);
    Scenario scenario = plan.DrawScenario();
    if (scenario.has_costs()) continue;
    Parallelism* parallelism = scenario.mutable_parallelism();
    parallelism->set_pipeline(
        std::min(parallelism->pipeline(), seed % 5 == 0 ? 8u : 4u));
    parallelism->set_tensor(1);
    parallelism->set_data(std::min(parallelism->data(), 2u));
    parallelism->set_chunks(1);
    scenario.set_schedule(kSchedules[seed % std::size(kSchedules)]);
    scenario.clear_num_batches();
    Batch* batch = scenario.mutable_batch();
    const uint32_t m = 2 * (parallelism->pipeline() + 8) + seed % 50;
    batch->set_global_batch_size(m * batch->microbatch_size() *
                                 parallelism->data());
    auto resolved = scenarios::ResolveScenario("test", scenario);
    if (!resolved.ok()) continue;
    plan.Change(&*resolved);
    const auto fast = simulator.Estimate(*resolved, /*with_parts=*/true);
    const auto full = Simulate(*resolved, options);
    const Answer expected = AnswerOf(full);
    if (!AreEqual(AnswerOf(fast), expected, 1e-9)) {
      EXPECT_FALSE(IsWellConditioned({seed, *resolved}, expected, options))
          << fast.status() << ": off by " << MostOff(AnswerOf(fast), expected)
          << "\n"
          << PrintTextProto(scenario);
      continue;
    }
    if (!fast.ok()) continue;
    EXPECT_EQ(fast->num_microbatches,
              full->num_batches() * full->num_microbatches());
    if (fast->extrapolated) {
      // Collectives after a batch slow down some of its passes.
      const StepBreakdown& parts = full->breakdown();
      EXPECT_NEAR(fast->compute_seconds,
                  parts.compute_seconds() + parts.optimizer_seconds(),
                  0.02 * fast->compute_seconds);
    }
    (fast->extrapolated ? num_short[scenario.schedule()] : num_whole) += 1;
  }
  for (const auto& schedule : kSchedules) {
    std::cout << schedule << ": " << num_short[schedule] << " shortened\n";
    EXPECT_GE(num_short[schedule], 8) << schedule;
  }
  EXPECT_GE(num_whole, 20);
}

TEST(FastSimulatorTest, FitsWhereAByteLessDoesNot) {
  Measured measured;
  measured.num_microbatches = 3;
  measured.forward_seconds = measured.backward_seconds = {1};
  measured.activation_bytes = {1000};
  measured.parameter_bytes = {5000};
  scenarios::ResolvedScenario scenario =
      Resolve(measured, OneSwitch(1, 1e9, 0));
  FastSimulator ranker;
  const auto fits_with = [&](double bytes) {
    scenario.device.mutable_memory_bytes()->set_value(bytes);
    const auto run = ranker.Estimate(scenario);
    EXPECT_TRUE(run.ok()) << run.status();
    return run->fits_memory;
  };
  const double peak = ranker.Estimate(scenario)->peak_bytes[0];
  EXPECT_GT(peak, 5000);
  EXPECT_TRUE(fits_with(peak));
  EXPECT_FALSE(fits_with(peak - 1));
}

}  // namespace weir::sim::fast_simulator_test
