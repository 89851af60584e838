// SPDX-License-Identifier: Apache-2.0
// Compares the systems without a flush and those for edge devices with the
// versions, delays, replicas and throughput stated in their papers.
#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/semantics.h"
#include "schedules/stage_semantics.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::asynchronous_test {

using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;

std::vector<StageSemantics> Summary(const Schedule& schedule) {
  return SummarizeStages(schedule, Interpreted(schedule));
}

// Returns the seconds per batch in the steady state, from two run lengths, with
// F = 1 and B = 2.
double SteadySeconds(absl::string_view name, ScheduleSpec spec) {
  const auto makespan = [&](int batches) {
    spec.num_batches = batches;
    return TimedWalk(Generated(name, spec), {}).makespan();
  };
  const int many = 8 + 6 * spec.num_ranks;
  return (makespan(many + 12) - makespan(many)) / 12;
}

// Yang et al., 2021, section 2, with stages i counted from 1.
TEST(PipeMareTest, MeanForwardDelayIsThePublishedTau) {
  for (int p = 1; p <= 8; ++p) {
    for (int m : {1, 2, 3, 4, 7, 16}) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      const int batches = 2 * p / m + 6;
      const Schedule schedule = Generated("pipemare", {p, m, 1, batches});
      const Semantics semantics = Interpreted(schedule);
      const std::vector<StageSemantics> stages =
          SummarizeStages(schedule, semantics);
      for (int i = 1; i <= p; ++i) {
        const double tau = (2 * (p - i) + 1) / static_cast<double>(m);
        EXPECT_NEAR(stages[i - 1].mean_staleness, tau, 1e-9 * tau);
        EXPECT_EQ(stages[i - 1].max_staleness, std::ceil(tau));
        for (int k = 0; k < m * batches; ++k) {
          // tau_bkwd is 0: the backward reads the version that it then updates.
          ASSERT_EQ(semantics.uses[i - 1][k].backward_version, k / m);
        }
      }
      EXPECT_THAT(semantics.max_live_versions, Each(1));
    }
  }
}

// T2 moves the backward's weights to the forward's, on average over a batch.
TEST(PipeMareTest, CorrectionTakesTheMeanDisagreementAway) {
  const Schedule schedule = Generated("pipemare", {4, 5, 1, 8});
  EXPECT_EQ(schedule.weights.prediction, WeightPolicy::Prediction::kBackward);
  EXPECT_EQ(schedule.weights.estimate_buffers, 1);
  EXPECT_EQ(schedule.weights.predicted_copies, 0);
  for (const StageSemantics& stage : Summary(schedule)) {
    EXPECT_NEAR(stage.mean_disagreement, stage.mean_staleness, 1e-9);
    EXPECT_NEAR(stage.mean_predicted_disagreement, 0, 1e-9);
    EXPECT_LT(stage.max_predicted_disagreement, 1);
  }
  EXPECT_EQ(Verdict(schedule, Interpreted(schedule)),
            "delay changes between microbatches, (2(p-1-s)+1)/m on average, at "
            "most 2 updates; F and B disagree by up to 2 updates; after "
            "prediction F and B agree on average");
  const Schedule plain = Generated("pipemare:correction=none", {4, 5, 1, 8});
  EXPECT_EQ(plain.weights.prediction, WeightPolicy::Prediction::kNone);
  EXPECT_EQ(plain.weights.estimate_buffers, 0);
  EXPECT_THAT(Verdict(plain, Interpreted(plain)),
              EndsWith("F and B disagree by up to 2 updates"));
}

// In PipeDream's order, about half as many updates lie between a forward and
// its backward, and none on the last stage.
TEST(PipeMareTest, OneFOneBOrderHasPipeDreamsTraceAndHalfTheDelay) {
  const Schedule schedule = Generated("pipemare:order=1f1b", {4, 8, 1, 4});
  EXPECT_EQ(schedule.rank_actions,
            Generated("pipedream", {4, 8, 1, 4}).rank_actions);
  for (const StageSemantics& stage : Summary(schedule)) {
    EXPECT_NEAR(stage.mean_staleness, (3 - stage.stage) / 8.0, 1e-9);
    EXPECT_NEAR(stage.mean_predicted_disagreement, 0, 1e-9);
  }
}

