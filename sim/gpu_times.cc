// SPDX-License-Identifier: Apache-2.0
#include "sim/gpu_times.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir {
namespace {

struct Interval {
  double begin = 0, end = 0;

  double length() const { return std::max(end - begin, 0.0); }
  Interval Clip(const Interval& to) const {
    return {std::max(begin, to.begin), std::min(end, to.end)};
  }
};

// Length of the union of intervals, each clipped to `to`.
double CoveredLength(std::vector<Interval> intervals, const Interval& to) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  double length = 0, covered = to.begin;
  for (const Interval& interval : intervals) {
    const Interval rest = interval.Clip({covered, to.end});
    length += rest.length();
    covered = std::max(covered, rest.end);
  }
  return length;
}

class Walk {
 public:
  Walk(const PipelineInputs& inputs, const PipelineGraph& graph,
       const Recording& recording, int gpu, Interval window)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        gpu_(gpu),
        window_(window) {}

  GpuTimes Run() {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const auto& steps = graph_.steps[graph_.rank_of(gpu_)];
    const bool with_steps = graph_.first_step[gpu_] != PipelineGraph::kNone;
    size_t step = 0;
    for (size_t i = 0; i <= actions.size(); ++i) {
      while (with_steps && step < steps.size() &&
             steps[step].before == static_cast<int32_t>(i)) {
        AddStep(static_cast<int>(step++), i);
      }
      if (i < actions.size()) AddAction(i);
    }
    return times_;
  }

 private:
  Interval Span(int32_t task) const {
    return task == PipelineGraph::kNone ? Interval{}
                                        : Interval{start_[task], end_[task]};
  }

  // What a gap before `position` may have waited for: the action's input; with
  // blocking transfers everything that the exchange before it moves.
  std::vector<Interval> TransfersBefore(size_t position) const {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    if (graph_.exchanges.empty()) {
      return {Span(graph_.InboundTransfer(gpu_, actions[position]))};
    }
    const Exchanges& exchanges = graph_.exchanges[graph_.rank_of(gpu_)];
    const auto last = static_cast<int32_t>(position) - 1;
    std::vector<Interval> transfers;
    for (int32_t i = last; i >= 0 && exchanges.send_after[i] == last; --i) {
      transfers.push_back(Span(graph_.OutboundTransfer(gpu_, actions[i])));
    }
    for (size_t i = position;
         i < actions.size() && exchanges.receive_after[i] == last; ++i) {
      transfers.push_back(Span(graph_.InboundTransfer(gpu_, actions[i])));
    }
    return transfers;
  }

  void AddAction(size_t position) {
    const int32_t task = graph_.ActionTask(gpu_, static_cast<int>(position));
    const Interval gap = GapBefore(task);
    if (gap.length() > 0) {
      times_.exposed_transfer_seconds +=
          CoveredLength(TransfersBefore(position), gap);
    }
    last_end_ = end_[graph_.ActionEnd(gpu_, static_cast<int>(position))];
    times_.busy_seconds +=
        Interval{start_[task], last_end_}.Clip(window_).length();
    times_.tensor_collective_seconds +=
        Interval{end_[task], last_end_}.Clip(window_).length();
  }

  // A blocking exchange comes before the step that follows it; what of the gap
  // it does not explain, the reduction may.
  void AddStep(int step, size_t position) {
    const int32_t task = graph_.StepTask(gpu_, step);
    const Interval gap = GapBefore(task);
    if (gap.length() > 0) {
      std::vector<Interval> waits;
      if (!graph_.exchanges.empty()) waits = TransfersBefore(position);
      const double transfers = CoveredLength(waits, gap);
      const int32_t reduce = graph_.ReduceStart(gpu_, step);
      if (reduce != PipelineGraph::kNone) {
        waits.push_back({end_[reduce], end_[graph_.ReduceEnd(gpu_, step)]});
      }
      times_.exposed_transfer_seconds += transfers;
      times_.exposed_reduction_seconds +=
          CoveredLength(std::move(waits), gap) - transfers;
    }
    const double seconds = Span(task).Clip(window_).length();
    times_.busy_seconds += seconds;
    times_.optimizer_seconds += seconds;
    last_end_ = end_[task];
  }

  Interval GapBefore(int32_t task) const {
    return Interval{last_end_, start_[task]}.Clip(window_);
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_;
  const int gpu_;
  const Interval window_;
  GpuTimes times_;
  double last_end_ = 0;
};

}  // namespace

GpuTimes TimesOf(const PipelineInputs& inputs, const PipelineGraph& graph,
                 const Recording& recording, int gpu, double begin_seconds,
                 double end_seconds) {
  return Walk(inputs, graph, recording, gpu, {begin_seconds, end_seconds})
      .Run();
}

}  // namespace weir
