// SPDX-License-Identifier: Apache-2.0
// Checks that clocks of workers are repaired: runs whose clocks were moved by
// random times become the true ones again.
#include "results/import/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "results/import/import_trace.h"
#include "results/import/messages.h"
#include "results/import/run_result.h"
#include "tests/results/import/same_times.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::clocks_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

SampleShape Shape() {
  SampleShape shape;
  shape.num_ranks = 4;
  shape.num_microbatches = 5;
  // Replica 1 is slower, so that replica 0 waits for it in reductions.
  shape.factor = [](const RecordedOperation& o) {
    return (o.replica == 1 ? 1.5 : 1.0) + 0.01 * (o.step % 3);
  };
  return shape;
}

enum class Records { kMessages, kPassesOnly };

RecordedRun RunOf(const SampleShape& shape, Records records,
                  const std::vector<RecordedOperation>& operations) {
  RecordedRun run;
  run.label = "trace";
  run.format = "sample";
  run.num_replicas = shape.num_replicas;
  run.num_ranks = run.num_stages = shape.num_ranks;
  for (const RecordedOperation& o : operations) {
    if (records == Records::kPassesOnly && IsMessage(o.kind)) continue;
    run.operations.push_back(o);
  }
  return run;
}

// Adds seconds to the times of an operation.
using Ahead = std::function<double(const RecordedOperation&)>;

std::vector<RecordedOperation> Moved(std::vector<RecordedOperation> operations,
                                     const Ahead& ahead) {
  for (RecordedOperation& o : operations) {
    const double seconds = ahead(o);
    o.start_seconds += seconds;
    o.end_seconds += seconds;
  }
  return operations;
}

// Returns offsets of [worker], all farther apart than transfers can hide.
std::vector<double> RandomOffsets(int count, std::mt19937* random) {
  std::uniform_real_distribution<double> jitter(-1, 1);
  std::vector<double> offsets;
  for (int i = 0; i < count; ++i) offsets.push_back(50 * i + jitter(*random));
  std::shuffle(offsets.begin(), offsets.end(), *random);
  return offsets;
}

void ExpectSame(const RecordedRun& run, const RecordedRun& truth) {
  ExpectSameTimes(run, truth);
  const auto steps = StepsOf(run), true_steps = StepsOf(truth);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_NEAR(steps[i].seconds(), true_steps[i].seconds(), 1e-9);
    const auto transfers = TransferSeconds(steps[i], GroupsOf(steps[i]));
    const auto true_transfers =
        TransferSeconds(true_steps[i], GroupsOf(true_steps[i]));
    for (size_t j = 0; j < transfers.size(); ++j) {
      EXPECT_NEAR(transfers[j], true_transfers[j], 1e-9);
    }
  }
}

TEST(ClocksTest, ConsistentRunsAreUnchangedToTheBit) {
  const SampleShape shape = Shape();
  for (const Records records : {Records::kMessages, Records::kPassesOnly}) {
    RecordedRun run = RunOf(shape, records, SampleOperations(shape));
    ASSERT_TRUE(CleanRun(&run).ok());
    const RecordedRun before = run;
    ASSERT_TRUE(RepairClocks(&run).ok());
    EXPECT_THAT(run.notes, IsEmpty());
    for (size_t i = 0; i < run.operations.size(); ++i) {
      const RecordedOperation& a = run.operations[i];
      const RecordedOperation& b = before.operations[i];
      EXPECT_EQ(std::bit_cast<uint64_t>(a.start_seconds),
                std::bit_cast<uint64_t>(b.start_seconds));
      EXPECT_EQ(std::bit_cast<uint64_t>(a.end_seconds),
                std::bit_cast<uint64_t>(b.end_seconds));
    }
  }
}

// Transfers take as long in both directions, so that the middle is exact.
TEST(ClocksTest, MovedClocksAreFoundExactly) {
  std::mt19937 random(3);
  const SampleShape shape = Shape();
  const auto operations = SampleOperations(shape);
  for (const Records records : {Records::kMessages, Records::kPassesOnly}) {
    RecordedRun truth = RunOf(shape, records, operations);
    ASSERT_TRUE(CleanRun(&truth).ok());
    for (int trial = 0; trial < 10; ++trial) {
      const auto offsets =
          RandomOffsets(shape.num_replicas * shape.num_ranks, &random);
      RecordedRun run = RunOf(
          shape, records, Moved(operations, [&](const RecordedOperation& o) {
            return offsets[o.replica * shape.num_ranks + o.rank];
          }));
      const absl::Status status = CleanRun(&run);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_THAT(run.notes,
                  ElementsAre(AllOf(HasSubstr("clocks of the workers differ"),
                                    HasSubstr("in all steps"))));
      ExpectSame(run, truth);
    }
  }
}

