// SPDX-License-Identifier: Apache-2.0
// Checks ranges that name passes: steps, clocks, and what is missing or twice.
#include "results/import/range_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "results/import/import_trace.h"

namespace weir::results::range_trace_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Event {
  std::string name;
  int process = 0;
  double start = 0, duration = 0;  // microseconds
  std::string category = "gpu_user_annotation";
};

constexpr double kStepMicroseconds = 90;

// Three steps of GPipe with two stages and microbatches, each on a process.
std::vector<Event> Gpipe() {
  std::vector<Event> events;
  for (int step = 0; step < 3; ++step) {
    const double start = 100 * step;
    for (const auto& event :
         {Event{"PP:0F0", 0, 0, 10}, Event{"PP:0F1", 0, 10, 10},
          Event{"PP:0B0", 0, 50, 20}, Event{"PP:0B1", 0, 70, 20},
          Event{"PP:1F0", 1, 10, 10}, Event{"PP:1F1", 1, 20, 10},
          Event{"PP:1B0", 1, 30, 20}, Event{"PP:1B1", 1, 50, 20}}) {
      events.push_back(event);
      events.back().start += start;
    }
  }
  return events;
}

std::string Text(const std::vector<Event>& events,
                 const std::string& properties = "") {
  std::vector<std::string> texts;
  for (const Event& event : events) {
    texts.push_back(absl::StrFormat(
        R"({"ph":"X","name":"%s","pid":%d,"ts":%g,"dur":%g,"cat":"%s"})",
        event.name, event.process, event.start, event.duration,
        event.category));
  }
  return absl::StrCat("{", properties, "\"traceEvents\":[",
                      absl::StrJoin(texts, ","), "]}");
}

std::vector<int> StepNumbers(const RecordedRun& run) {
  std::vector<int> numbers;
  for (const RecordedStep& step : StepsOf(run)) {
    numbers.push_back(step.step);
    EXPECT_NEAR(step.seconds(), kStepMicroseconds * 1e-6, 1e-12);
  }
  return numbers;
}

TEST(RangeTraceTest, ACompleteRunHasNoNotes) {
  const auto run = ImportTraceText("a", Text(Gpipe()));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, IsEmpty());
  EXPECT_THAT(StepNumbers(*run), ElementsAre(0, 1, 2));
}

TEST(RangeTraceTest, ClocksThatDifferAreRepairedWithoutMessages) {
  std::vector<Event> events = Gpipe();
  for (Event& event : events) event.start -= event.process * 5;
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(
      run->notes,
      ElementsAre(AllOf(
          HasSubstr(
              "passes start up to 5.00 us before the stage before them "
              "ends the microbatch (6 of 12 passes, most of all the forward of "
              "microbatch 0 on pipeline rank 1, after rank 0, in step "
              "0)"),
          HasSubstr("moved in all steps by +5 us (pipeline rank 1)"))));
  EXPECT_THAT(StepNumbers(*run), ElementsAre(0, 1, 2));
}

TEST(RangeTraceTest, AMissingPassHarmsOnlyItsStep) {
  for (const bool has_profiler_steps : {false, true}) {
    for (const size_t missing : {0, 2, 3, 4, 5, 6, 7}) {
      std::vector<Event> events = Gpipe();
      events.erase(events.begin() + missing);
      for (int step = 0; has_profiler_steps && step < 3; ++step) {
        for (const int process : {0, 1}) {
          events.push_back({absl::StrCat("ProfilerStep#", 5 + step), process,
                            100.0 * step, 100});
        }
      }
      const auto run = ImportTraceText("a", Text(events));
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_THAT(StepNumbers(*run), ElementsAre(1, 2)) << missing;
      EXPECT_THAT(
          run->notes,
          ElementsAre(HasSubstr("step 0 (1 of 3) left out as incomplete")));
    }
  }
}

TEST(RangeTraceTest, AnAdditionalPassHarmsOnlyItsStep) {
  std::vector<Event> events = Gpipe();
  events.push_back({"PP:1B0", 1, 75, 5});
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(StepNumbers(*run), ElementsAre(1, 2));
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr(
                              "step 0 (1 of 3) left out as incomplete: step 0 "
                              "has two backward passes of microbatch 0 with "
                              "different times in stage 1 of replica 0")));
}

