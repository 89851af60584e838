// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/execute_schedule.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/logical_device.h"
#include "calibrate/execute/rank_runner.h"
#include "schedules/semantics.h"
#include "schedules/validate.h"

namespace weir::calibrate {
namespace {

using Clock = std::chrono::steady_clock;

// Interval of the stop hook.
constexpr std::chrono::milliseconds kLookEvery(20);
constexpr std::chrono::microseconds kPollEvery(50);
// Maximum number of queued but unfinished items of a rank: enough to keep a
// device busy, few enough that queueing never blocks on a device that hangs.
constexpr int kMostAhead = 4;

// Converts to a clock duration, clamped to avoid overflow.
Clock::duration Seconds(double seconds) {
  seconds = std::clamp(seconds, 0.0, 1e9);
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
}

class ScheduleExecutor {
 public:
  ScheduleExecutor(const ExecutionPlan& plan, const ExecutionOrder& order,
                   Board* board, ExecutionDevice* device,
                   const ExecutionHooks& hooks)
      : plan_(plan),
        hooks_(hooks),
        dependencies_(plan.schedule),
        order_(order),
        board_(*board) {
    if (!device->concurrent()) logical_ = MakeLogicalDevice(plan, device);
    device_ = logical_ != nullptr ? logical_.get() : device;
  }

  absl::StatusOr<ExecutionRecord> Run() {
    const int num_ranks = plan_.schedule.num_ranks;
    const ExecutionShared shared = {plan_, dependencies_, order_, &board_,
                                    device_};
    for (int rank = 0; rank < num_ranks; ++rank) {
      ranks_.push_back(std::make_unique<RankRunner>(shared, rank));
    }
    RETURN_IF_ERROR(
        ForEach(num_ranks, [&](int rank) { return ranks_[rank]->Prepare(); }));
    ExecutionRecord record;
    record.device = device_->description();
    const int num_steps = plan_.schedule.flush ? plan_.num_steps : 1;
    for (int step = 0; step < num_steps; ++step) {
      RETURN_IF_ERROR(RunStep(step, &record.steps.emplace_back()));
      if (hooks_.step_done) hooks_.step_done(step, record.steps.back());
    }
    if (plan_.returns_weights) {
      record.weights.resize(plan_.schedule.num_stages);
      RETURN_IF_ERROR(ForEach(num_ranks, [&](int rank) {
        return AddWeights(rank, &record.weights);
      }));
    }
    for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->FreeAll());
    return record;
  }

 private:
  // Runs a function for each rank, concurrently if the device is. For a model
  // sized for a GPU this takes longer than a step.
  absl::Status ForEach(int num_ranks,
                       const std::function<absl::Status(int rank)>& run);
  absl::Status AddWeights(int rank,
                          std::vector<std::vector<double>>* weights) const;
  absl::Status RunStep(int step, StepRecord* record);
  absl::Status RunSerially();
  absl::Status RunThreads();
  void RunRank(int rank);
  absl::Status Pace(int rank, int item, const std::function<bool()>& stops);
  absl::Status Drain();
  std::string WhoWaits();
  std::string WhoHasNotEnded();
  bool Stops() const { return hooks_.stop && hooks_.stop(); }
  static absl::Status Cancelled() {
    return absl::CancelledError("the replay was stopped");
  }

