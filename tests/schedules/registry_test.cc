// SPDX-License-Identifier: Apache-2.0
#include "schedules/registry.h"

#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/validate.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::registry_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kHuge = std::numeric_limits<int>::max();

std::string ErrorOf(absl::string_view name, const ScheduleSpec& spec) {
  return std::string(GenerateSchedule(name, spec).status().message());
}

TEST(RegistryTest, FindsByEveryAliasWithoutCaseOrDashes) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    std::vector<absl::string_view> names = kind.aliases;
    names.push_back(kind.name);
    for (absl::string_view name : names) {
      for (const std::string& spelling :
           {std::string(name), absl::AsciiStrToUpper(name),
            absl::StrReplaceAll(name, {{"-", "_"}}),
            absl::StrReplaceAll(name, {{"-", ""}})}) {
        absl::StatusOr<const ScheduleKind*> found = FindScheduleKind(spelling);
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_EQ((*found)->name, kind.name) << spelling;
      }
    }
  }
}

TEST(RegistryTest, KnowsTheNamesOfPyTorchAndMegatron) {
  auto name_of = [](absl::string_view name) {
    return FindScheduleKind(name).value()->name;
  };
  EXPECT_EQ(name_of("GPipe"), "gpipe");
  EXPECT_EQ(name_of("1F1B"), "1f1b");
  EXPECT_EQ(name_of("pipedream-flush"), "1f1b");
  EXPECT_EQ(name_of("PipeDream-Flush"), "1f1b");
  EXPECT_EQ(name_of("Interleaved1F1B"), "interleaved-1f1b");
  EXPECT_EQ(name_of("LoopedBFS"), "breadth-first");
  EXPECT_EQ(name_of("DualPipeV"), "dualpipe-v");
  EXPECT_EQ(name_of("forward_backward_pipelining_without_interleaving"),
            "1f1b");
  EXPECT_EQ(name_of("forward_backward_pipelining_with_interleaving"),
            "interleaved-1f1b");
  EXPECT_EQ(name_of("2BW"), "pipedream-2bw");
  // Class names of PyTorch.
  EXPECT_EQ(name_of("ScheduleGPipe"), "gpipe");
  EXPECT_EQ(name_of("Schedule1F1B"), "1f1b");
  EXPECT_EQ(name_of("ScheduleInterleaved1F1B"), "interleaved-1f1b");
  EXPECT_EQ(name_of("ScheduleLoopedBFS"), "breadth-first");
  EXPECT_EQ(name_of("ScheduleInterleavedZeroBubble"), "interleaved-zb");
  EXPECT_EQ(name_of("ScheduleZBVZeroBubble"), "zb-v");
  EXPECT_EQ(name_of("ScheduleDualPipeV"), "dualpipe-v");
  EXPECT_FALSE(FindScheduleKind("Schedule").ok());
}

TEST(RegistryTest, UnknownNameGetsTheNearestAndTheList) {
  const absl::Status status = FindScheduleKind("pipdream-2bw").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("did you mean pipedream-2bw?"));
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    EXPECT_THAT(status.message(), HasSubstr(std::string(kind.name)));
  }
}

TEST(RegistryTest, EmptyAndEndlessNamesAreOnlyUnknown) {
  for (const std::string& name :
       {std::string(), std::string("-_-"), std::string(1 << 20, 'x'),
        std::string("1f1b\0", 5)}) {
    EXPECT_EQ(FindScheduleKind(name).status().code(),
              absl::StatusCode::kNotFound);
  }
}

TEST(RegistryTest, EveryKindIsValidOnManyShapesAndKeepsItsName) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    int num_legal = 0;
    for (int p : {1, 2, 3, 4, 5, 6, 8}) {
      for (int m : {1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 22}) {
        for (int v : {1, 2, 3}) {
          for (int batches : {1, 3}) {
            const ScheduleSpec spec = {p, m, v, batches};
            if (!kind.check(spec).ok()) continue;
            ++num_legal;
            const Schedule schedule = kind.generate(spec);
            EXPECT_EQ(schedule.name, kind.name);
            EXPECT_EQ(schedule.flush, kind.flush);
            EXPECT_EQ(schedule.num_ranks, p);
            EXPECT_EQ(schedule.num_stages, p * v);
            EXPECT_EQ(schedule.total_microbatches(), m * batches);
            EXPECT_TRUE(ValidateSchedule(schedule).ok())
                << ValidateSchedule(schedule);
          }
        }
      }
    }
    // 2BP's 1F1B kinds accept one number of microbatches per pipeline depth.
    EXPECT_GE(num_legal, 5) << kind.name;
  }
}