// Chen et al., 2018: s_F = floor(g/2) + N-g-1, s_B = floor(g/2) on GPU g of N.
TEST(SpecTrainTest, ForwardAndBackwardPredictTheSameVersion) {
  for (int n = 1; n <= 9; ++n) {
    const Schedule schedule = Generated("spectrain", {n, n, 1, 4});
    const Semantics semantics = Interpreted(schedule);
    EXPECT_THAT(semantics.max_live_versions, Each(1));
    for (int g = 0; g < n; ++g) {
      EXPECT_EQ(schedule.weights.forward_distance[g], g / 2 + n - g - 1);
      EXPECT_EQ(schedule.weights.backward_distance[g], g / 2);
      // Starts with the first microbatch whose delay is not shortened by the
      // start.
      for (int k = n - 1 - g; k < 4 * n; ++k) {
        const VersionUse& use = semantics.uses[g][k];
        ASSERT_EQ(use.forward_version, k - (n - 1 - g));
        ASSERT_EQ(use.backward_version, k);
        ASSERT_EQ(PredictedForward(schedule, g, use), k + g / 2);
        ASSERT_EQ(PredictedBackward(schedule, g, use), k + g / 2);
      }
    }
    EXPECT_EQ(schedule.weights.prediction,
              WeightPolicy::Prediction::kForwardAndBackward);
    EXPECT_EQ(schedule.weights.predicted_copies, 1);
  }
  const Schedule schedule = Generated("spectrain", {4, 4, 1, 4});
  EXPECT_THAT(Verdict(schedule, Interpreted(schedule)),
              EndsWith("; F and B disagree by up to 3 updates; after "
                       "prediction F and B agree"));
}

TEST(XPipeTest, AMinibatchReadsOneVersionAndUpdatesOnce) {
  for (int p = 1; p <= 7; ++p) {
    for (int t : {1, 2, 3, 4, 9}) {
      SCOPED_TRACE(absl::StrCat("p ", p, " T ", t));
      const Schedule schedule = Generated("xpipe", {p, t, 1, 2 * p + 4});
      const Semantics semantics = Interpreted(schedule);
      EXPECT_EQ(schedule.weights.prediction,
                WeightPolicy::Prediction::kFirstForwardOfUpdate);
      EXPECT_EQ(schedule.weights.predicted_copies, 1);
      for (int g = 0; g < p; ++g) {
        EXPECT_EQ(semantics.update_positions[g].size(),
                  static_cast<size_t>(2 * p + 4));
        const int delay = (p - 1 - g + t - 1) / t;
        for (int k = 0; k < t * (2 * p + 4); ++k) {
          const VersionUse& use = semantics.uses[g][k];
          ASSERT_EQ(use.update, k / t);
          ASSERT_EQ(use.forward_version, std::max(k / t - delay, 0));
          ASSERT_EQ(use.backward_version, use.forward_version);
        }
        EXPECT_EQ(semantics.max_live_versions[g], delay + 1);
      }
    }
  }
}

// Guan et al., 2019, section 3: s is the number of updates until the T-th
// microbatch ends on GPU 0. The paper rounds the quotient (N+T-2-ceil(g/2))/T;
// weir uses the integer that follows from the order.
TEST(XPipeTest, DistanceIsThePublishedOneUpToItsRounding) {
  for (int n = 1; n <= 9; ++n) {
    for (int t : {1, 2, 3, 4, 8, 20}) {
      const Schedule schedule = Generated("xpipe", {n, t, 1, 4});
      for (int g = 0; g < n; ++g) {
        const int passes = n + t - 2 - (g + 1) / 2;
        const double quotient = passes / double(t);
        const double s = schedule.weights.forward_distance[g];
        EXPECT_LT(std::abs(s - quotient), 1) << n << " " << t << " " << g;
        if (t == 1) {
          EXPECT_EQ(s, quotient);
        }
        EXPECT_EQ(s, schedule.weights.backward_distance[g]);
      }
    }
  }
}

