// SPDX-License-Identifier: Apache-2.0
#include "sim/report/gpu_times.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/intervals.h"

namespace weir::sim {
namespace {

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
    const auto& steps = graph_.steps.plan[graph_.rank_of(gpu_)];
    const bool with_steps = graph_.steps.first.has_value();
    size_t step = 0;
    for (size_t i = 0; i <= actions.size(); ++i) {
      while (with_steps && step < steps.size() &&
             steps[step].before == static_cast<int32_t>(i)) {
        AddStep(static_cast<int>(step++), i);
      }
      if (i == actions.size() || !schedules::IsCompute(actions[i].op)) continue;
      const bool second = i > 0 && actions[i - 1].overlaps_next;
      if (!second) AddAction(i);
    }
    AddEnd();
    return times_;
  }

 private:
  Interval Span(int32_t task) const {
    return task == PipelineGraph::kNone ? Interval{}
                                        : Interval{start_[task], end_[task]};
  }

  Interval Span(const CollectiveSpan& span) const {
    return span.end == PipelineGraph::kNone
               ? Interval{}
               : Interval{end_[span.start], end_[span.end]};
  }

  // Returns the transfers that a gap before `position` may have waited for: the
  // action's input, and the offloads or reloads that it needs; with blocking
  // transfers, everything that the preceding exchange moves.
  std::vector<Interval> TransfersBefore(size_t position) const {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    std::vector<Interval> transfers;
    if (graph_.host_waits.has_value()) AddHostWaits(position, &transfers);
    if (!graph_.exchanges.has_value()) {
      transfers.push_back(
          Span(graph_.InboundTransfer(gpu_, actions[position])));
      if (actions[position].overlaps_next) {
        transfers.push_back(
            Span(graph_.InboundTransfer(gpu_, actions[position + 1])));
      }
      return transfers;
    }
    const Exchanges& exchanges = (*graph_.exchanges)[graph_.rank_of(gpu_)];
    const int32_t last = position < actions.size()
                             ? exchanges.receive_after[position]
                             : static_cast<int32_t>(position) - 1;
    for (int32_t i = last; i >= 0 && exchanges.send_after[i] == last; --i) {
      transfers.push_back(Span(graph_.OutboundTransfer(gpu_, actions[i])));
    }
    for (size_t i = last + 1;
         i < actions.size() && exchanges.receive_after[i] == last; ++i) {
      transfers.push_back(Span(graph_.InboundTransfer(gpu_, actions[i])));
    }
    return transfers;
  }

  void AddHostWaits(size_t position, std::vector<Interval>* waits) const {
    const int rank = graph_.rank_of(gpu_);
    const auto& actions = in_.schedule.rank_actions[rank];
    const auto first = static_cast<int32_t>(position);
    const int32_t last =
        position < actions.size() && actions[position].overlaps_next ? first + 1
                                                                     : first;
    const auto& all = (*graph_.host_waits)[rank];
    for (auto at = std::lower_bound(all.begin(), all.end(), HostWait{first, 0});
         at != all.end() && at->position <= last; ++at) {
      waits->push_back(Span(graph_.ActionTask(gpu_, at->awaited)));
    }
  }

