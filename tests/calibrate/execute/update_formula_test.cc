// SPDX-License-Identifier: Apache-2.0
// Compares the formulas with lists written out by hand from the papers'
// figures, and with the version tables that schedules/ derives from orders of
// actions. The two derivations are independent.
#include "calibrate/execute/update_formula.h"

#include <gmock/gmock.h>

#include "calibrate/execute/execution_plan.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/stage_semantics.h"

namespace weir::calibrate::update_formula_test {

using Versions = std::vector<int>;

UpdateFormula Known(absl::string_view name, FormulaShape shape) {
  auto formula = FormulaOf(name, shape);
  EXPECT_TRUE(formula.ok()) << formula.status();
  return formula.ok() ? *formula : UpdateFormula();
}

Versions ForwardOf(const UpdateFormula& formula, int stage, int count) {
  Versions versions;
  for (int k = 0; k < count; ++k) {
    versions.push_back(formula.forward(stage, k).version);
  }
  return versions;
}

Versions BackwardOf(const UpdateFormula& formula, int stage, int count) {
  Versions versions;
  for (int k = 0; k < count; ++k) {
    versions.push_back(formula.backward(stage, k).version);
  }
  return versions;
}

// Figure 4 of the paper, with four workers: all microbatches in flight read the
// first version.
TEST(UpdateFormulaTest, PipeDream) {
  const UpdateFormula formula = Known("pipedream", {4, 1});
  EXPECT_EQ(ForwardOf(formula, 0, 6), (Versions{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(ForwardOf(formula, 1, 6), (Versions{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(ForwardOf(formula, 3, 6), (Versions{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(BackwardOf(formula, 0, 6), ForwardOf(formula, 0, 6));
}

TEST(UpdateFormulaTest, PipeDreamWithVerticalSync) {
  const UpdateFormula formula = Known("pipedream:vertical-sync=yes", {4, 1});
  for (const int stage : {0, 3}) {
    EXPECT_EQ(ForwardOf(formula, stage, 6), (Versions{0, 0, 0, 0, 1, 2}));
  }
}

// 2-1: three ranks; a replica admits one microbatch in advance and every second
// microbatch. 15-1 from the artifact: warm-ups of 1 and 0.
TEST(UpdateFormulaTest, PipeDreamWithReplicas) {
  const UpdateFormula formula = Known("pipedream:replicas=2-1", {2, 1});
  EXPECT_EQ(formula.microbatches_per_update, (std::vector<int>{2, 1}));
  EXPECT_EQ(ForwardOf(formula, 0, 8), (Versions{0, 0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(ForwardOf(formula, 1, 4), (Versions{0, 1, 2, 3}));
  const UpdateFormula wide = Known("pipedream:replicas=15-1", {2, 1});
  EXPECT_EQ(wide.forward(0, 150).version, 9);
  EXPECT_EQ(wide.forward(1, 150).version, 150);
}

// Even a single stage reads weights that are one batch old.
TEST(UpdateFormulaTest, TwoBufferedWeightsAreOneVersionOld) {
  for (const int p : {1, 3}) {
    const UpdateFormula formula = Known("2bw", {p, 3});
    for (int stage = 0; stage < p; ++stage) {
      EXPECT_EQ(ForwardOf(formula, stage, 12),
                (Versions{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2}));
    }
  }
}

// tau = (2(p-i)+1)/m: 3/2 for the first of two stages with m = 2, 1/2 for the
// last.
TEST(UpdateFormulaTest, PipeMare) {
  const UpdateFormula formula = Known("pipemare", {2, 2});
  EXPECT_EQ(ForwardOf(formula, 0, 8), (Versions{0, 0, 0, 0, 0, 1, 1, 2}));
  EXPECT_EQ(ForwardOf(formula, 1, 8), (Versions{0, 0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(BackwardOf(formula, 0, 8), (Versions{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_TRUE(formula.by_average);
  EXPECT_EQ(formula.backward(0, 5).distance, -1.5);
  EXPECT_EQ(formula.backward(1, 5).distance, -0.5);
  EXPECT_EQ(formula.forward(0, 5).distance, 0);
  EXPECT_EQ(Known("pipemare:correction=none", {2, 2}).backward(0, 5).distance,
            0);
  EXPECT_EQ(ForwardOf(Known("pipemare:order=1f1b", {2, 2}), 0, 6),
            (Versions{0, 0, 0, 1, 1, 2}));
}

// The mean delay over the microbatches of a whole update is the paper's tau.
TEST(UpdateFormulaTest, PipeMareDelaysByTauInTheMean) {
  for (const int m : {1, 2, 3, 5, 8}) {
    const UpdateFormula formula = Known("pipemare", {4, m});
    for (int stage = 0; stage < 4; ++stage) {
      const int update = 20;
      int delays = 0;
      for (int k = update * m; k < (update + 1) * m; ++k) {
        delays += update - formula.forward(stage, k).version;
      }
      EXPECT_EQ(delays, 2 * (3 - stage) + 1) << "m " << m;
    }
  }
}

// Both passes predict the same version, v + s.
TEST(UpdateFormulaTest, SpecTrain) {
  const UpdateFormula formula = Known("spectrain", {5, 1});
  const int k = 20;
  for (int g = 0; g < 5; ++g) {
    const WeightsRead forward = formula.forward(g, k);
    const WeightsRead backward = formula.backward(g, k);
    EXPECT_EQ(forward.version, k - (4 - g));
    EXPECT_EQ(backward.version, k);
    EXPECT_EQ(forward.version + forward.distance, k + g / 2);
    EXPECT_EQ(backward.version + backward.distance, k + g / 2);
  }
}

// All microbatches of a minibatch read the same version. With T = 1, it is that
// of SpecTrain's forward.
TEST(UpdateFormulaTest, XPipe) {
  const UpdateFormula formula = Known("xpipe", {4, 2});
  EXPECT_EQ(ForwardOf(formula, 0, 8), (Versions{0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(ForwardOf(formula, 2, 8), (Versions{0, 0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(ForwardOf(formula, 3, 8), (Versions{0, 0, 1, 1, 2, 2, 3, 3}));
  // Updates missed plus updates until rank 0's last backward: 2 + 0, 1 + 1, 0 +
  // 1.
  EXPECT_EQ(formula.forward(0, 6).distance, 2);
  EXPECT_EQ(formula.forward(2, 6).distance, 2);
  EXPECT_EQ(formula.forward(3, 6).distance, 1);
  EXPECT_EQ(formula.backward(2, 7).distance, 2);
  const UpdateFormula single = Known("xpipe", {5, 1});
  const UpdateFormula spectrain = Known("spectrain", {5, 1});
  for (int g = 0; g < 5; ++g) {
    EXPECT_EQ(single.forward(g, 20).version, spectrain.forward(g, 20).version);
    EXPECT_EQ(single.forward(g, 20).distance,
              spectrain.forward(g, 20).distance);
  }
}

// D = 2(S-1-s).
TEST(UpdateFormulaTest, PipelinedBackprop) {
  const UpdateFormula formula =
      Known("pb:mitigation=linear-prediction", {3, 1});
  EXPECT_EQ(ForwardOf(formula, 0, 7), (Versions{0, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(ForwardOf(formula, 1, 7), (Versions{0, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(BackwardOf(formula, 0, 4), (Versions{0, 1, 2, 3}));
  EXPECT_EQ(formula.forward(0, 9).distance, 4);
  EXPECT_EQ(formula.backward(0, 9).distance, 0);
  EXPECT_EQ(Known("pb", {3, 1}).forward(0, 9).distance, 0);
}

TEST(UpdateFormulaTest, TiMePReSt) {
  const UpdateFormula formula = Known("timeprest", {3, 2});
  EXPECT_EQ(ForwardOf(formula, 0, 8), (Versions{0, 0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(ForwardOf(formula, 1, 8), (Versions{0, 0, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(BackwardOf(formula, 0, 6), (Versions{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(ForwardOf(Known("timeprest:ahead=minibatch", {3, 2}), 0, 8),
            (Versions{0, 0, 0, 0, 0, 0, 1, 1}));
}

TEST(UpdateFormulaTest, UnknownNames) {
  EXPECT_EQ(FormulaOf("gpipe", {2, 2}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(FormulaOf("mine.csv", {2, 2}).status().code(),
            absl::StatusCode::kNotFound);
}

struct Asynchronous {
  std::string name;
  schedules::ScheduleSpec spec;
};

// Returns every kind without a flush, with every option that changes which
// weights are read.
std::vector<Asynchronous> AllAsynchronous() {
  std::vector<Asynchronous> all;
  for (const int p : {1, 2, 3, 4, 7}) {
    for (const int m : {1, 2, 3, 5, 8}) {
      for (const int batches : {1, 2, 9}) {
        const schedules::ScheduleSpec spec{
            .num_ranks = p, .num_microbatches = m, .num_batches = batches};
        for (const char* name :
             {"pipedream", "pipedream:vertical-sync=yes", "pipemare",
              "pipemare:correction=none", "pipemare:order=1f1b", "spectrain",
              "xpipe", "pb", "pb:mitigation=spike-compensation",
              "pb:mitigation=linear-prediction", "timeprest",
              "timeprest:ahead=minibatch"}) {
          all.push_back({name, spec});
        }
        if (m >= p) all.push_back({"2bw", spec});
        if (m * batches < 8) continue;
        if (p == 3) {
          all.push_back({"pipedream:replicas=2-1", spec});
          all.push_back({"pipedream:replicas=1-2", spec});
        } else if (p == 4) {
          all.push_back({"pipedream:replicas=2-2", spec});
          all.push_back({"pipedream:replicas=3-1", spec});
          all.push_back({"pipedream:replicas=2-2:vertical-sync=yes", spec});
        } else if (p == 7) {
          all.push_back({"pipedream:replicas=3-1-2-1", spec});
        }
      }
    }
  }
  return all;
}

TEST(UpdateFormulaTest, AgreesWithTheTablesOfSchedules) {
  int num_uses = 0;
  for (const auto& [name, spec] : AllAsynchronous()) {
    const auto schedule = schedules::GenerateSchedule(name, spec);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const auto semantics = schedules::InterpretSchedule(*schedule);
    ASSERT_TRUE(semantics.ok()) << semantics.status();
    const UpdateFormula formula =
        Known(name, {schedule->num_stages, schedule->num_microbatches});
    const schedules::Schedule& s = *schedule;
    for (int stage = 0; stage < s.num_stages; ++stage) {
      EXPECT_EQ(formula.microbatches_per_update[stage],
                s.microbatches_per_update(stage));
      for (int k = 0; k < s.total_microbatches(); ++k, ++num_uses) {
        const schedules::VersionUse& use = semantics->uses[stage][k];
        const WeightsRead forward = formula.forward(stage, k);
        const WeightsRead backward = formula.backward(stage, k);
        ASSERT_EQ(forward.version, use.forward_version)
            << name << " p " << spec.num_ranks << " m " << spec.num_microbatches
            << " stage " << stage << " microbatch " << k;
        ASSERT_EQ(backward.version, use.backward_version)
            << name << " p " << spec.num_ranks << " m " << spec.num_microbatches
            << " stage " << stage << " microbatch " << k;
        ASSERT_EQ(forward.version + forward.distance,
                  schedules::PredictedForward(s, stage, use))
            << name;
        ASSERT_EQ(backward.version + backward.distance,
                  schedules::PredictedBackward(s, stage, use))
            << name;
      }
    }
  }
  EXPECT_GT(num_uses, 50'000);
}

}  // namespace weir::calibrate::update_formula_test