TEST(RegistryTest, GPipeRunsBackwardsInReverse) {
  EXPECT_EQ(PrintCsv(Generated("gpipe", {2, 3})),
            "0F0,0F1,0F2,0B2,0B1,0B0\n1F0,1F1,1F2,1B2,1B1,1B0\n");
}

TEST(RegistryTest, OneFOneBWarmsUpByTheDistanceToTheLastRank) {
  EXPECT_EQ(PrintCsv(Generated("1f1b", {3, 4})),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n"
            "1F0,1F1,1B0,1F2,1B1,1F3,1B2,1B3\n"
            "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3\n");
}

TEST(RegistryTest, InterleavedIsMegatronsOrder) {
  EXPECT_EQ(
      PrintCsv(Generated("interleaved-1f1b", {2, 4, 2})),
      "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
      "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
  EXPECT_THAT(Generated("interleaved-1f1b", {2, 4, 2}).routes[0],
              ElementsAre(0, 1, 0, 1));
}

TEST(RegistryTest, InterleavedWithOneGroupRunsAllForwardsFirst) {
  EXPECT_EQ(PrintCsv(Generated("interleaved-1f1b", {2, 2, 2})),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
            "1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1\n");
}

TEST(RegistryTest, AsynchronousKindsAreOneLongOneFOneB) {
  const Schedule flush = Generated("1f1b", {4, 24});
  for (absl::string_view name : {"pipedream", "2bw"}) {
    const Schedule schedule = Generated(name, {4, 8, 1, 3});
    EXPECT_EQ(schedule.rank_actions, flush.rank_actions) << name;
  }
}

TEST(RegistryTest, ChecksReportEverythingUnderTheUsersNames) {
  EXPECT_THAT(ErrorOf("2bw", {100'001, -4, 3, 0}),
              AllOf(HasSubstr("pipeline is 100001, expected 1 to 100000"),
                    HasSubstr("num_microbatches is -4, expected 1 or more"),
                    HasSubstr("num_batches is 0, expected 1 or more"),
                    HasSubstr("chunks is 3, expected 1")));
  EXPECT_THAT(
      ErrorOf("interleaved", {4, 6, 1, 2}),
      AllOf(HasSubstr("num_microbatches is 6, expected a multiple of pipeline, "
                      "which is 4"),
            HasSubstr("chunks is 1, expected 2 or more"),
            HasSubstr("num_batches is 2, expected 1")));
  EXPECT_THAT(ErrorOf("2bw", {4, 3}),
              HasSubstr("num_microbatches is 3, expected at least pipeline, "
                        "which is 4"));
}

TEST(RegistryTest, FlushKindsTakeOneBatchAndOneChunk) {
  for (absl::string_view name : {"gpipe", "1f1b"}) {
    EXPECT_THAT(ErrorOf(name, {2, 4, 2, 2}),
                AllOf(HasSubstr("chunks is 2, expected 1"),
                      HasSubstr("num_batches is 2, expected 1")));
  }
}

TEST(RegistryTest, AbsurdSizesAreRefusedByEveryKind) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    for (const ScheduleSpec& spec :
         {ScheduleSpec{kHuge, kHuge, kHuge, kHuge}, ScheduleSpec{1, kHuge, 2},
          ScheduleSpec{100'000, 200'000, 2}, ScheduleSpec{1, 1, kHuge},
          ScheduleSpec{1, 1, 1, kHuge}, ScheduleSpec{0, 0, 0, 0},
          ScheduleSpec{-kHuge, -kHuge, -kHuge, -kHuge}}) {
      EXPECT_EQ(kind.check(spec).code(), absl::StatusCode::kInvalidArgument)
          << kind.name;
    }
  }
}

TEST(RegistryTest, TooManyActionsSaysHowMany) {
  EXPECT_THAT(
      ErrorOf("1f1b", {100'000, 100'000}),
      AllOf(HasSubstr("result in 2e+10 actions, expected at most 4e+08"),
            Not(HasSubstr("\n"))));
}

}  // namespace weir::schedules::registry_test
