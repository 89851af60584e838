// SPDX-License-Identifier: Apache-2.0
#include "results/draw/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/compare/idle_causes.h"
#include "results/pipeline_events.h"
#include "schedules/registry.h"
#include "schedules/walk.h"
#include "tests/golden.h"
#include "tests/results/sample.h"

namespace weir::results::figures_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::string> TextsOf(const Drawing& drawing) {
  std::vector<std::string> texts;
  for (const Shape& shape : drawing.shapes()) {
    if (shape.kind == Shape::Kind::kText) texts.push_back(shape.text);
  }
  return texts;
}

// Returns the filled rectangles of a color.
std::vector<Shape> BoxesOf(const Drawing& drawing, absl::string_view color) {
  std::vector<Shape> boxes;
  for (const Shape& shape : drawing.shapes()) {
    if (shape.kind == Shape::Kind::kRectangle && shape.paint.fill == color) {
      boxes.push_back(shape);
    }
  }
  return boxes;
}

Drawing TimelineOf(const Result& result, const FigureOptions& options = {}) {
  const auto rows = RowsOfResult(result);
  EXPECT_TRUE(rows.ok()) << rows.status();
  auto drawing = TimelineFigure({&*rows, 1}, options);
  EXPECT_TRUE(drawing.ok()) << drawing.status();
  return *std::move(drawing);
}

TimelineRows RowsOf(absl::string_view name, int microbatches, int chunks = 1) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = microbatches;
  spec.num_chunks = chunks;
  spec.num_batches = name == "pipedream" ? 3 : 1;
  const auto schedule = schedules::GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const auto rows = RowsOfSchedule(*schedule);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *rows;
}

Drawing DrawingOf(const TimelineRows& rows) {
  auto drawing = TimelineFigure({&rows, 1}, {});
  EXPECT_TRUE(drawing.ok()) << drawing.status();
  return *std::move(drawing);
}

// All shapes are inside the picture.
void ExpectInside(const Drawing& drawing) {
  for (const Shape& shape : drawing.shapes()) {
    const Point at = shape.points[0];
    EXPECT_GE(at.x, 0) << shape.text;
    EXPECT_GE(at.y, 0) << shape.text;
    EXPECT_LE(at.x, drawing.width() + 1e-9) << shape.text;
    EXPECT_LE(at.y, drawing.height() + 1e-9) << shape.text;
    if (shape.kind == Shape::Kind::kRectangle) {
      EXPECT_LE(at.x + shape.points[1].x, drawing.width() + 1e-9);
      EXPECT_LE(at.y + shape.points[1].y, drawing.height() + 1e-9);
    }
    if (shape.kind != Shape::Kind::kText || shape.style.vertical) continue;
    const double width = TextWidth(shape.text, shape.style.size);
    const double left = shape.style.anchor == Anchor::kStart ? at.x
                        : shape.style.anchor == Anchor::kMiddle
                            ? at.x - width / 2
                            : at.x - width;
    EXPECT_GE(left, -1) << shape.text;
    EXPECT_LE(left + width, drawing.width() + 1) << shape.text;
  }
}

TEST(FiguresGoldenTest, Timeline) {
  ExpectGolden("results/golden/timeline.svg",
               SvgOf(TimelineOf(PipelineTimeline(2, 2))));
}

TEST(FiguresGoldenTest, WeightVersionsAndHalves) {
  ExpectGolden("results/golden/timeline_versions.svg",
               SvgOf(DrawingOf(RowsOf("pipedream", 2))));
  ExpectGolden("results/golden/timeline_overlap.svg",
               SvgOf(DrawingOf(RowsOf("dualpipe-v", 8, 2))));
}

