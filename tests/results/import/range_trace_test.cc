// SPDX-License-Identifier: Apache-2.0
// Checks ranges that name passes: steps, clocks, and what is missing or twice.
#include "results/import/range_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "results/import/import_trace.h"

namespace weir::results::range_trace_test {
namespace {

using testing::AllOf;
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

TEST(RangeTraceTest, ClocksThatDifferAreNotedWithoutMessages) {
  std::vector<Event> events = Gpipe();
  for (Event& event : events) event.start -= event.process * 5;
  const auto run = ImportTraceText("a", Text(events));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(
      run->notes,
      ElementsAre(AllOf(
          HasSubstr(
              "passes start up to 0.005 ms before the stage before them "
              "ends the microbatch (6 of 12 passes, most of all the forward of "
              "microbatch 0 on pipeline rank 1, after rank 0, in step "
              "0)"),
          HasSubstr("the clocks of the ranks differ"))));
}

}  // namespace
}  // namespace weir::results::range_trace_test
