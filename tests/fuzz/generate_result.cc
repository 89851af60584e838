// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_result.h"

#include "tests/fuzz/generate_message.h"
#include "tests/results/sample.h"

namespace weir::fuzz {
namespace {

// Stretches or shifts single events.
template <typename Columns>
void MoveEvents(Columns* columns, Choices* choices) {
  for (int i = 0; i < columns->start_seconds_size(); ++i) {
    if (!choices->OneIn(4)) continue;
    const double start = columns->start_seconds(i);
    const double seconds = columns->end_seconds(i) - start;
    const double moved = choices->OneIn(4) ? choices->Real(0, 100) : start;
    columns->set_start_seconds(i, moved);
    columns->set_end_seconds(i, moved + seconds * choices->Real(0, 2));
  }
}

// Fills all fields except the timeline, whose columns must be consistent.
Result FilledResult(Choices* choices) {
  Result result;
  FillMessage(&result, choices, 2);
  result.clear_timeline();
  result.clear_host_copies();
  result.clear_link_use();
  result.clear_run_slack();
  result.clear_replay();
  if (result.schedule().empty()) result.set_schedule("1f1b");
  if (choices->OneIn(4)) {
    Replay* replay = result.mutable_replay();
    FillMessage(replay, choices, 1);
    replay->clear_allocator_peak_bytes();
    replay->clear_taken_peak_bytes();
  }
  return result;
}

}  // namespace

Result GenerateTimeline(Choices* choices) {
  if (choices->OneIn(3)) {
    return results::RandomTimeline(choices->Int(0, 1 << 30),
                                   choices->Int(0, 12));
  }
  Result result =
      results::PipelineTimeline(choices->Int(1, 4), choices->Int(1, 4));
  Timeline* timeline = result.mutable_timeline();
  if (choices->OneIn(2)) {
    MoveEvents(timeline->mutable_actions(), choices);
    MoveEvents(timeline->mutable_transfers(), choices);
    MoveEvents(timeline->mutable_collectives(), choices);
  }
  result.set_name(choices->Text());
  if (choices->OneIn(3)) {
    result.set_makespan_seconds(choices->Real(0, 200));
    result.set_batch_seconds(result.makespan_seconds());
  }
  return result;
}

// Removes all but a few ranks to make the result smaller.
Result Shortened(Result result, Choices* choices) {
  const int kept = choices->Int(0, 4);
  while (result.ranks_size() > kept) result.mutable_ranks()->RemoveLast();
  return result;
}

Result GenerateResult(Choices* choices) {
  switch (choices->Int(0, 5)) {
    case 0:
      return Shortened(results::SampleResult(), choices);
    case 1:
      return Shortened(results::GivenCostsResult(), choices);
    case 2:
    case 3:
      return FilledResult(choices);
    default:
      return GenerateTimeline(choices);
  }
}

}  // namespace weir::fuzz