TEST(FiguresGoldenTest, MemoryAndIdleTime) {
  const Result result = PipelineTimeline(2, 2);
  const auto memory = MemoryFigure(result, {}, {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  ExpectGolden("results/golden/memory.svg", SvgOf(*memory));
  const auto idle = IdleFigure({&result, 1}, {}, {});
  ASSERT_TRUE(idle.ok()) << idle.status();
  ExpectGolden("results/golden/idle.svg", SvgOf(*idle));
}

TEST(TimelineFigureTest, BoxesHaveTheTimesOfTheResult) {
  const Result result = PipelineTimeline(4, 8);
  const Drawing drawing = TimelineOf(result);
  const auto events = PipelineEventsOf("run", result);
  ASSERT_TRUE(events.ok());
  // The gray background of a row is the whole run.
  const std::vector<Shape> rows = BoxesOf(drawing, "#E6E6E6");
  ASSERT_EQ(rows.size(), 4 + 1);  // and one in the legend
  const double left = rows[0].points[0].x, width = rows[0].points[1].x;
  std::vector<Shape> boxes;
  for (const char* color :
       {"#56b4e9", "#e69f00", "#f0e442", "#3dbb97", "#444444"}) {
    for (const Shape& box : BoxesOf(drawing, color)) boxes.push_back(box);
  }
  size_t num_actions = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (const TimelineAction& action : events->ranks[rank]) {
      ++num_actions;
      const double start = action.start_seconds / events->makespan_seconds;
      const double seconds = action.seconds() / events->makespan_seconds;
      EXPECT_TRUE(std::any_of(boxes.begin(), boxes.end(), [&](const Shape& b) {
        return std::abs(b.points[0].y - rows[rank].points[0].y) < 1e-9 &&
               std::abs(b.points[0].x - left - start * width) < 1e-9 * width &&
               std::abs(b.points[1].x - seconds * width) < 1e-9 * width;
      })) << ActionText(action);
    }
  }
  EXPECT_EQ(boxes.size(), num_actions + 1);  // and the step in the legend
  ExpectInside(drawing);
}

TEST(TimelineFigureTest, AScheduleHasTheTimesOfItsWalk) {
  const TimelineRows rows = RowsOf("zb-h1", 6);
  schedules::ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 6;
  const auto schedule = schedules::GenerateSchedule("zb-h1", spec);
  ASSERT_TRUE(schedule.ok());
  const schedules::WalkTimes times = schedules::TimedWalk(*schedule, {});
  EXPECT_EQ(rows.end, times.makespan());
  ASSERT_EQ(rows.rows.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(rows.rows[rank].boxes.size(),
              schedule->rank_actions[rank].size());
    for (size_t i = 0; i < rows.rows[rank].boxes.size(); ++i) {
      EXPECT_EQ(rows.rows[rank].boxes[i].start, times.start[rank][i]);
      EXPECT_EQ(rows.rows[rank].boxes[i].end, times.end[rank][i]);
    }
  }
}

TEST(TimelineFigureTest, OverlappedPassesShareTheHeight) {
  const TimelineRows rows = RowsOf("dualpipe-v", 8, 2);
  size_t num_upper = 0, num_lower = 0;
  for (const TimelineRow& row : rows.rows) {
    for (const TimelineBox& box : row.boxes) {
      num_upper += box.lane == TimelineBox::Lane::kUpper;
      num_lower += box.lane == TimelineBox::Lane::kLower;
    }
  }
  EXPECT_GT(num_upper, 0u);
  EXPECT_EQ(num_upper, num_lower);
  EXPECT_THAT(TextsOf(DrawingOf(rows)),
              Contains(HasSubstr("two halves: overlapped passes")));
}

TEST(TimelineFigureTest, CopiesToTheHostHaveALane) {
  const TimelineRows rows = RowsOf("optpipe:memory-limit=2", 6);
  const Drawing drawing = DrawingOf(rows);
  size_t num_copies = 0;
  for (const TimelineRow& row : rows.rows) {
    for (const TimelineBox& box : row.boxes) {
      num_copies += box.lane == TimelineBox::Lane::kHost;
    }
  }
  EXPECT_GT(num_copies, 0u);
  EXPECT_EQ(
      BoxesOf(drawing, "#cc79a7").size() + BoxesOf(drawing, "#0072b2").size(),
      num_copies);
  EXPECT_THAT(TextsOf(drawing), Contains("offload to the host"));
  ExpectInside(drawing);
}

// Microbatches 4 and 5 take the same ways as 10 and 11 from the other end.
TEST(TimelineFigureTest, BoxesOfOneWidthHaveNumbersOrNone) {
  const TimelineRows rows = RowsOf("dualpipe", 12);
  for (double width = 100; width < 500; width += 20) {
    const auto drawing = TimelineFigure({&rows, 1}, {width, true});
    ASSERT_TRUE(drawing.ok()) << drawing.status();
    std::map<std::string, int> count;
    for (const Shape& shape : drawing->shapes()) {
      if (shape.kind == Shape::Kind::kText && shape.style.size < kFontSize) {
        ++count[shape.text];
      }
    }
    EXPECT_EQ(count["4"], count["10"]) << width;
    EXPECT_EQ(count["5"], count["11"]) << width;
  }
}

TEST(TimelineFigureTest, VersionsAreThoseOfTheSemantics) {
  const TimelineRows rows = RowsOf("pipedream", 2);
  ASSERT_TRUE(rows.has_versions);
  // Stage 0 of 4 reads version max(i - 3, 0) in forward i (PipeDream, section
  // 3.3).
  for (const TimelineBox& box : rows.rows[0].boxes) {
    EXPECT_EQ(box.weight_version, std::max(box.microbatch - 3, 0));
  }
  EXPECT_FALSE(RowsOf("gpipe", 4).has_versions);
}

TEST(TimelineFigureTest, RefusesWhatItCannotShow) {
  EXPECT_TRUE(
      absl::IsFailedPrecondition(RowsOfResult(SampleResult()).status()));
  const auto many = RowsOfResult(PipelineTimeline(8, 2000));
  ASSERT_TRUE(many.ok());
  EXPECT_THAT(std::string(TimelineFigure({&*many, 1}, {}).status().message()),
              HasSubstr("passes, expected at most 20000 in a picture"));
  const uint32_t ranks[] = {7};
  EXPECT_THAT(
      std::string(
          RowsOfResult(PipelineTimeline(2, 2), {}, ranks).status().message()),
      HasSubstr("--ranks has 7, expected ranks below 2"));
}

TEST(TimelineFigureTest, ChosenRanksAreShown) {
  const uint32_t ranks[] = {3, 1, 3};
  const auto rows = RowsOfResult(PipelineTimeline(4, 2), {}, ranks);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->rows.size(), 2u);
  EXPECT_EQ(rows->rows[0].label, "rank 1");
  EXPECT_EQ(rows->rows[1].label, "rank 3");
}