TEST(ClocksTest, OnlyTheWorkerThatDiffersIsMoved) {
  const SampleShape shape = Shape();
  const auto operations = SampleOperations(shape);
  RecordedRun truth = RunOf(shape, Records::kPassesOnly, operations);
  ASSERT_TRUE(CleanRun(&truth).ok());
  RecordedRun run =
      RunOf(shape, Records::kPassesOnly, Moved(operations, [](const auto& o) {
              return o.replica == 1 && o.rank == 2 ? 0.75 : 0.0;
            }));
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(
      run.notes,
      ElementsAre(AllOf(
          HasSubstr("passes start up to 500 ms before the stage before them "
                    "ends the microbatch"),
          HasSubstr("All times are moved in all steps by -750 ms (pipeline "
                    "rank 2 of replica 1). "),
          HasSubstr("moves are within 25.0 ms of the true ones"))));
  ExpectSame(run, truth);
}

// A replica has only collectives with the other one.
TEST(ClocksTest, AReplicaIsMovedByItsCollectives) {
  const SampleShape shape = Shape();
  const auto operations = SampleOperations(shape);
  RecordedRun truth = RunOf(shape, Records::kMessages, operations);
  ASSERT_TRUE(CleanRun(&truth).ok());
  RecordedRun run =
      RunOf(shape, Records::kMessages, Moved(operations, [](const auto& o) {
              return o.replica == 1 ? -3.0 : 0.0;
            }));
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(
      run.notes,
      ElementsAre(AllOf(HasSubstr("collectives end up to"),
                        HasSubstr("by +3 s (pipeline rank 0 of replica 1, "))));
  ExpectSame(run, truth);
}

// A clock that is wrong by another time in each step.
TEST(ClocksTest, DriftIsRepairedStepByStep) {
  const SampleShape shape = Shape();
  const auto operations = SampleOperations(shape);
  for (const Records records : {Records::kMessages, Records::kPassesOnly}) {
    RecordedRun truth = RunOf(shape, records, operations);
    ASSERT_TRUE(CleanRun(&truth).ok());
    RecordedRun run =
        RunOf(shape, records, Moved(operations, [](const auto& o) {
                return o.rank == 1 && o.replica == 0 ? 0.1 * o.step : 0.0;
              }));
    ASSERT_TRUE(CleanRun(&run).ok());
    EXPECT_THAT(run.notes,
                ElementsAre(HasSubstr("All times are moved within each step by "
                                      "-3 s to -1 s (pipeline rank 1 of "
                                      "replica 0)")));
    ExpectSame(run, truth);
  }
}

// Within a step the clock of rank 1 runs 10 % fast.
TEST(ClocksTest, ContradictionsAreRefusedUnlessTimesAreThoseOfLaunches) {
  SampleShape shape = Shape();
  shape.message_seconds = 0.01;
  auto operations = SampleOperations(shape);
  for (RecordedOperation& o : operations) {
    if (o.rank != 1) continue;
    o.start_seconds *= 0.9;
    o.end_seconds *= 0.9;
  }
  RecordedRun run = RunOf(shape, Records::kPassesOnly, operations);
  RecordedRun launches = run;
  EXPECT_THAT(
      std::string(CleanRun(&run).message()),
      AllOf(HasSubstr("trace: passes start up to"),
            HasSubstr("cannot be repaired: in step 10, each of pipeline rank"),
            HasSubstr("too early. Expected times of clocks")));
  launches.has_early_passes = true;
  ASSERT_TRUE(CleanRun(&launches).ok());
  EXPECT_THAT(launches.notes,
              ElementsAre(HasSubstr("or the times are those of launches")));
}

TEST(ClocksTest, ManyWorkersAreRefusedOnlyIfTheirClocksDiffer) {
  SampleShape shape;
  shape.num_replicas = 600;
  shape.num_microbatches = 1;
  shape.num_steps = 1;
  const auto operations = SampleOperations(shape);
  RecordedRun run = RunOf(shape, Records::kMessages, operations);
  EXPECT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(run.notes, IsEmpty());
  run = RunOf(shape, Records::kMessages, Moved(operations, [](const auto& o) {
                return o.rank == 1 ? 9.0 : 0.0;
              }));
  EXPECT_THAT(std::string(CleanRun(&run).message()),
              HasSubstr("has 1200 workers, and clocks of at most 1024"));
}

// Real transfers are not equally long, and clocks of real workers already
// differ a little.
TEST(ClocksTest, PublishedRunsAreRepairedAlmostExactly) {
  const char* data = std::getenv("WEIR_DATA");
  const std::string folder = absl::StrCat(data ? data : "", "/stragglers/");
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "needs the folder stragglers in $WEIR_DATA";
  }
  std::mt19937 random(17);
  for (const std::string name : {"trace-ST.csv.gz", "trace-AR.csv.gz"}) {
    const auto truth = ImportTrace({folder + name});
    ASSERT_TRUE(truth.ok()) << truth.status();
    RecordedRun same = *truth;
    ASSERT_TRUE(RepairClocks(&same).ok());
    EXPECT_EQ(same.notes, truth->notes);
    const auto offsets =
        RandomOffsets(truth->num_replicas * truth->num_ranks, &random);
    RecordedRun run = *truth;
    run.operations = Moved(run.operations, [&](const RecordedOperation& o) {
      return offsets[o.replica * run.num_ranks + o.rank];
    });
    ASSERT_TRUE(CleanRun(&run).ok());
    EXPECT_EQ(run.notes.size(), truth->notes.size() + 1);
    const auto steps = StepsOf(run), true_steps = StepsOf(*truth);
    ASSERT_EQ(steps.size(), true_steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_NEAR(steps[i].seconds() / true_steps[i].seconds(), 1, 1e-4)
          << name << steps[i].step;
    }
  }
}

