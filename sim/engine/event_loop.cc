// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/event_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/engine/longest_path.h"
#include "sim/engine/slowdown_state.h"
#include "sim/engine/timer_queue.h"

namespace weir::sim {
namespace {

// Counts down predecessors and starts the tasks that become ready.
class EventLoop final : private Platform::Listener {
 public:
  EventLoop(const TaskGraph& graph, std::span<const scenarios::Link> links,
            Platform* platform, Recording* recording,
            std::atomic<int64_t>* num_ended)
      : graph_(graph),
        platform_(platform),
        rates_(RatesAlone(graph, links)),
        users_(links.size()),
        start_(recording->start_seconds()),
        end_(recording->end_seconds()),
        sharing_(recording->sharing_seconds()),
        shown_num_ended_(num_ended),
        waiting_(graph.num_predecessors()),
        slowdowns_(graph.slowdowns),
        running_(graph.slowdowns.factors.size()) {}

  // Returns the number of tasks that have ended.
  int64_t Run() {
    ListLinks();
    for (int32_t task = 0; task < graph_.num_tasks(); ++task) {
      if (waiting_[task] == 0) ready_.push_back(task);
    }
    StartReady();
    GoOn();
    if (platform_->num_flows() > 0) platform_->Run(this);
    for (int32_t task = 0; task < graph_.num_tasks(); ++task) {
      if (waiting_[task] > 0) {
        start_[task] = end_[task] = std::numeric_limits<double>::quiet_NaN();
      }
    }
    return num_ended_;
  }

 private:
  // Lists each link of a pair's route once.
  void ListLinks() {
    first_link_.push_back(0);
    for (const GpuPair& pair : graph_.pairs) {
      const auto begin = std::ssize(route_links_);
      for (const int32_t link : pair.route.links) {
        const auto first = route_links_.begin() + begin;
        if (std::find(first, route_links_.end(), link) == route_links_.end()) {
          route_links_.push_back(link);
        }
      }
      first_link_.push_back(static_cast<int32_t>(route_links_.size()));
    }
  }
  std::span<const int32_t> LinksOf(int32_t flow) const {
    const int32_t pair = graph_.pair(flow);
    return {route_links_.data() + first_link_[pair],
            route_links_.data() + first_link_[pair + 1]};
  }

  // While SimGrid has no flow, its clock need not advance.
  void GoOn() {
    while (platform_->num_flows() == 0) {
      platform_->StopAlarm();
      if (timers_.empty()) return;
      now_ = timers_.first_seconds();
      EndTimers();
    }
    if (timers_.empty()) {
      platform_->StopAlarm();
    } else {
      platform_->SetAlarm(timers_.first_seconds());
    }
  }

  void AlarmRang() override {
    now_ = std::max(now_, timers_.first_seconds());
    EndTimers();
    GoOn();
  }

  void FlowEnded(int32_t task, double seconds) override {
    now_ = std::max(now_, seconds);
    EndFlow(task);
    EndTimers();  // those of the same time, before flows start
    GoOn();
  }

  // Ends all timers that are due, then starts what becomes ready.
  void EndTimers() {
    while (!timers_.empty() && timers_.first_seconds() <= now_) {
      timers_.Pop(&due_);
    }
    for (const TimerQueue::Timer& timer : due_) {
      if (!graph_.is_timer(timer.task)) {
        OnFlowTimer(timer.task);
      } else if (IsSlowable(timer.task)) {
        EndSlowable(timer);
      } else {
        End(timer.task);
      }
    }
    due_.clear();
    StartReady();
  }

  bool IsSlowable(int32_t task) const {
    return slowdowns_.GpuOf(task) >= 0 && graph_.amount(task) > 0;
  }

  // Called when everything that ends now has ended: a flow that ends when
  // another begins does not share its links with it. Timers of zero seconds end
  // immediately, in a loop, since chains of them are long.
  void StartReady() {
    while (!ready_.empty()) {
      const int32_t task = ready_.back();
      ready_.pop_back();
      start_[task] = now_;
      if (!graph_.is_timer(task)) {
        StartFlow(task);
      } else if (IsSlowable(task)) {
        StartSlowable(task);
      } else if (graph_.amount(task) > 0) {
        timers_.Push(now_ + graph_.amount(task), task);
      } else {
        End(task);
      }
    }
    RetimeSharedGpus();
    for (size_t i = 0; i < moving_.size(); ++i) Move(moving_[i]);
    moving_.clear();
  }

  // A running timer of a GPU: seconds left at full speed, as of `since`.
  struct Running {
    int32_t task = 0;
    double left_seconds = 0, since = 0;
    SlowdownFactors factors;
    double end_seconds = 0;  // the queue may have outdated entries of it
  };

  void SetTimer(Running* running) {
    running->end_seconds =
        running->since + running->left_seconds * running->factors.both();
    timers_.Push(running->end_seconds, running->task);
  }

  void StartSlowable(int32_t task) {
    const int32_t gpu = slowdowns_.GpuOf(task);
    if (running_[gpu].empty()) CountPart(gpu, 1);
    running_[gpu].push_back(
        {task, graph_.amount(task), now_, slowdowns_.FactorsOf(task)});
    SetTimer(&running_[gpu].back());
  }

  void EndSlowable(const TimerQueue::Timer& timer) {
    const int32_t gpu = slowdowns_.GpuOf(timer.task);
    std::vector<Running>& running = running_[gpu];
    const auto at =
        std::find_if(running.begin(), running.end(), [&](const Running& one) {
          return one.task == timer.task && one.end_seconds == timer.seconds;
        });
    if (at == running.end()) return;
    NoteSharing(*at);
    running.erase(at);
    if (running.empty()) CountPart(gpu, -1);
    End(timer.task);
  }

