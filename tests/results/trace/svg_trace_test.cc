// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "results/trace/trace.h"
#include "tests/golden.h"
#include "tests/hostile_names.h"
#include "tests/results/sample.h"

namespace weir::results::svg_trace_test {

using testing::HasSubstr;

int Count(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(SvgTraceGoldenTest, Picture) {
  const auto svg = SvgTrace(PipelineTimeline(2, 2));
  ASSERT_TRUE(svg.ok()) << svg.status();
  ExpectGolden("results/golden/timeline.svg", *svg);
}

TEST(SvgTraceTest, HasABoxPerPassAndALabelPerRank) {
  const auto svg = SvgTrace(PipelineTimeline(4, 8));
  ASSERT_TRUE(svg.ok()) << svg.status();
  // Every second rank has I and W, and every rank a step.
  EXPECT_EQ(Count(*svg, "<g><title>"), 2 * (8 * 2 + 1) + 2 * (8 * 3 + 1));
  for (const char* text : {">rank 0</text>", ">rank 3</text>", "F forward",
                           "W backward, weights", "optimizer step"}) {
    EXPECT_EQ(Count(*svg, text), 1) << text;
  }
  EXPECT_TRUE(absl::EndsWith(*svg, "</svg>\n"));
}

TEST(SvgTraceTest, NamesAreEscaped) {
  for (const HostileName& name : HostileNames()) {
    if (name.text.empty() || !name.is_utf8) continue;
    Result result = PipelineTimeline(1, 1);
    result.set_schedule(name.text);
    const auto svg = SvgTrace(result);
    ASSERT_TRUE(svg.ok()) << svg.status();
    EXPECT_EQ(Count(*svg, "<title>"), 4) << name.kind;
    EXPECT_EQ(Count(*svg, "<script"), 0) << name.kind;
  }
}

TEST(SvgTraceTest, RefusesWhatItCannotShow) {
  EXPECT_TRUE(absl::IsFailedPrecondition(SvgTrace(SampleResult()).status()));
  const auto many = SvgTrace(PipelineTimeline(8, 2000));
  EXPECT_THAT(std::string(many.status().message()),
              HasSubstr("passes, expected at most 20000 in an SVG file"));
}

}  // namespace weir::results::svg_trace_test