// Two ranks with four passes of 1 s each, 10 s in all; the slack of pass i of
// rank r is 4 r + i - 1 s, at least 0.
TimelineRows RowsWithSlack(const std::string& title = "1f1b") {
  std::vector<std::vector<TimelineBox>> passes(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 4; ++i) {
      TimelineBox& box = passes[rank].emplace_back();
      box.op = i % 2 == 0 ? Timeline::Actions::FORWARD
                          : Timeline::Actions::BACKWARD_WEIGHT;
      box.stage = rank;
      box.microbatch = i / 2;
      box.start = 2 * i + rank;
      box.end = box.start + 1;
      box.slack = std::max(4 * rank + i - 1, 0);
    }
  }
  auto rows = RowsOfPasses(title, std::move(passes), 10);
  EXPECT_TRUE(rows.ok()) << rows.status();
  rows->has_slack = true;
  return *std::move(rows);
}

// Returns the sum of the channels of a color.
int BrightnessOf(const std::string& color) {
  int sum = 0;
  for (const int at : {1, 3, 5}) sum += std::stoi(color.substr(at, 2), {}, 16);
  return sum;
}

TEST(SlackFigureTest, ColorsAreTheSlack) {
  const TimelineRows rows = RowsWithSlack();
  const Drawing drawing = DrawingOf(rows);
  ExpectInside(drawing);
  // Passes by position; backgrounds and the legend are no passes.
  std::map<std::pair<double, double>, std::string> boxes;  // [(y, x)]
  const double second = BoxesOf(drawing, kVermilion)[0].points[1].x;
  for (const Shape& shape : drawing.shapes()) {
    if (shape.kind != Shape::Kind::kRectangle || shape.paint.stroke != kWhite ||
        std::abs(shape.points[1].x - second) > 1e-9) {
      continue;
    }
    boxes[{shape.points[0].y, shape.points[0].x}] = shape.paint.fill;
  }
  ASSERT_EQ(boxes.size(), 8);
  std::vector<std::string> colors;
  for (const auto& [at, color] : boxes) colors.push_back(color);
  EXPECT_EQ(colors[0], kVermilion);
  EXPECT_EQ(colors[1], kVermilion);
  for (size_t i = 3; i < colors.size(); ++i) {
    EXPECT_LT(BrightnessOf(colors[i]), BrightnessOf(colors[i - 1])) << i;
  }
  EXPECT_EQ(colors[7], "#08306b");
  // Two passes and the entry of the legend.
  EXPECT_EQ(BoxesOf(drawing, kVermilion).size(), 3);
  EXPECT_THAT(
      TextsOf(drawing),
      IsSupersetOf({"slack: 0", "6 s", "critical: no slack", "no pass", "F0",
                    "W0", "F1", "W1", "F forward", "W backward, weights"}));
  EXPECT_THAT(TextsOf(drawing), Not(Contains("idle")));
  // Text is white on dark boxes.
  std::vector<std::string> white;
  for (const Shape& shape : drawing.shapes()) {
    if (shape.kind == Shape::Kind::kText && shape.style.color == kWhite) {
      white.push_back(shape.text);
    }
  }
  EXPECT_THAT(white, UnorderedElementsAre("W0", "F1", "W1"));
}

