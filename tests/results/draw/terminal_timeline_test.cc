// SPDX-License-Identifier: Apache-2.0
#include "results/draw/terminal_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "schedules/registry.h"
#include "tests/results/sample.h"

namespace weir::results::terminal_timeline_test {

using testing::HasSubstr;
using testing::Not;

TimelineRows GPipe(int ranks, int microbatches) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = ranks;
  spec.num_microbatches = microbatches;
  const auto schedule = schedules::GenerateSchedule("gpipe", spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *RowsOfSchedule(*schedule);
}

int Characters(absl::string_view line) {
  int count = 0;
  while (!line.empty()) {
    line.remove_prefix(std::max<size_t>(Utf8CharacterLength(line), 1));
    ++count;
  }
  return count;
}

// Two ranks and two microbatches take 9 units: three columns each.
TEST(TerminalTimelineTest, Ascii) {
  EXPECT_EQ(TerminalTimeline(GPipe(2, 2), {.width = 36, .unicode = false}),
            "rank 0 |0FF1FF.........1BBBBB0BBBBB|\n"
            "rank 1 |...0FF1FF1BBBBB0BBBBB......|\n"
            "        0                         9\n"
            "F F forward   B B backward   . idle\n"
            "0 microbatch\n");
}

TEST(TerminalTimelineTest, UnicodeHasTheWidth) {
  const std::string text = TerminalTimeline(GPipe(4, 8), {.width = 80});
  EXPECT_THAT(text, HasSubstr("\u2591"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(Characters(line), 80) << line;
  }
  EXPECT_EQ(Characters(text.substr(0, text.find('\n'))), 80);
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

TEST(TerminalTimelineTest, ColorsAreReset) {
  const std::string text =
      TerminalTimeline(GPipe(2, 2), {.width = 36, .color = true});
  EXPECT_THAT(text, HasSubstr("\033[38;5;16;48;5;74m0  1  \033[0m"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t last = line.rfind("\033[");
    if (last != absl::string_view::npos) {
      EXPECT_EQ(line.substr(last, 4), "\033[0m") << line;
    }
  }
}

TEST(TerminalTimelineTest, NarrowWindowsHaveSomeColumns) {
  const std::string text =
      TerminalTimeline(GPipe(2, 100), {.width = 1, .unicode = false});
  EXPECT_THAT(text, HasSubstr("rank 0 |"));
}

TEST(TerminalTimelineTest, TheLegendExplainsWhatIsDrawn) {
  const TimelineRows rows = GPipe(2, 30);
  EXPECT_THAT(TerminalTimeline(rows, {.width = 40}),
              Not(HasSubstr("microbatch")));
  EXPECT_THAT(TerminalTimeline(rows, {.width = 400}),
              HasSubstr("0 microbatch"));
}

TEST(TerminalTimelineTest, RandomTimelines) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const auto rows = RowsOfResult(RandomTimeline(seed, 60));
    if (!rows.ok()) continue;
    for (const bool unicode : {false, true}) {
      const std::string text =
          TerminalTimeline(*rows, {.width = 60, .unicode = unicode});
      EXPECT_TRUE(IsUtf8(text));
    }
  }
}

}  // namespace weir::results::terminal_timeline_test
