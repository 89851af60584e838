// SPDX-License-Identifier: Apache-2.0
#include "sim/report/deadlock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::sim {
namespace {

constexpr size_t kMaxWaits = 16, kMaxTries = 16;

struct Named {
  int gpu, position;
};

class Finder {
 public:
  Finder(const schedules::Schedule& schedule, const PipelineGraph& graph,
         const Recording& recording)
      : schedule_(schedule),
        graph_(graph),
        is_stuck_(graph.tasks.num_tasks()),
        before_(graph.tasks.num_tasks(), PipelineGraph::kNone) {
    for (int32_t task = 0; task < graph.tasks.num_tasks(); ++task) {
      is_stuck_[task] = std::isnan(recording.end_seconds()[task]);
    }
  }

  std::string Text() {
    std::vector<int32_t> shortest = AnyCycle();
    const std::vector<int32_t> candidates = shortest;
    size_t tries = 0;
    for (int32_t task : candidates) {
      if (NameOf(task).gpu == PipelineGraph::kNone || tries++ == kMaxTries)
        continue;
      std::vector<int32_t> cycle = ShortestThrough(task);
      if (cycle.size() < shortest.size()) shortest = std::move(cycle);
    }
    return Describe(shortest);
  }

 private:
  // Every stuck task waits for another stuck task, so a long enough walk
  // backward ends in a cycle. Returned in the order in which the tasks would
  // run.
  std::vector<int32_t> AnyCycle() {
    int32_t task = PipelineGraph::kNone;
    for (int32_t first = 0; first < graph_.tasks.num_tasks(); ++first) {
      if (!is_stuck_[first]) continue;
      for (int32_t next : graph_.tasks.successors(first)) before_[next] = first;
      task = first;
    }
    for (int32_t i = 0; i < graph_.tasks.num_tasks(); ++i) {
      task = before_[task];
    }
    std::vector<int32_t> cycle;
    const int32_t last = task;
    do {
      cycle.push_back(task);
      task = before_[task];
    } while (task != last);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  std::vector<int32_t> ShortestThrough(int32_t first) {
    std::fill(before_.begin(), before_.end(), PipelineGraph::kNone);
    std::vector<int32_t> queue = {first};
    for (size_t i = 0;
         i < queue.size() && before_[first] == PipelineGraph::kNone; ++i) {
      for (int32_t next : graph_.tasks.successors(queue[i])) {
        if (!is_stuck_[next] || before_[next] != PipelineGraph::kNone) continue;
        before_[next] = queue[i];
        queue.push_back(next);
      }
    }
    std::vector<int32_t> cycle = {first};
    for (int32_t task = before_[first]; task != first; task = before_[task]) {
      cycle.push_back(task);
    }
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  // Returns {PipelineGraph::kNone, PipelineGraph::kNone} for transfers,
  // collectives and steps.
  Named NameOf(int32_t task) const {
    for (int gpu = 0; gpu < graph_.num_gpus(); ++gpu) {
      const int32_t position = task - graph_.passes.first_action[gpu];
      if (position >= 0 &&
          position < std::ssize(schedule_.rank_actions[graph_.rank_of(gpu)])) {
        return {gpu, position};
      }
    }
    return {PipelineGraph::kNone, PipelineGraph::kNone};
  }

  std::string RankText(int gpu) const {
    const int replica = graph_.replica_of(gpu);
    return absl::StrCat(
        "rank ", graph_.rank_of(gpu),
        replica > 0 ? absl::StrCat(" of replica ", replica) : "");
  }

  // Leaves out what a rank does in its own order.
  std::string Describe(const std::vector<int32_t>& cycle) const {
    std::vector<Named> actions;
    for (int32_t task : cycle) {
      const Named named = NameOf(task);
      if (named.gpu != PipelineGraph::kNone) actions.push_back(named);
    }
    std::vector<std::string> waits;
    for (size_t i = actions.size(); i-- > 0;) {
      const Named& at = actions[i];
      const Named& awaited = actions[i > 0 ? i - 1 : actions.size() - 1];
      if (at.gpu == awaited.gpu) continue;
      if (waits.size() == kMaxWaits) {
        waits.push_back("...");
        break;
      }
      waits.push_back(absl::StrCat(
          RankText(at.gpu), " waits at position ", at.position, " (",
          ActionText(at), ") for ", ActionText(awaited), " at position ",
          awaited.position, " of ", RankText(awaited.gpu)));
    }
    return waits.empty() ? DescribeTransfers(cycle)
                         : absl::StrJoin(waits, "; ");
  }

  // Describes a cycle in which no action waits for an action of another rank.
  std::string DescribeTransfers(const std::vector<int32_t>& cycle) const {
    absl::flat_hash_map<int32_t, Named> made_by;
    for (int gpu = 0; gpu < graph_.num_gpus(); ++gpu) {
      const auto& actions = schedule_.rank_actions[graph_.rank_of(gpu)];
      for (int32_t i = 0; i < std::ssize(actions); ++i) {
        const int32_t transfer = graph_.OutboundTransfer(gpu, actions[i]);
        if (transfer != PipelineGraph::kNone)
          made_by.try_emplace(transfer, Named{gpu, i});
      }
    }
    std::vector<std::string> transfers;
    for (int32_t task : cycle) {
      const auto made = made_by.find(task);
      if (made == made_by.end()) continue;
      if (transfers.size() == kMaxWaits) {
        transfers.push_back("...");
        break;
      }
      const Named& by = made->second;
      transfers.push_back(absl::StrCat("the output of ", ActionText(by),
                                       " at position ", by.position, " of ",
                                       RankText(by.gpu)));
    }
    return absl::StrCat("transfers wait for each other: ",
                        absl::StrJoin(transfers, " and "));
  }

  std::string ActionText(const Named& at) const {
    return schedules::ToString(
        schedule_.rank_actions[graph_.rank_of(at.gpu)][at.position]);
  }

  const schedules::Schedule& schedule_;
  const PipelineGraph& graph_;
  std::vector<bool> is_stuck_;   // [task]
  std::vector<int32_t> before_;  // [task]: a stuck task that it waits for
};

}  // namespace

std::string DeadlockText(const schedules::Schedule& schedule,
                         const PipelineGraph& graph,
                         const Recording& recording) {
  return Finder(schedule, graph, recording).Text();
}

}  // namespace weir::sim