TEST(SlackFigureTest, RunsShareOneScale) {
  TimelineRows runs[] = {RowsWithSlack("a"), RowsWithSlack("b")};
  runs[1].note = "b: 3 batches";
  for (TimelineBox& box : runs[1].rows[1].boxes) box.slack *= 2;
  const FigureOptions narrow = {.width = kOneColumnWidth};
  const auto both = TimelineFigure(runs, narrow);
  ASSERT_TRUE(both.ok()) << both.status();
  ExpectInside(*both);
  EXPECT_THAT(TextsOf(*both), IsSupersetOf({"12 s", "a", "b"}));
  EXPECT_THAT(TextsOf(*both), Contains(HasSubstr("b: 3 batches")));
  // The largest slack of the first run has half of the scale.
  EXPECT_EQ(BoxesOf(*both, "#08306b").size(), 2);  // with that of the legend
}

TEST(SlackFigureTest, WithoutSlackThereIsNoScale) {
  TimelineRows rows = RowsWithSlack();
  for (TimelineRow& row : rows.rows) {
    for (TimelineBox& box : row.boxes) box.slack = 0;
  }
  const Drawing drawing = DrawingOf(rows);
  EXPECT_EQ(BoxesOf(drawing, kVermilion).size(), 9);
  EXPECT_THAT(TextsOf(drawing), Not(Contains("slack: 0")));
}

TEST(SlackFigureTest, RefusesRanksThatDoNotExist) {
  const uint32_t ranks[] = {1, 2};
  EXPECT_EQ(RowsOfPasses("x", {{}, {}}, 1, ranks).status().message(),
            "x: --ranks has 2, expected ranks below 2");
  EXPECT_EQ(RowsOfPasses("x", {{}}, 0).status().message(), "x: takes no time");
}

TEST(MemoryFigureTest, NamesThePeaksOfTheResult) {
  Result result = PipelineTimeline(4, 4);
  double bytes = 5e9;
  for (RankResult& rank : *result.mutable_ranks()) {
    rank.set_peak_memory_bytes(bytes *= 1.5);
  }
  const auto drawing = MemoryFigure(result, {}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  for (const RankResult& rank : result.ranks()) {
    EXPECT_THAT(TextsOf(*drawing),
                Contains(absl::StrCat("rank ", rank.rank(), ", peak ",
                                      FormatBytes(rank.peak_memory_bytes()))));
  }
  ExpectInside(*drawing);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      MemoryFigure(SampleResult(), {}, {}).status()));
}