// The same run with the names of Megatron-LM's timers.
std::vector<Event> UnnumberedRun() {
  std::vector<Event> events = Gpipe();
  for (Event& event : events) {
    const bool forward = absl::StrContains(event.name, 'F');
    event.name = forward ? "forward-compute" : "backward-compute";
  }
  return events;
}

TEST(RangeTraceTest, AnOptimizerStepEndsAStepOfTimers) {
  std::vector<Event> events = UnnumberedRun();
  for (const double start : {90, 190, 290}) {
    for (const int process : {0, 1}) {
      events.push_back({"optimizer", process, start, 1});
      events.push_back({"optimizer", process, start + 2, 2});
    }
  }
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, IsEmpty());
  ASSERT_EQ(StepsOf(*run).size(), 3);
  for (const RecordedStep& step : StepsOf(*run)) {
    EXPECT_EQ(step.size(), 8 + 4);
    EXPECT_NEAR(step.seconds(), 94e-6, 1e-12);
  }
}

TEST(RangeTraceTest, StepsOfTheProfilerAreThoseOfTimers) {
  std::vector<Event> events = UnnumberedRun();
  for (int step = 0; step < 3; ++step) {
    // Kineto gives the host another process than the GPU.
    events.push_back({absl::StrCat("ProfilerStep#", step), 77, 100.0 * step,
                      100, "user_annotation"});
  }
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, IsEmpty());
  EXPECT_THAT(StepNumbers(*run), ElementsAre(0, 1, 2));
}

TEST(RangeTraceTest, TimersWithoutStepsAreNoted) {
  const auto run = ImportTraceText("a", Text(UnnumberedRun()));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(StepsOf(*run).size(), 1);
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr("are taken as one step")));
}

TEST(RangeTraceTest, MissingRanksAreNoted) {
  std::vector<Event> events;
  for (const Event& event : Gpipe()) {
    if (event.process == 0) events.push_back(event);
  }
  const auto text = [&](int world_size) {
    return Text(events,
                absl::StrCat("\"distributedInfo\":{\"rank\":1,\"world_size\":",
                             world_size, "},"));
  };
  const auto run = ImportTraceText("a", text(4));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes,
              ElementsAre(HasSubstr(
                  "world_size is 4, but the files lack distributedInfo.rank 0, "
                  "2, 3 (3 of 4): the result is of the others")));
  const auto many = ImportTraceText("a", text(100));
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_THAT(many->notes,
              ElementsAre(HasSubstr("rank 0, 2, 3, 4, 5, ... (99 of")));
}

TEST(RangeTraceTest, CopiesAreNoted) {
  for (const char* category : {"gpu_user_annotation", "user_annotation"}) {
    std::vector<Event> events = Gpipe();
    for (const Event& event : Gpipe()) events.push_back(event);
    for (Event& event : events) event.category = category;
    const auto run = ImportTraceText("a", Text(events));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(StepNumbers(*run), ElementsAre(0, 1, 2));
    EXPECT_THAT(run->notes,
                Contains(HasSubstr("recorded twice with the same times: 24")));
  }
}

TEST(RangeTraceTest, RangesOnSeveralStreamsAreNoted) {
  std::vector<Event> events = Gpipe();
  events.push_back({"PP:0F0", 0, 1, 9});
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(StepNumbers(*run), ElementsAre(0, 1, 2));
  EXPECT_THAT(run->notes,
              ElementsAre(HasSubstr("of the same operation: 1; each")));
}

// Chimera: each rank runs a stage of both directions.
TEST(RangeTraceTest, PipelinesInTwoDirectionsAreRefused) {
  std::vector<Event> events;
  for (int process = 0; process < 2; ++process) {
    for (int stage = 0; stage < 2; ++stage) {
      const int microbatch = stage == process ? 0 : 1;
      const double start = 10 * stage;
      events.push_back(
          {absl::StrCat("PP:", stage, "F", microbatch), process, start, 10});
      events.push_back({absl::StrCat("PP:", stage, "B", microbatch), process,
                        60 - 2 * start, 20});
    }
  }
  const auto run = ImportTraceText("a", Text(events));
  EXPECT_THAT(
      std::string(run.status().message()),
      AllOf(HasSubstr("runs the same stages (0, 1) as"), HasSubstr("Chimera")));
}

}  // namespace
}  // namespace weir::results::range_trace_test