  // Returns the gathers that a pass or a pair waits for.
  std::vector<Interval> GathersBefore(size_t position) {
    std::vector<Interval> gathers;
    if (!graph_.steps.early_gathers.empty()) {
      const auto early =
          graph_.steps.early_gathers.find({gpu_, static_cast<int>(position)});
      if (early != graph_.steps.early_gathers.end())
        gathers.push_back(Span(early->second));
    }
    if (!graph_.gathers.has_value()) return gathers;
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu_)];
    const auto& runs = graph_.gathers->runs[graph_.rank_of(gpu_)];
    const size_t last = position + (actions[position].overlaps_next ? 1 : 0);
    for (; run_ < runs.size() && runs[run_].first <= static_cast<int>(last);
         ++run_) {
      const int run = static_cast<int>(run_);
      gathers.push_back({end_[graph_.GatherStart(gpu_, run)],
                         end_[graph_.GatherEnd(gpu_, run)]});
    }
    return gathers;
  }

  void AddAction(size_t position) {
    const auto first = static_cast<int>(position);
    const int32_t task = graph_.ActionTask(gpu_, first);
    const Interval gap = GapBefore(task);
    std::vector<Interval> gathers = GathersBefore(position);
    if (gap.length() > 0) {
      std::vector<Interval> gaps = {gap};
      times_.exposed_gather_seconds += TakeOut(std::move(gathers), &gaps);
      times_.exposed_transfer_seconds +=
          TakeOut(TransfersBefore(position), &gaps);
      times_.bubble_seconds += LengthOf(gaps);
    }
    last_end_ = end_[graph_.ActionEnd(gpu_, first)];
    const double tensor_end = end_[graph_.TensorEnd(gpu_, first)];
    const double exchanged = end_[graph_.ContextEnd(gpu_, first)];
    times_.context_exchange_seconds +=
        Interval{end_[task], exchanged}.Clip(window_).length();
    times_.tensor_collective_seconds +=
        Interval{exchanged, tensor_end}.Clip(window_).length();
    // What follows the exchanges of sharded weights is a gather.
    const double exchange_end = in_.costs.shards > 1
                                    ? end_[graph_.ExchangeEnd(gpu_, first)]
                                    : last_end_;
    times_.busy_seconds +=
        Interval{start_[task], tensor_end}.Clip(window_).length();
    const double experts =
        Interval{tensor_end, exchange_end}.Clip(window_).length();
    times_.busy_seconds += experts;
    times_.expert_exchange_seconds += experts;
    times_.exposed_gather_seconds +=
        Interval{exchange_end, last_end_}.Clip(window_).length();
  }

  // A blocking exchange precedes the step; the reduction may explain the rest
  // of the gap.
  void AddStep(int step, size_t position) {
    const int32_t task = graph_.StepTask(gpu_, step);
    const Interval gap = GapBefore(task);
    if (gap.length() > 0) {
      std::vector<Interval> gaps = {gap};
      if (graph_.exchanges.has_value()) {
        times_.exposed_transfer_seconds +=
            TakeOut(TransfersBefore(position), &gaps);
      }
      std::vector<Interval> reductions;
      for (const CollectiveSpan& piece : graph_.ReductionPieces(gpu_, step)) {
        reductions.push_back(Span(piece));
      }
      reductions.push_back(Span(graph_.TiedReduction(gpu_, step)));
      times_.exposed_reduction_seconds += TakeOut(std::move(reductions), &gaps);
      times_.bubble_seconds += LengthOf(gaps);
    }
    const double seconds = Span(task).Clip(window_).length();
    times_.busy_seconds += seconds;
    times_.optimizer_seconds += seconds;
    last_end_ = end_[task];
  }

  // With a flush, only gathers follow the steps.
  void AddEnd() {
    std::vector<Interval> gaps = {
        Interval{last_end_, window_.end}.Clip(window_)};
    if (!graph_.steps.gathers.empty()) {
      std::vector<Interval> gathers;
      const auto num_steps =
          std::ssize(graph_.steps.plan[graph_.rank_of(gpu_)]);
      for (int step = 0; step < num_steps; ++step) {
        gathers.push_back(Span(graph_.StepGather(gpu_, step)));
      }
      times_.exposed_gather_seconds += TakeOut(std::move(gathers), &gaps);
    }
    times_.bubble_seconds += LengthOf(gaps);
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
  size_t run_ = 0;  // index of the next of graph_.gathers->runs
  double last_end_ = 0;
};

}  // namespace

GpuTimes TimesOf(const PipelineInputs& inputs, const PipelineGraph& graph,
                 const Recording& recording, int gpu, double begin_seconds,
                 double end_seconds) {
  return Walk(inputs, graph, recording, gpu, {begin_seconds, end_seconds})
      .Run();
}

}  // namespace weir::sim