TEST(MemoryFigureTest, ShowsTheWorstOfManyRanks) {
  Result result = PipelineTimeline(20, 2);
  result.mutable_ranks(13)->set_peak_memory_bytes(1e12);
  const auto drawing = MemoryFigure(result, {}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  int num_panels = 0;
  for (const std::string& text : TextsOf(*drawing)) {
    num_panels += absl::StartsWith(text, "rank ");
  }
  EXPECT_EQ(num_panels, 8);
  EXPECT_THAT(TextsOf(*drawing), Contains(HasSubstr("rank 13, peak 931 GiB")));
}

// The classes add up to the height of the stack.
TEST(MemoryFigureTest, ClassesAddUp) {
  Result result = PipelineTimeline(1, 1);
  auto* classes = result.mutable_timeline()->mutable_class_memory();
  const std::pair<MemoryClass::Kind, double> values[] = {
      {MemoryClass::WEIGHTS, 3e9}, {MemoryClass::ACTIVATIONS, 5e9}};
  for (const auto& [kind, bytes] : values) {
    classes->add_gpu(0);
    classes->add_kind(kind);
    classes->add_seconds(0);
    classes->add_bytes(bytes);
  }
  result.mutable_ranks(0)->set_peak_memory_bytes(8e9);
  const auto drawing = MemoryFigure(result, {}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  std::vector<Shape> areas;
  for (const Shape& shape : drawing->shapes()) {
    if (shape.kind == Shape::Kind::kPolygon) areas.push_back(shape);
  }
  ASSERT_EQ(areas.size(), 2u);
  // Points: upper left, upper right, lower right, lower left.
  const double first = areas[0].points[3].y - areas[0].points[0].y;
  const double second = areas[1].points[3].y - areas[1].points[0].y;
  EXPECT_NEAR(second / first, 5.0 / 3, 1e-9);
  EXPECT_EQ(areas[1].points[3].y, areas[0].points[0].y);
}

TEST(IdleFigureTest, BarsAreTheCauses) {
  const Result result = PipelineTimeline(4, 4);
  const auto events = PipelineEventsOf("run", result);
  ASSERT_TRUE(events.ok());
  const std::vector<RankIdle> idle = FindIdleCauses(*events);
  const auto drawing = IdleFigure({&result, 1}, {}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  for (const RankIdle& rank : idle) {
    EXPECT_THAT(TextsOf(*drawing),
                Contains(HasSubstr(FormatSeconds(rank.idle_seconds()))));
  }
  // The widths of all bars, in seconds, add up to the idle time.
  std::map<double, double> width_of_row;
  for (const Shape& shape : drawing->shapes()) {
    if (shape.kind != Shape::Kind::kRectangle || shape.paint.stroke.empty()) {
      continue;
    }
    width_of_row[shape.points[0].y] += shape.points[1].x;
  }
  ASSERT_EQ(width_of_row.size(), idle.size());
  double points_per_second = 0;
  size_t rank = 0;
  for (const auto& [y, width] : width_of_row) {
    const double scale = width / idle[rank++].idle_seconds();
    if (points_per_second == 0) points_per_second = scale;
    EXPECT_NEAR(scale, points_per_second, 1e-9 * points_per_second);
  }
  ExpectInside(*drawing);
}

TEST(IdleFigureTest, SeveralResultsHaveABarEach) {
  Result results[] = {PipelineTimeline(4, 4), PipelineTimeline(4, 8)};
  results[0].set_schedule("one");
  results[1].set_schedule("two");
  const auto drawing = IdleFigure(results, {}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(TextsOf(*drawing), Contains("one"));
  EXPECT_THAT(TextsOf(*drawing), Contains("two"));
}

TEST(ParetoFigureTest, FrontByDefinition) {
  std::vector<ParetoPoint> points;
  uint32_t state = 1;
  for (int i = 0; i < 200; ++i) {
    state = state * 1664525 + 1013904223;
    points.push_back({absl::StrCat(i), 1.0 + (state >> 24),
                      1.0 + (state >> 16 & 0xff), state % 5 != 0});
  }
  const std::vector<size_t> front = ParetoFront(points);
  for (size_t i = 0; i < points.size(); ++i) {
    const auto dominates = [&](const ParetoPoint& other) {
      return other.fits && other.seconds <= points[i].seconds &&
             other.value <= points[i].value &&
             (other.seconds < points[i].seconds ||
              other.value < points[i].value);
    };
    const bool dominated = std::any_of(points.begin(), points.end(), dominates);
    const bool in_front =
        std::find(front.begin(), front.end(), i) != front.end();
    // Of equal points only the first is in the front.
    const bool may_be = points[i].fits && !dominated;
    EXPECT_TRUE(may_be || !in_front) << i;
    EXPECT_TRUE(!may_be || in_front ||
                std::any_of(front.begin(), front.end(),
                            [&](size_t other) {
                              return points[other].seconds ==
                                         points[i].seconds &&
                                     points[other].value == points[i].value;
                            }))
        << i;
  }
  ParetoData data = {"plans", "peak memory", {1, "bytes"}, points};
  const auto drawing = ParetoFigure(data, {});
  ASSERT_TRUE(drawing.ok());
  ExpectInside(*drawing);
  for (size_t k = 0; k < front.size(); ++k) {
    EXPECT_THAT(TextsOf(*drawing), Contains(points[front[k]].label));
  }
  data.points.clear();
  EXPECT_THAT(std::string(ParetoFigure(data, {}).status().message()),
              HasSubstr("has no point"));
}

// Returns the numbers in the plot, or those of the list below it.
std::vector<Shape> NumbersOf(const Drawing& drawing, bool listed) {
  std::vector<Shape> numbers;
  for (const Shape& shape : drawing.shapes()) {
    const bool is_title =
        shape.text.find_first_not_of("0123456789") != std::string::npos;
    if (shape.kind != Shape::Kind::kText || !shape.style.bold || is_title) {
      continue;
    }
    if ((shape.style.size == kFontSize) == listed) numbers.push_back(shape);
  }
  return numbers;
}

// Returns the distance of two numbers along the axis in which it is larger,
// negative if they overlap.
double DistanceOf(const Shape& one, const Shape& other) {
  const auto left = [](const Shape& shape) {
    const double width = TextWidth(shape.text, shape.style.size);
    const double x = shape.points[0].x;
    return shape.style.anchor == Anchor::kStart    ? x
           : shape.style.anchor == Anchor::kMiddle ? x - width / 2
                                                   : x - width;
  };
  const auto apart = [](double a, double a_size, double b, double b_size) {
    return std::max(b - a - a_size, a - b - b_size);
  };
  constexpr double kHeight = 4;
  return std::max(apart(left(one), TextWidth(one.text, one.style.size),
                        left(other), TextWidth(other.text, other.style.size)),
                  apart(one.points[0].y, kHeight, other.points[0].y, kHeight));
}

TEST(ParetoFigureTest, NumbersDoNotTouch) {
  std::vector<ParetoPoint> points = {{"far", 100, 1}};
  for (int i = 0; i < 30; ++i) {
    points.push_back({absl::StrCat("plan ", i), 10 + 0.2 * i, 50 - 0.2 * i});
  }
  const ParetoData data = {"plans", "peak memory", {1, "bytes"}, points};
  const auto drawing = ParetoFigure(data, {kOneColumnWidth, true});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  const std::vector<Shape> numbers = NumbersOf(*drawing, /*listed=*/false);
  EXPECT_GT(numbers.size(), 2u);
  EXPECT_LT(numbers.size(), points.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_GT(DistanceOf(numbers[i], numbers[j]), 0)
          << numbers[i].text << " " << numbers[j].text;
    }
  }
  // The best is drawn, and the list has the numbers that are drawn.
  const std::vector<Shape> listed = NumbersOf(*drawing, /*listed=*/true);
  ASSERT_EQ(listed.size(), numbers.size());
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].text, numbers[i].text);
  }
  EXPECT_THAT(TextsOf(*drawing), IsSupersetOf({"plan 0", "far"}));
  EXPECT_THAT(
      TextsOf(*drawing),
      Contains(absl::StrCat("and ", points.size() - numbers.size(), " more")));
}

