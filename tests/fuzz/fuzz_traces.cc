// SPDX-License-Identifier: Apache-2.0
// Timelines. Both trace formats, read as by a viewer, have every event, even if
// events overlap or transfers lack their other end.
#include "results/compare/idle_causes.h"
#include "results/draw/figures.h"
#include "results/draw/terminal_timeline.h"
#include "results/pipeline_events.h"
#include "results/report/report.h"
#include "results/trace/trace.h"
#include "results/validate.h"
#include "tests/fuzz/generate_message.h"
#include "tests/fuzz/generate_result.h"
#include "tests/fuzz/target.h"
#include "tests/results/trace/trace_stats.h"

namespace weir::fuzz {
namespace {

int64_t NumEvents(const Timeline& timeline) {
  return timeline.actions().gpu_size() + timeline.transfers().kind_size() +
         timeline.collectives().gpu_size();
}

void CheckTrace(const Result& result, const results::ReadTrace& read) {
  REQUIRE_THAT(read.errors.empty(),
               read.errors.front() + result.ShortDebugString());
  // A transfer has a slice at each end.
  REQUIRE_THAT(std::ssize(read.slices) >= NumEvents(result.timeline()),
               result.ShortDebugString());
  REQUIRE_THAT(static_cast<int>(read.NumCounterValues()) ==
                   result.timeline().memory().gpu_size(),
               result.ShortDebugString());
  for (const results::ReadSlice& slice : read.slices) {
    REQUIRE(slice.start_ns <= slice.end_ns);
  }
}

// Figures must not crash, and be drawn again with the same bytes.
void CheckFigures(const Result& result) {
  const auto rows = results::RowsOfResult(result);
  if (rows.ok()) {
    const auto timeline = results::TimelineFigure({&*rows, 1}, {});
    if (timeline.ok()) {
      const auto again = results::TimelineFigure({&*rows, 1}, {});
      REQUIRE(results::SvgOf(*timeline) == results::SvgOf(*again));
    }
    results::TerminalTimeline(*rows, {});
  }
  results::MemoryFigure(result, {}, {}).IgnoreError();
  results::IdleFigure({&result, 1}, {}, {}).IgnoreError();
}

// Checks both formats. Returns false if there is no trace, which is the case if
// the timeline ends after 9e9 s.
bool CheckBoth(const Result& result) {
  const auto perfetto = results::PerfettoTrace(result);
  const auto chrome = results::ChromeTrace(result);
  REQUIRE(perfetto.ok() == chrome.ok());
  CheckFigures(result);
  REQUIRE(!perfetto.ok() || results::ReportData({&result, 1}).ok());
  if (!perfetto.ok()) return false;
  const results::ReadTrace one = results::ReadPerfetto(*perfetto),
                           other = results::ReadChrome(*chrome);
  CheckTrace(result, one);
  CheckTrace(result, other);
  REQUIRE(one.slices.size() == other.slices.size());
  REQUIRE(one.flows.size() == other.flows.size());
  return true;
}

}  // namespace

bool RunInput(Choices* choices) {
  Result result = GenerateTimeline(choices);
  if (choices->OneIn(8)) {
    SpoilMessage(result.mutable_timeline(), choices);
  }
  if (!results::ValidateResult("fuzz", result).ok()) {
    REQUIRE(!results::PerfettoTrace(result).ok() &&
            !results::ChromeTrace(result).ok());
    return false;
  }
  const bool has_trace = CheckBoth(result);
  const auto events = results::PipelineEventsOf("fuzz", result);
  if (events.ok()) {
    const std::vector<results::RankIdle> idle =
        results::FindIdleCauses(*events);
    for (const results::RankIdle& rank : idle) {
      REQUIRE_THAT(rank.busy_seconds >= 0 && rank.idle_seconds() > -1e-9,
                   result.ShortDebugString());
    }
    results::TimesOf(*events, idle);
    results::FindClockErrors(*events);
  }
  if (!choices->OneIn(4)) return true;
  const auto both = results::PutUnderEachOther("a", result, "b", result);
  if (both.ok() && has_trace) {
    REQUIRE_OK(results::ChromeTrace(both->result, both->names));
    REQUIRE_OK(results::PerfettoTrace(both->result, both->names));
  }
  return true;
}

}  // namespace weir::fuzz
