// SPDX-License-Identifier: Apache-2.0
// Compares the time of weight predictions in the steady state with closed
// forms, to 1e-9: PipeDream's throughput, reduced by the predictions.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace weir::sim::prediction_test {

struct Seconds {
  double forward, backward, prediction;
};
constexpr Seconds kSeconds[] = {{1, 2, 0.5}, {1.25, 2.5, 0.1}, {2, 1, 3}};

// Returns the time of a batch in seconds. All stages are equal except for
// `slow`, whose forward takes `more` seconds longer (-1: none).
double SteadySeconds(const std::string& schedule, int num_ranks,
                     int num_microbatches, const Seconds& seconds,
                     int slow = -1, double more = 0) {
  GivenScenario given;
  given.schedule = schedule;
  given.num_ranks = num_ranks;
  given.num_microbatches = num_microbatches;
  given.forward_seconds.assign(num_ranks, seconds.forward);
  given.backward_seconds.assign(num_ranks, seconds.backward);
  given.prediction_seconds.assign(num_ranks, seconds.prediction);
  if (slow >= 0) given.forward_seconds[slow] += more;
  const auto result = Simulate(Resolve(given));
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return 0;
  EXPECT_TRUE(result->steady_state());
  return result->batch_seconds();
}

// Calls check(p, m, seconds).
template <typename Check>
void ForAllShapes(Check check) {
  for (int p : {1, 2, 3, 4, 6, 8}) {
    for (int m : {1, 2, 3, 4, 5, 8, 12}) {
      for (const Seconds& seconds : kSeconds) {
        SCOPED_TRACE(absl::StrCat("p ", p, " m ", m, " F ", seconds.forward,
                                  " B ", seconds.backward, " prediction ",
                                  seconds.prediction));
        check(p, m, seconds);
      }
    }
  }
}

void ExpectEqual(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-9 * expected);
}

// Stage s predicts floor(s/2)+p-1-s updates ahead in the forward and floor(s/2)
// in the backward; a distance of zero needs no prediction. With three or more
// stages, some stage predicts in both.
TEST(PredictionTest, SpecTrainPaysForEveryPassOfAMicrobatch) {
  ForAllShapes([](int p, int m, const Seconds& seconds) {
    const int predictions = std::min(p - 1, 2);
    ExpectEqual(SteadySeconds("spectrain", p, m, seconds),
                m * (seconds.forward + seconds.backward +
                     predictions * seconds.prediction));
  });
}

// Every stage but the last uses stale weights.
TEST(PredictionTest, PipelinedBackpropagationPaysForEveryForward) {
  ForAllShapes([](int p, int m, const Seconds& seconds) {
    const double passes = m * (seconds.forward + seconds.backward);
    ExpectEqual(SteadySeconds("pipelined-backprop:mitigation=linear-prediction",
                              p, m, seconds),
                passes + (p > 1 ? m * seconds.prediction : 0));
    for (const char* free : {"pipelined-backprop",
                             "pipelined-backprop:mitigation="
                             "spike-compensation"}) {
      ExpectEqual(SteadySeconds(free, p, m, seconds), passes);
    }
  });
}

TEST(PredictionTest, PipeMarePaysForEveryBackward) {
  ForAllShapes([](int p, int m, const Seconds& seconds) {
    const double passes = m * (seconds.forward + seconds.backward);
    ExpectEqual(SteadySeconds("pipemare", p, m, seconds),
                passes + m * seconds.prediction);
    ExpectEqual(SteadySeconds("pipemare:correction=none", p, m, seconds),
                passes);
  });
}

// A stage predicts once per minibatch of m microbatches, but 1F1B with equal
// stages has no slack. The bellwether is delayed by the prediction of each
// stage in turn on its way down, it returns, and the forward p microbatches
// later waits for it. A cycle of waits can include one bellwether per stage,
// but at most one per microbatch: from stage p-m on if m < p.
TEST(PredictionTest, XPipePaysForThePredictionsOfAllStagesInTurn) {
  ForAllShapes([](int p, int m, const Seconds& seconds) {
    // The last of two stages predicts over no distance.
    const int stages = p <= 2 ? p - 1 : p;
    ExpectEqual(SteadySeconds("xpipe", p, m, seconds),
                m * (seconds.forward + seconds.backward) +
                    std::min(stages, m) * seconds.prediction);
  });
}

// A stage that is slower than the others by at least one prediction hides
// theirs: a path that leaves it for the prediction of another stage loses more
// than it gains.
TEST(PredictionTest, TheSlowestStagePaysForItsOwnAlone) {
  for (int p : {3, 4, 8}) {
    for (int m : {1, 2, 4, 8}) {
      for (const Seconds& seconds : kSeconds) {
        for (int slow : {0, 1, p - 1}) {
          SCOPED_TRACE(absl::StrCat("p ", p, " m ", m, " slow ", slow));
          const double more = 2 * seconds.prediction;
          const double passes = m * (seconds.forward + seconds.backward + more);
          ExpectEqual(SteadySeconds("xpipe", p, m, seconds, slow, more),
                      passes + seconds.prediction);
          ExpectEqual(SteadySeconds("spectrain", p, m, seconds, slow, more),
                      passes + m * (slow < 2 ? 1 : 2) * seconds.prediction);
        }
      }
    }
  }
}

}  // namespace weir::sim::prediction_test