TEST(ParetoFigureTest, ListsPointsThatExceedTheMemory) {
  ParetoData data = {
      "schedules",
      "peak memory",
      {1, "bytes"},
      {{"gpipe", 5, 90, false}, {"1f1b", 5, 40}, {"slow", 9, 70}}};
  const auto drawing = ParetoFigure(data, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(TextsOf(*drawing), IsSupersetOf({"1f1b", "gpipe", "slow"}));
  EXPECT_EQ(NumbersOf(*drawing, /*listed=*/false).size(), 3u);
  EXPECT_THAT(TextsOf(*drawing), Contains("dominated"));
  data.points.pop_back();
  const auto fewer = ParetoFigure(data, {});
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_THAT(TextsOf(*fewer), Contains("exceeds the memory"));
  EXPECT_THAT(TextsOf(*fewer), Not(Contains("dominated")));
}

TEST(ParetoFigureTest, LongLabelsHaveSeveralLines) {
  const ParetoData data = {
      "plans",
      "peak memory",
      {1, "bytes"},
      {{"tp 4, pp 8, dp 1, v 3, mbs 1, interleaved-1f1b, recompute full, "
        "layers 0,1*12,2*10,0",
        5, 40},
       {"next", 6, 30}}};
  const auto drawing = ParetoFigure(data, {kOneColumnWidth, true});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  EXPECT_THAT(TextsOf(*drawing), Not(Contains(HasSubstr("..."))));
  EXPECT_THAT(TextsOf(*drawing), Contains(HasSubstr("0,1*12,2*10,0")));
  ExpectInside(*drawing);
}

TEST(HeatmapFigureTest, CellsAreTheValues) {
  HeatmapData data = {"sweep",
                      "tp",
                      "pp",
                      {"1", "2"},
                      {"1", "2", "4"},
                      {{1.5, std::nullopt, 3.0}, {2.0, 0.5, 1.0}},
                      FormatSeconds};
  const auto drawing = HeatmapFigure(data, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  for (const char* text : {"1.50 s", "3 s", "2 s", "500 ms", "1 s"}) {
    EXPECT_THAT(TextsOf(*drawing), Contains(text));
  }
  // The best cell has an outline.
  for (const Shape& shape : drawing->shapes()) {
    if (shape.paint.stroke != kVermilion) continue;
    EXPECT_TRUE(std::any_of(drawing->shapes().begin(), drawing->shapes().end(),
                            [&](const Shape& text) {
                              return text.text == "500 ms" &&
                                     text.points[0].x > shape.points[0].x;
                            }));
    break;
  }
  ExpectInside(*drawing);
  data.cells = {{std::nullopt, std::nullopt, std::nullopt},
                {std::nullopt, std::nullopt, std::nullopt}};
  EXPECT_THAT(std::string(HeatmapFigure(data, {}).status().message()),
              HasSubstr("has no value of tp and pp"));
}

// One of many cells has a shorter text than the others.
TEST(HeatmapFigureTest, AllCellsHaveNumbersOrNone) {
  HeatmapData data = {"sweep", "tp", "pp", {"1"}, {}, {{}}, FormatSeconds};
  for (int i = 0; i < 14; ++i) {
    data.columns.push_back(absl::StrCat(i));
    data.cells[0].push_back(i == 3 ? 79 : 80.12 + i);
  }
  const auto num_numbers = [&](double width) {
    const auto drawing = HeatmapFigure(data, {width, true});
    EXPECT_TRUE(drawing.ok()) << drawing.status();
    size_t count = 0, num_best = 0;
    for (const Shape& shape : drawing->shapes()) {
      const bool is_text = shape.kind == Shape::Kind::kText;
      count += is_text && shape.style.size < kFontSize;
      num_best += shape.paint.stroke == kVermilion;
    }
    EXPECT_EQ(num_best, 1u + 1u);  // and one in the legend
    return count;
  };
  EXPECT_EQ(num_numbers(kOneColumnWidth), 0u);
  EXPECT_EQ(num_numbers(kTwoColumnsWidth), 14u);
}

// A dot at intensity i and rate r lies where the axes say: on the slope of the
// memory if r = i * bandwidth.
TEST(RooflineFigureTest, DotsAreRatesOfKernels) {
  RooflineData data;
  data.title = "kernels";
  data.peaks = {{"bf16", 1e15}};
  data.memory_bytes_per_second = 1e12;
  data.kernels = {{"norm", 1e9, 1e9, 1e-3, 2}, {"gemm", 1e12, 1e9, 2e-3, 1}};
  const auto drawing = RooflineFigure(data, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  std::vector<Shape> roofs, dots;
  for (const Shape& shape : drawing->shapes()) {
    if (shape.kind == Shape::Kind::kLine && shape.paint.stroke == kBlack) {
      roofs.push_back(shape);
    }
    if (shape.kind == Shape::Kind::kCircle) dots.push_back(shape);
  }
  ASSERT_EQ(roofs.size(), 2u);
  ASSERT_EQ(dots.size(), 2u + 2u);  // two in the legend
  // Both have 2 ms in total. The norm's kernels reach the memory bandwidth.
  const auto on_slope = [&](const Point& at) {
    const Point& a = roofs[0].points[0];
    const Point& b = roofs[0].points[1];
    return std::abs((at.x - a.x) * (b.y - a.y) - (at.y - a.y) * (b.x - a.x)) <
           1e-6;
  };
  EXPECT_TRUE(on_slope(dots[0].points[0]) != on_slope(dots[1].points[0]));
  EXPECT_EQ(dots[0].points[1].x, dots[1].points[1].x);
  ExpectInside(*drawing);
}

TEST(CurvesFigureTest, EndsWhereTheLossIsNoNumber) {
  const CurvesPanel panel = {"samples",
                             "loss",
                             {{"a", {{1, 4}, {2, 3}, {3, NAN}, {4, 1}}},
                              {"b", {{1, 4}, {2, 2}, {3, 1}, {4, 1}}}}};
  const auto drawing = CurvesFigure("study", {&panel, 1}, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  std::vector<size_t> lengths;
  for (const Shape& shape : drawing->shapes()) {
    if (shape.kind == Shape::Kind::kLine && shape.paint.line_width > 1) {
      lengths.push_back(shape.points.size());
    }
  }
  // The legend has a line of two points each.
  EXPECT_THAT(lengths, ElementsAre(2, 4, 2, 2));
}

TEST(ErrorsFigureTest, RefusesWhatHasNoLogarithm) {
  const ErrorsData bad = {"set", {{1, 1.1}, {2, 0}}, "step_ms"};
  EXPECT_THAT(std::string(ErrorsFigure(bad, {}).status().message()),
              HasSubstr("expected both above 0"));
  const ErrorsData good = {"set", {{1, 1.1}, {2, 1.9}, {100, 90}}, "step_ms"};
  const auto drawing = ErrorsFigure(good, {});
  ASSERT_TRUE(drawing.ok()) << drawing.status();
  int num_dots = 0;
  std::vector<std::string> texts;
  for (const Shape& shape : drawing->shapes()) {
    num_dots += shape.kind == Shape::Kind::kCircle;
    texts.push_back(shape.text);
  }
  EXPECT_EQ(num_dots, 3);
  EXPECT_THAT(texts, IsSupersetOf({"measured step_ms", "predicted step_ms"}));
}

TEST(FiguresTest, AreTheSameEachTime) {
  const Result result = PipelineTimeline(4, 8);
  EXPECT_EQ(SvgOf(TimelineOf(result)), SvgOf(TimelineOf(result)));
}

TEST(FiguresTest, WidthsOfColumns) {
  for (const double width : {120.0, 241.0, 504.0, 1500.0}) {
    const Drawing drawing = TimelineOf(PipelineTimeline(4, 8), {width, true});
    EXPECT_EQ(drawing.width(), width);
    ExpectInside(drawing);
  }
}

TEST(DrawingTest, TextIsShortenedAtCharacters) {
  EXPECT_EQ(FitText("short", 7, 100), "short");
  const std::string rockets = FitText(
      "\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680\U0001f680", 7, 30);
  EXPECT_EQ(rockets, "\U0001f680\U0001f680\U0001f680...");
  EXPECT_EQ(FitText("wide", 7, 3), "");
  EXPECT_LE(TextWidth(FitText(std::string(10000, 'x'), 7, 50), 7), 50);
}

TEST(ChartTest, TicksAreRound) {
  EXPECT_THAT(TicksBetween(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(LogTicksBetween(0.5, 200), ElementsAre(1, 10, 100));
  EXPECT_THAT(LogTicksBetween(0.9, 5.5), ElementsAre(1, 2, 5));
  // Fewer than three of 1, 2 and 5 times powers of ten.
  EXPECT_THAT(LogTicksBetween(7, 15), ElementsAre(8, 10, 12, 14));
  EXPECT_EQ(MixColors("#000000", "#ffffff", 0.5), "#808080");
  const Scale scale = {1, 100, 0, 10, true};
  EXPECT_NEAR(scale.At(10), 5, 1e-12);
}

}  // namespace weir::results::figures_test