// The predicted version is the one that the stage has when rank 0 starts the
// last backward of the minibatch, with unit times for F and B: floor(g/2)
// backwards after the stage's own.
TEST(XPipeTest, AimsAtTheEndOfTheMinibatchOnRankZero) {
  for (int n = 1; n <= 8; ++n) {
    for (int t : {1, 2, 3, 5, 8}) {
      const Schedule schedule = Generated("xpipe", {n, t, 1, 2 * n + 6});
      const Semantics semantics = Interpreted(schedule);
      for (int g = 0; g < n; ++g) {
        const int first = (n + 2) * t;
        const VersionUse& use = semantics.uses[g][first];
        const int last = first + t - 1;
        EXPECT_EQ(PredictedForward(schedule, g, use), (last + g / 2) / t);
      }
    }
  }
}

// Kosson et al., 2021, section 3: D_s = 2(S-1-s).
TEST(PipelinedBackpropTest, DelayIsTwiceTheDistanceToTheLastStage) {
  for (int stages = 1; stages <= 9; ++stages) {
    const Schedule schedule =
        Generated("pipelined-backprop", {stages, 3 * stages, 1, 2});
    const Semantics semantics = Interpreted(schedule);
    EXPECT_THAT(semantics.max_live_versions, Each(1));
    for (int s = 0; s < stages; ++s) {
      EXPECT_EQ(semantics.update_positions[s].size(), size_t(6 * stages));
      for (int k = 0; k < 6 * stages; ++k) {
        const VersionUse& use = semantics.uses[s][k];
        ASSERT_EQ(use.staleness(), std::min(k, 2 * (stages - 1 - s)));
        ASSERT_EQ(use.backward_version, k);
      }
    }
  }
  const Schedule schedule = Generated("pb", {4, 8, 1, 3});
  EXPECT_EQ(Verdict(schedule, Interpreted(schedule)),
            "stage-dependent delay 2(p-1-s): w(t+1) = w(t) - eta grad "
            "f(w_0(t-6), ..., w_3(t); w(t)); F and B disagree by up to 6 "
            "updates");
}

TEST(PipelinedBackpropTest, LinearPredictionAimsAtWhatTheBackwardReads) {
  const Schedule schedule =
      Generated("pb:mitigation=linear-prediction", {5, 10, 1, 3});
  EXPECT_EQ(schedule.weights.prediction, WeightPolicy::Prediction::kForward);
  EXPECT_EQ(schedule.weights.predicted_copies, 1);
  for (const StageSemantics& stage : Summary(schedule)) {
    EXPECT_EQ(stage.forward_distance, 2 * (4 - stage.stage));
    EXPECT_EQ(stage.max_predicted_disagreement, 0);
  }
}

TEST(PipelinedBackpropTest, SpikeCompensationCostsNeitherTimeNorMemory) {
  const Schedule plain = Generated("pb", {4, 8, 1, 3});
  const Schedule spike =
      Generated("pb:mitigation=spike-compensation", {4, 8, 1, 3});
  EXPECT_EQ(spike.rank_actions, plain.rank_actions);
  EXPECT_EQ(spike.weights, plain.weights);
}

// Dutta et al., 2024: N forwards, and one backward of all N with the newest
// weights, one version and no stash. The version difference depends on W and N:
// here ceil((W-1-s)/N), which is PipeDream's for N = 1.
TEST(TiMePReStTest, BackwardReadsTheNewestAndTheDifferenceShrinksWithN) {
  for (int w = 1; w <= 7; ++w) {
    for (int n : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE(absl::StrCat("W ", w, " N ", n));
      const Schedule schedule = Generated("timeprest", {w, n, 1, w + 3});
      const Semantics semantics = Interpreted(schedule);
      EXPECT_THAT(semantics.max_live_versions, Each(1));
      for (int s = 0; s < w; ++s) {
        int difference = 0;
        for (int k = 0; k < n * (w + 3); ++k) {
          const VersionUse& use = semantics.uses[s][k];
          ASSERT_EQ(use.backward_version, k / n);
          difference = std::max(difference, use.disagreement());
        }
        EXPECT_EQ(difference, (w - 1 - s + n - 1) / n);
        int num_backwards = 0;
        for (const Action& action : schedule.rank_actions[s]) {
          num_backwards += action.op == Op::kBackward ? 1 : 0;
          ASSERT_EQ(action.num_microbatches,
                    action.op == Op::kBackward ? n : 1);
        }
        EXPECT_EQ(num_backwards, w + 3);
        EXPECT_EQ(InFlight(schedule, s), std::min(n + w - 1 - s, n * (w + 3)));
      }
    }
  }
}