  const ExecutionPlan& plan_;
  const ExecutionHooks& hooks_;
  const schedules::Dependencies dependencies_;
  const ExecutionOrder& order_;
  Board& board_;
  std::unique_ptr<ExecutionDevice> logical_;
  ExecutionDevice* device_ = nullptr;
  std::vector<std::unique_ptr<RankRunner>> ranks_;
};

absl::Status ScheduleExecutor::ForEach(
    int num_ranks, const std::function<absl::Status(int rank)>& run) {
  std::vector<absl::Status> statuses(num_ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const auto work = [&, rank] { statuses[rank] = run(rank); };
    if (device_->concurrent()) {
      threads.emplace_back(work);
    } else {
      work();
      RETURN_IF_ERROR(statuses[rank]);
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// Adds the weights of stages of which the rank is the first replica.
absl::Status ScheduleExecutor::AddWeights(
    int rank, std::vector<std::vector<double>>* weights) const {
  for (int stage : plan_.schedule.StagesOf(rank)) {
    if (plan_.schedule.RanksOf(stage)[0] != rank) continue;
    ASSIGN_OR_RETURN((*weights)[stage], ranks_[rank]->NewestWeights(stage));
  }
  return absl::OkStatus();
}

absl::Status ScheduleExecutor::RunStep(int step, StepRecord* record) {
  const schedules::Schedule& schedule = plan_.schedule;
  const int total = schedule.total_microbatches();
  record->ranks.resize(schedule.num_ranks);
  record->uses.assign(schedule.num_stages,
                      std::vector<schedules::VersionUse>(total));
  record->losses.assign(total, 0);
  board_.Clear();
  for (const auto& rank : ranks_) {
    RETURN_IF_ERROR(rank->BeginStep(step, record));
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    RETURN_IF_ERROR(device_->rank(rank)->Finish());
  }
  RETURN_IF_ERROR(device_->Start());
  RETURN_IF_ERROR(device_->concurrent() ? RunThreads() : RunSerially());
  RETURN_IF_ERROR(Drain());
  for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->EndStep(record));
  return absl::OkStatus();
}

std::string ScheduleExecutor::WhoWaits() {
  std::vector<std::string> lines;
  for (const std::string& wait : board_.waits) {
    if (!wait.empty()) lines.push_back(wait);
  }
  return absl::StrJoin(lines, "; ");
}

std::string ScheduleExecutor::WhoHasNotEnded() {
  std::vector<std::string> lines;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const int item = ranks_[r]->NumEnded();
    if (item == ranks_[r]->num_items()) continue;
    lines.push_back(
        absl::StrCat("rank ", r, " has not ended ", ranks_[r]->TextOf(item)));
  }
  return absl::StrJoin(lines, "; ");
}

// Waits until the rank's queue has room for `item`.
absl::Status ScheduleExecutor::Pace(int r, int item,
                                    const std::function<bool()>& stops) {
  RankRunner& rank = *ranks_[r];
  const auto deadline = Clock::now() + Seconds(plan_.timeout_seconds);
  while (item - rank.NumEnded() >= kMostAhead) {
    if (stops()) return Cancelled();
    if (Clock::now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", r, " has not ended ", rank.TextOf(rank.NumEnded())));
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  return absl::OkStatus();
}

// Runs one rank as far as possible, then the next that can run.
absl::Status ScheduleExecutor::RunSerially() {
  const auto num_ranks = static_cast<int>(ranks_.size());
  int done = 0, total = 0;
  for (const auto& rank : ranks_) total += rank->num_items();
  while (done < total) {
    const int before = done;
    for (int r = 0; r < num_ranks; ++r) {
      RankRunner& rank = *ranks_[r];
      while (rank.num_done() < rank.num_items()) {
        const int item = rank.num_done();
        std::string missing;
        {
          const std::lock_guard lock(board_.mutex);
          missing = rank.Missing(item);
          board_.waits[r] = missing.empty() ? "" : rank.WaitText(item, missing);
        }
        if (!missing.empty()) break;
        if (Stops()) return Cancelled();
        RETURN_IF_ERROR(Pace(r, item, [this] { return Stops(); }));
        RETURN_IF_ERROR(rank.Do(item));
        ++done;
      }
    }
    if (done == before) return absl::DeadlineExceededError(WhoWaits());
  }
  return absl::OkStatus();
}

void ScheduleExecutor::RunRank(int r) {
  RankRunner& rank = *ranks_[r];
  const auto fail = [&](absl::Status status) {
    if (board_.failure.ok()) board_.failure = std::move(status);
    board_.changed.notify_all();
  };
  for (int item = 0; item < rank.num_items(); ++item) {
    {
      std::unique_lock lock(board_.mutex);
      const auto deadline = Clock::now() + Seconds(plan_.timeout_seconds);
      std::string missing;
      while (board_.failure.ok() && !(missing = rank.Missing(item)).empty()) {
        board_.waits[r] = rank.WaitText(item, missing);
        if (board_.changed.wait_until(lock, deadline) ==
                std::cv_status::timeout &&
            board_.failure.ok() && !rank.Missing(item).empty()) {
          fail(absl::DeadlineExceededError(WhoWaits()));
        }
      }
      board_.waits[r].clear();
      if (!board_.failure.ok()) return;
    }
    absl::Status status = Pace(r, item, [this] {
      const std::lock_guard lock(board_.mutex);
      return !board_.failure.ok();
    });
    if (status.ok()) status = rank.Do(item);
    if (status.ok()) continue;
    const std::lock_guard lock(board_.mutex);
    return fail(std::move(status));
  }
}

absl::Status ScheduleExecutor::RunThreads() {
  const auto num_ranks = static_cast<int>(ranks_.size());
  int running = num_ranks;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([this, rank, &running] {
      RunRank(rank);
      const std::lock_guard lock(board_.mutex);
      --running;
      board_.changed.notify_all();
    });
  }
  {
    std::unique_lock lock(board_.mutex);
    while (running > 0) {
      board_.changed.wait_for(lock, kLookEvery);
      lock.unlock();
      const bool stops = Stops();
      lock.lock();
      if (stops && board_.failure.ok()) {
        board_.failure = Cancelled();
        board_.changed.notify_all();
      }
      if (!board_.failure.ok()) device_->Cancel();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return board_.failure;
}

// Waits for all queued work, and names the items that do not end in time.
absl::Status ScheduleExecutor::Drain() {
  int ended = -1;
  auto deadline = Clock::now();
  while (true) {
    int now = 0, total = 0;
    for (const auto& rank : ranks_) {
      now += rank->NumEnded();
      total += rank->num_items();
    }
    if (now == total) break;
    if (Stops()) return Cancelled();
    if (now > ended) {
      ended = now;
      deadline = Clock::now() + Seconds(plan_.timeout_seconds);
    } else if (Clock::now() > deadline) {
      return absl::DeadlineExceededError(WhoHasNotEnded());
    }
    std::this_thread::sleep_for(kPollEvery);
  }
  for (int rank = 0; rank < plan_.schedule.num_ranks; ++rank) {
    RETURN_IF_ERROR(device_->rank(rank)->Finish());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExecutionRecord> ExecuteSchedule(const ExecutionPlan& plan,
                                                ExecutionDevice* device,
                                                const ExecutionHooks& hooks) {
  RETURN_IF_ERROR(schedules::ValidateSchedule(plan.schedule));
  RETURN_IF_ERROR(schedules::InterpretSchedule(plan.schedule).status());
  const ExecutionOrder order =
      MakeExecutionOrder(plan, schedules::Dependencies(plan.schedule));
  Board board(plan.schedule, order);
  return ExecuteOrder(plan, order, &board, device, hooks);
}

absl::StatusOr<ExecutionRecord> ExecuteOrder(const ExecutionPlan& plan,
                                             const ExecutionOrder& order,
                                             Board* board,
                                             ExecutionDevice* device,
                                             const ExecutionHooks& hooks) {
  return ScheduleExecutor(plan, order, board, device, hooks).Run();
}

absl::Status CheckVersions(const ExecutionPlan& plan,
                           const ExecutionRecord& record) {
  constexpr int kMostShown = 10;
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(plan.schedule));
  std::vector<std::string> differences;
  int count = 0;
  for (size_t step = 0; step < record.steps.size(); ++step) {
    const auto& uses = record.steps[step].uses;
    for (size_t stage = 0; stage < semantics.uses.size(); ++stage) {
      for (size_t k = 0; k < semantics.uses[stage].size(); ++k) {
        const schedules::VersionUse& expected = semantics.uses[stage][k];
        const schedules::VersionUse& found = uses[stage][k];
        const auto compare = [&](const char* what, int was, int should) {
          if (was == should || ++count > kMostShown) return;
          differences.push_back(absl::StrCat("step ", step, ", stage ", stage,
                                             ", microbatch ", k, ": ", what,
                                             " ", was, ", expected ", should));
        };
        compare("its forward read version", found.forward_version,
                expected.forward_version);
        compare("its backward read version", found.backward_version,
                expected.backward_version);
        compare("its gradient joined update", found.update, expected.update);
      }
    }
  }
  if (count == 0) return absl::OkStatus();
  if (count > kMostShown) {
    differences.push_back(absl::StrCat("and ", count - kMostShown, " more"));
  }
  return absl::FailedPreconditionError(absl::StrJoin(differences, "\n"));
}

}  // namespace weir::calibrate
