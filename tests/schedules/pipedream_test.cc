// SPDX-License-Identifier: Apache-2.0
// Compares PipeDream, also with replicated stages, with the versions and the
// numbers of microbatches in flight of its paper and its artifact.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/semantics.h"
#include "schedules/walk.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::pipedream_test {

using testing::Each;
using testing::HasSubstr;

// Narayanan et al., 2019, section 3.3: every stage reads w^(t-p+1).
TEST(PipeDreamTest, VerticalSyncReadsStageZerosVersionEverywhere) {
  for (int p = 2; p <= 6; ++p) {
    const Schedule schedule =
        Generated("pipedream:vertical-sync=yes", {p, p, 1, 6});
    const Semantics semantics = Interpreted(schedule);
    for (int stage = 0; stage < p; ++stage) {
      for (int k = 0; k < 6 * p; ++k) {
        const VersionUse& use = semantics.uses[stage][k];
        ASSERT_EQ(use.forward_version, std::max(k - p + 1, 0));
        ASSERT_EQ(use.backward_version, use.forward_version);
      }
    }
    // No stage may drop a version that stage 0 will read, so all hold p
    // versions.
    EXPECT_THAT(semantics.max_live_versions, Each(p));
    EXPECT_EQ(
        Verdict(schedule, semantics),
        absl::StrCat(
            "delay ", p - 1, ", constant: w(t+1) = w(t) - eta grad f(w(t-",
            p - 1,
            ")); vertical sync: all stages read the same version as stage 0"));
  }
}

// Calls check(schedule, replicas, first rank of each stage).
template <typename Check>
void ForAllReplicas(const Check& check) {
  for (const std::vector<int>& replicas :
       std::vector<std::vector<int>>{{2, 1},
                                     {3, 1},
                                     {1, 2},
                                     {2, 2},
                                     {3, 2},
                                     {2, 3},
                                     {15, 1},
                                     {1, 1, 2},
                                     {2, 1, 1},
                                     {4, 2, 1},
                                     {3, 2, 1, 1},
                                     {1, 4, 1}}) {
    std::vector<int> first = {0};
    std::string text;
    for (int count : replicas) {
      first.push_back(first.back() + count);
      absl::StrAppend(&text, text.empty() ? "" : "-", count);
    }
    SCOPED_TRACE(text);
    const Schedule schedule = Generated(
        absl::StrCat("pipedream:replicas=", text), {first.back(), 60, 1, 2});
    check(schedule, replicas, first);
  }
}

TEST(PipeDreamTest, MicrobatchKIsOnReplicaKModR) {
  ForAllReplicas([](const Schedule& schedule, const std::vector<int>& replicas,
                    const std::vector<int>& first) {
    ASSERT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
    for (size_t stage = 0; stage < replicas.size(); ++stage) {
      for (int k = 0; k < schedule.total_microbatches(); ++k) {
        ASSERT_EQ(schedule.rank_of(stage, k),
                  first[stage] + k % replicas[stage]);
      }
      EXPECT_EQ(schedule.RanksOf(stage).size(),
                static_cast<size_t>(replicas[stage]));
    }
  });
}

// warmup(s) = (N_ranks - 1 - sum of r_i before s) // r_s in the runtime of
// PipeDream's artifact; a stage keeps warmup(s) + 1 versions.
TEST(PipeDreamTest, AReplicaHoldsAVersionForEachOfItsMicrobatchesInFlight) {
  ForAllReplicas([](const Schedule& schedule, const std::vector<int>& replicas,
                    const std::vector<int>& first) {
    const Semantics semantics = Interpreted(schedule);
    for (size_t stage = 0; stage < replicas.size(); ++stage) {
      const int warmup =
          (schedule.num_ranks - 1 - first[stage]) / replicas[stage];
      EXPECT_EQ(semantics.max_live_versions[stage], warmup + 1);
      EXPECT_EQ(semantics.max_staleness[stage], warmup);
      for (int rank : schedule.RanksOf(stage)) {
        EXPECT_EQ(InFlight(schedule, rank), warmup + 1);
      }
    }
  });
}

// NOAM, the number of minibatches that keep the pipeline full, for each input
// replica: ceil(workers / replicas of the input stage).
TEST(PipeDreamTest, EachInputReplicaAdmitsNoam) {
  ForAllReplicas([](const Schedule& schedule, const std::vector<int>& replicas,
                    const std::vector<int>&) {
    const int noam = (schedule.num_ranks + replicas[0] - 1) / replicas[0];
    for (int rank = 0; rank < replicas[0]; ++rank) {
      EXPECT_EQ(InFlight(schedule, rank), noam);
    }
  });
}

TEST(PipeDreamTest, ReplicasUpdateTogetherAfterOneGradientEach) {
  ForAllReplicas([](const Schedule& schedule, const std::vector<int>& replicas,
                    const std::vector<int>&) {
    const Semantics semantics = Interpreted(schedule);
    for (size_t stage = 0; stage < replicas.size(); ++stage) {
      const int total = schedule.total_microbatches();
      for (int k = 0; k < total; ++k) {
        ASSERT_EQ(semantics.uses[stage][k].update, k / replicas[stage]);
      }
      for (int rank : schedule.RanksOf(stage)) {
        EXPECT_EQ(semantics.update_positions[rank].size(),
                  static_cast<size_t>(total / replicas[stage]));
      }
    }
  });
}

// A stage with r replicas that takes r times as long does not slow the others.
TEST(PipeDreamTest, ReplicasDivideTheTimeOfTheirStage) {
  for (int r : {2, 3, 4}) {
    PassCosts costs;
    costs.stages.resize(2);
    costs.stages[0].forward = r;
    costs.stages[0].backward_input = r;
    costs.stages[0].backward_weight = r;
    const auto makespan = [&](int batches) {
      return TimedWalk(Generated(absl::StrCat("pipedream:replicas=", r, "-1"),
                                 {r + 1, 12, 1, batches}),
                       costs)
          .makespan();
    };
    EXPECT_NEAR(makespan(20) - makespan(10), 10 * 12 * 3, 1e-9) << r;
  }
}

TEST(PipeDreamTest, RefusesReplicasThatCannotBe) {
  const auto error = [](absl::string_view name, const ScheduleSpec& spec) {
    return std::string(GenerateSchedule(name, spec).status().message());
  };
  EXPECT_THAT(error("pipedream:replicas=3-1", {3, 4}),
              HasSubstr("replicas is 3-1, which sums to 4 ranks, expected 3 "
                        "(pipeline)"));
  EXPECT_THAT(error("pipedream:replicas=3-x", {4, 4}),
              HasSubstr("replicas is '3-x', expected numbers from 1 to 100000 "
                        "joined by '-'"));
  EXPECT_THAT(error("pipedream:replicas=3-0-1", {4, 4}),
              HasSubstr("replicas is '3-0-1'"));
  EXPECT_THAT(error("pipedream:replicas=3-1", {4, 2}),
              HasSubstr("replicas gives a stage 3 ranks, expected at most one "
                        "for each of the 2 microbatches"));
  EXPECT_THAT(error("pipedream:replicas=3-1:vertical-sync=yes", {4, 8}),
              HasSubstr("vertical-sync is yes, expected no"));
  EXPECT_THAT(error("pipedream:replicas=97-101-103", {301, 400}),
              HasSubstr("more than 10000 combinations"));
  EXPECT_TRUE(
      GenerateSchedule("pipedream:replicas=2-2:vertical-sync=yes", {4, 8})
          .ok());
}

}  // namespace weir::schedules::pipedream_test