TEST(TiMePReStTest, OneMicrobatchIsPipeDreamWithoutStash) {
  EXPECT_EQ(Generated("timeprest", {5, 1, 1, 20}).rank_actions,
            Generated("pipedream", {5, 1, 1, 20}).rank_actions);
}

TEST(TiMePReStTest, AMinibatchAheadHasPipeDreamsDelayAndThroughput) {
  const Schedule schedule =
      Generated("timeprest:ahead=minibatch", {4, 3, 1, 8});
  for (const StageSemantics& stage : Summary(schedule)) {
    EXPECT_EQ(stage.max_disagreement, 3 - stage.stage);
  }
  EXPECT_NEAR(SteadySeconds("timeprest:ahead=minibatch", {4, 3}), 9, 1e-9);
  // With one microbatch in advance, a stage waits while the next stage runs the
  // backward.
  EXPECT_GT(SteadySeconds("timeprest", {4, 3}), 9 + 1);
}

TEST(AsynchronousTest, SteadyStateIsOneMicrobatchPerSlowestStage) {
  for (absl::string_view name :
       {"pipedream", "pipedream:vertical-sync=yes", "pipedream-2bw", "pipemare",
        "pipemare:order=1f1b", "spectrain", "xpipe", "pipelined-backprop",
        "pipelined-backprop:mitigation=linear-prediction"}) {
    for (int p : {1, 2, 4, 7}) {
      const int m = 8;
      EXPECT_NEAR(SteadySeconds(name, {p, m}), 3.0 * m, 1e-9)
          << name << " p " << p;
    }
  }
}

TEST(EdgePipeTest, RunsForwardsOnlyAsFastAsTheSlowestStage) {
  const Schedule schedule = Generated("edgepipe", {3, 10, 1, 2});
  EXPECT_TRUE(schedule.forward_only);
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    ASSERT_EQ(actions.size(), 20u);
    for (const Action& action : actions) ASSERT_EQ(action.op, Op::kForward);
  }
  PassCosts costs;
  costs.stages.resize(3);
  costs.stages[0].forward = 0.5;
  costs.stages[1].forward = 2;
  costs.stages[2].forward = 1;
  costs.hop = 0.25;
  EXPECT_NEAR(TimedWalk(schedule, costs).makespan(),
              0.5 + 0.25 + 20 * 2 + 0.25 + 1, 1e-9);
  const Semantics semantics = Interpreted(schedule);
  EXPECT_EQ(Verdict(schedule, semantics), "inference: no gradient, no update");
  EXPECT_EQ(UpdateRule(schedule, semantics), "none");
  EXPECT_THAT(semantics.update_positions, Each(ElementsAre()));
  EXPECT_THAT(semantics.max_staleness, Each(0));
}

TEST(AccEPTTest, IsOneFOneBWithCompressedTransfers) {
  const Schedule schedule = Generated("accept", {4, 8});
  EXPECT_EQ(schedule.rank_actions, Generated("1f1b", {4, 8}).rank_actions);
  EXPECT_TRUE(schedule.compressed_transfers);
  EXPECT_TRUE(schedule.flush);
  EXPECT_EQ(Verdict(schedule, Interpreted(schedule)), "equal to minibatch SGD");
}

TEST(AsynchronousTest, TooFewBatchesAreAdmitted) {
  const Schedule schedule = Generated("pipemare", {4, 2, 1, 3});
  EXPECT_THAT(Verdict(schedule, Interpreted(schedule)),
              EndsWith("; too few batches to leave the start-up phase"));
}

}  // namespace weir::schedules::asynchronous_test