// The tables of all readers go through the repair.
TEST(ClocksTest, ResultsHaveTheNote) {
  const SampleShape shape = Shape();
  const auto run = ImportTraceText(
      "a", SampleCsv(Moved(SampleOperations(shape), [](const auto& o) {
        return o.rank == 3 ? -8.0 : 0.0;
      })));
  ASSERT_TRUE(run.ok()) << run.status();
  const auto truth = ImportTraceText("a", SampleCsv(SampleOperations(shape)));
  ASSERT_TRUE(truth.ok()) << truth.status();
  ExpectSame(*run, *truth);
  const Result result = ResultOfStep(*run, 1);
  EXPECT_NEAR(result.batch_seconds(), ResultOfStep(*truth, 1).batch_seconds(),
              1e-9);
  ASSERT_EQ(result.warnings_size(), 1);
  EXPECT_THAT(result.warnings(0),
              AllOf(HasSubstr("messages arrive up to"),
                    HasSubstr("by +8 s (pipeline rank 3 of replica 0, "
                              "pipeline rank 3 of replica 1)"),
                    Not(HasSubstr("nan"))));
  ASSERT_EQ(result.replay().clock_shifts_size(), 2);
  for (const weir::ClockShift& shift : result.replay().clock_shifts()) {
    EXPECT_EQ(shift.pipeline_rank(), 3);
    EXPECT_EQ(shift.gpu(), 4 * shift.replica() + 3);
    EXPECT_NEAR(shift.least_seconds(), 8, 1e-9);
    EXPECT_NEAR(shift.most_seconds(), 8, 1e-9);
  }
}

// Passes limit the clocks in the direction in which no messages are recorded.
TEST(ClocksTest, PassesAndMessagesLimitTogether) {
  const SampleShape shape = Shape();
  std::vector<RecordedOperation> operations = SampleOperations(shape);
  std::erase_if(operations, [](const RecordedOperation& o) {
    return o.kind == RecordedKind::kSendBackward ||
           o.kind == RecordedKind::kReceiveBackward;
  });
  RecordedRun truth = RunOf(shape, Records::kMessages, operations);
  ASSERT_TRUE(CleanRun(&truth).ok());
  for (const double ahead : {0.75, -0.75}) {
    RecordedRun run =
        RunOf(shape, Records::kMessages, Moved(operations, [&](const auto& o) {
                return o.rank == 2 ? ahead : 0.0;
              }));
    ASSERT_TRUE(CleanRun(&run).ok());
    EXPECT_THAT(run.notes, ElementsAre(HasSubstr("clocks of the workers")));
    ExpectSame(run, truth);
  }
}

TEST(ClocksTest, PassesThatContradictTheirMessagesAreRefused) {
  const SampleShape shape = Shape();
  RecordedRun run =
      RunOf(shape, Records::kMessages,
            Moved(SampleOperations(shape), [](const RecordedOperation& o) {
              return o.rank == 1 && IsPass(o.kind) ? 0.6 : 0.0;
            }));
  EXPECT_THAT(std::string(CleanRun(&run).message()),
              HasSubstr("passes start up to 350 ms before the stage before"));
}

// Values are sorted as numbers; the result has those that the text leaves out.
TEST(ClocksTest, TheResultHasAllMoves) {
  const SampleShape shape = Shape();
  const auto ahead = [](const RecordedOperation& o) {
    return 100.0 * (o.replica * 4 + o.rank) - 250;
  };
  RecordedRun run =
      RunOf(shape, Records::kMessages, Moved(SampleOperations(shape), ahead));
  ASSERT_TRUE(CleanRun(&run).ok());
  EXPECT_THAT(
      run.notes,
      ElementsAre(HasSubstr(
          "by -700 s (pipeline rank 3 of replica 1), -600 s (pipeline rank 2 "
          "of replica 1), -500 s (pipeline rank 1 of replica 1), -400 s "
          "(pipeline rank 0 of replica 1), -300 s (pipeline rank 3 of replica "
          "0), other times (2 workers); replay.clock_shifts of the JSON has "
          "all")));
  const Result result = ResultOfStep(run, 0);
  ASSERT_EQ(result.replay().clock_shifts_size(), 7);
  for (int i = 0; i < 7; ++i) {
    const weir::ClockShift& shift = result.replay().clock_shifts(i);
    EXPECT_EQ(shift.gpu(), i + 1);
    EXPECT_NEAR(shift.least_seconds(), -100 * (i + 1), 1e-9);
  }
}

}  // namespace
}  // namespace weir::results::clocks_test