  // A partition of a physical GPU begins (+1) or ends (-1) computing. The speed
  // of the others changes only after everything of this time has started, since
  // the number is the same before and after a switch between passes.
  void CountPart(int32_t gpu, int change) {
    const auto partitions = slowdowns_.CountPart(gpu, change);
    if (!partitions.empty()) changed_gpus_.push_back(partitions);
  }

  void RetimeSharedGpus() {
    for (const std::span<const int32_t> partitions : changed_gpus_)
      Retime(partitions);
    changed_gpus_.clear();
  }

  // Continues what runs on these GPUs at the current speed.
  void Retime(std::span<const int32_t> gpus) {
    for (int32_t gpu : gpus) {
      for (Running& running : running_[gpu]) Retime(&running);
    }
  }

  void Retime(Running* running) {
    const SlowdownFactors factors = slowdowns_.FactorsOf(running->task);
    if (factors == running->factors) return;
    const double left = running->left_seconds -
                        (now_ - running->since) / running->factors.both();
    // It ends now; its timer is already set.
    if (left <= 1e-15 * graph_.amount(running->task)) return;
    NoteSharing(*running);
    running->left_seconds = left;
    running->since = now_;
    running->factors = factors;
    SetTimer(running);
  }

  // Adds the seconds that other partitions added since its factors changed.
  void NoteSharing(const Running& running) {
    if (sharing_.empty()) return;
    sharing_[running.task] +=
        (now_ - running.since) * (1 - 1 / running.factors.parts);
  }

  // Values of end_ before a flow ends. An uncontended flow has its end instead.
  static constexpr double kInLatency = -1, kShared = -2;

  void StartFlow(int32_t task) {
    const int32_t pair = graph_.pair(task);
    Retime(slowdowns_.CountFlow(pair, 1));
    end_[task] = kInLatency;
    const double latency = graph_.pairs[pair].route.latency_seconds;
    if (latency > 0) {
      timers_.Push(now_ + latency, task);
    } else {
      moving_.push_back(task);
    }
  }

  // Handles a flow whose latency is over, or which ends, or which has become a
  // SimGrid flow since.
  void OnFlowTimer(int32_t task) {
    if (end_[task] == kInLatency) {
      moving_.push_back(task);
    } else if (users_[LinksOf(task).front()].alone == task) {
      EndFlow(task);
    }
  }

  void Move(int32_t task) {
    const int32_t pair = graph_.pair(task);
    const double bytes = std::floor(graph_.amount(task));
    const std::span<const int32_t> links = LinksOf(task);
    bool alone = true;
    for (const int32_t link : links) {
      User& user = users_[link];
      if (user.alone >= 0) Share(user.alone);
      alone &= user.num_flows++ == 0;
    }
    if (!alone) {
      end_[task] = kShared;
      platform_->StartFlow(pair, bytes, task, now_);
      return;
    }
    for (const int32_t link : links) users_[link].alone = task;
    end_[task] = now_ + bytes / rates_[pair];
    timers_.Push(end_[task], task);
  }

  // Makes an uncontended flow a SimGrid flow, since another one uses one of its
  // links.
  void Share(int32_t task) {
    const int32_t pair = graph_.pair(task);
    for (const int32_t link : LinksOf(task)) users_[link].alone = kNone;
    const double bytes = (end_[task] - now_) * rates_[pair];
    end_[task] = kShared;
    platform_->StartFlow(pair, bytes, task, now_);
  }

  void EndFlow(int32_t task) {
    for (const int32_t link : LinksOf(task)) {
      --users_[link].num_flows;
      users_[link].alone = kNone;
    }
    Retime(slowdowns_.CountFlow(graph_.pair(task), -1));
    End(task);
  }

  void End(int32_t task) {
    end_[task] = now_;
    if ((++num_ended_ & 0xfff) == 0) *shown_num_ended_ = num_ended_;
    for (int32_t successor : graph_.successors(task)) {
      if (--waiting_[successor] == 0) ready_.push_back(successor);
    }
  }

  static constexpr int32_t kNone = -1;
  // Flows that move bytes over a link: their number, and the one that is not a
  // SimGrid flow.
  struct User {
    int32_t num_flows = 0, alone = kNone;
  };

  const TaskGraph& graph_;
  Platform* platform_;
  std::vector<double> rates_;        // [pair], uncontended
  std::vector<int32_t> first_link_;  // [pair], into route_links_
  std::vector<int32_t> route_links_;
  std::vector<User> users_;      // [link]
  std::vector<int32_t> moving_;  // flows whose latency ends now
  std::span<double> start_;
  std::span<double> end_;
  std::span<double> sharing_;  // empty: no partitions
  std::atomic<int64_t>* shown_num_ended_;
  double now_ = 0;
  std::vector<int32_t> waiting_;
  std::vector<int32_t> ready_;
  TimerQueue timers_;
  std::vector<TimerQueue::Timer> due_;
  int64_t num_ended_ = 0;
  SlowdownState slowdowns_;
  std::vector<std::vector<Running>> running_;  // [gpu]
  std::vector<std::span<const int32_t>> changed_gpus_;
};

}  // namespace

void RunEventLoop(const TaskGraph& graph,
                  std::span<const scenarios::Link> links, Platform* platform,
                  Recording* recording, std::atomic<int64_t>* num_ended) {
  platform->SetNetwork(links, graph.pairs);
  EventLoop replay(graph, links, platform, recording, num_ended);
  recording->set_num_ended(replay.Run());
}

}  // namespace weir::sim
