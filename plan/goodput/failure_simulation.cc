// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/failure_simulation.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <random>

namespace weir::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::mt19937_64 Generator(uint64_t seed, int run, int stream) {
  std::seed_seq words{
      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
      static_cast<uint32_t>(run), static_cast<uint32_t>(stream)};
  return std::mt19937_64(words);
}

// Returns a number in (0, 1). The distributions of the standard library differ
// between implementations.
double Uniform(std::mt19937_64& generator) {
  return (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53;
}

// The failures of all classes in order of time.
class FailureTimes {
 public:
  FailureTimes(const RunModel& model, uint64_t seed, int run)
      : failures_(model.failures) {
    for (int i = 0; i < static_cast<int>(failures_.size()); ++i) {
      generators_.push_back(Generator(seed, run, i + 1));
      next_.push_back(0);
      Advance(i);
    }
  }

  int First() const {
    return static_cast<int>(std::min_element(next_.begin(), next_.end()) -
                            next_.begin());
  }
  double TimeOf(int failure) const { return next_[failure]; }
  void Advance(int failure) {
    next_[failure] -= failures_[failure].mean_seconds_between *
                      std::log(Uniform(generators_[failure]));
  }

 private:
  const std::vector<JobFailures>& failures_;
  std::vector<std::mt19937_64> generators_;
  std::vector<double> next_;
};

class FailingRun {
 public:
  FailingRun(const RunModel& model, uint64_t seed, int run)
      : model_(model),
        failure_times_(model, seed, run),
        num_spares_(model.num_spares),
        num_replicas_(std::max(model.num_elastic_replicas, 1)) {}

  RunTimes Run() {
    while (done_ < model_.work_seconds && !IsGivenUp()) Attempt();
    times_.useful_seconds = done_;
    times_.end_seconds = now_;
    return times_;
  }

 private:
  bool IsGivenUp() const {
    return now_ > kMostSlowdown * model_.work_seconds ||
           times_.num_failures > kMostFailures;
  }
  double stall() const { return model_.checkpoint.stall_seconds; }
  double safe() const { return model_.checkpoint.safe_seconds; }
  // Seconds per second of work.
  double slowness() const {
    return 1.0 * num_replicas_ / (num_replicas_ - num_missing_);
  }
  double WorkOf(double num_cycles) const {
    return std::min(num_cycles * model_.interval_seconds,
                    model_.work_seconds - done_);
  }

  // Works from the last safe checkpoint until the end, the return of a replica
  // or a failure, and recovers.
  void Attempt() {
    const double left = model_.work_seconds - done_;
    const double num_cycles =
        std::ceil(left / model_.interval_seconds * (1 - 1e-12));
    const double end =
        now_ + left * slowness() + (num_cycles - 1) * stall() + safe();
    const double rejoin = RejoinTime();
    const int failure = failure_times_.First();
    const double failed = failure_times_.TimeOf(failure);
    if (std::min(end, rejoin) <= failed) {
      if (end <= rejoin) {
        Keep(num_cycles, end - now_);
      } else {
        Keep(std::round((rejoin - now_ - safe() + stall()) / cycle()),
             rejoin - now_);
        Rejoin();
      }
      return;
    }
    const double elapsed = failed - now_;
    const double kept = std::clamp(
        std::floor((elapsed - safe() + stall()) / cycle()), 0.0, num_cycles);
    const double kept_seconds = WorkOf(kept) * slowness() + kept * stall();
    Keep(kept, kept_seconds);
    times_.lost_seconds += elapsed - kept_seconds;
    now_ = failed;
    Recover(failure);
  }

  double cycle() const {
    return model_.interval_seconds * slowness() + stall();
  }

  // Ends `num_cycles` cycles that took `seconds` since now_.
  void Keep(double num_cycles, double seconds) {
    const double work = WorkOf(num_cycles);
    done_ = num_cycles * model_.interval_seconds >=
                    (model_.work_seconds - done_) * (1 - 1e-12)
                ? model_.work_seconds
                : done_ + work;
    times_.degraded_seconds += work * (slowness() - 1);
    times_.stall_seconds += seconds - work * slowness();
    now_ += seconds;
  }

  // Returns when the first checkpoint after the first repair is safe, if a
  // replica is missing.
  double RejoinTime() const {
    if (num_missing_ == 0 || repairs_.empty()) return kNever;
    const double ready = std::max(
        *std::min_element(repairs_.begin(), repairs_.end()) - now_, 0.0);
    const double num_cycles =
        std::max(std::ceil((ready - safe() + stall()) / cycle()), 1.0);
    return now_ + num_cycles * cycle() - stall() + safe();
  }

  void Rejoin() {
    RemoveFirstRepair();
    --num_missing_;
    if (!Spend(model_.restart_seconds + model_.checkpoint.load_seconds)) {
      RecoverUntilDone();
    }
  }

  // Recovers from a failure at now_, and from those during the recovery.
  void Recover(int failure) {
    Count(failure);
    RecoverUntilDone();
  }

  void RecoverUntilDone() {
    const double seconds = model_.detection_seconds + model_.restart_seconds +
                           model_.checkpoint.load_seconds;
    while (!Spend(seconds) && !IsGivenUp()) {
    }
  }

  // Spends seconds of recovery. Returns false at a failure, which then takes
  // its node.
  bool Spend(double seconds) {
    const int failure = failure_times_.First();
    const double failed = failure_times_.TimeOf(failure);
    if (now_ + seconds <= failed) {
      times_.recovery_seconds += seconds;
      now_ += seconds;
      return true;
    }
    times_.recovery_seconds += failed - now_;
    now_ = failed;
    Count(failure);
    return false;
  }

  void Count(int failure) {
    ++times_.num_failures;
    failure_times_.Advance(failure);
    if (model_.failures[failure].replaces_node && model_.num_spares >= 0) {
      TakeNode(model_.failures[failure].repair_seconds);
    }
  }

  void TakeNode(double repair_seconds) {
    // Nodes repaired meanwhile are spares, unless replicas wait for them.
    while (num_missing_ == 0 && !repairs_.empty() && FirstRepair() <= now_) {
      RemoveFirstRepair();
      ++num_spares_;
    }
    repairs_.push_back(now_ + repair_seconds);
    if (num_spares_ > 0) {
      --num_spares_;
    } else if (num_missing_ + 1 < num_replicas_) {
      ++num_missing_;
    } else {
      WaitForRepair();
    }
  }

  void WaitForRepair() {
    const double ready = std::max(FirstRepair(), now_);
    times_.waiting_seconds += ready - now_;
    now_ = ready;
    RemoveFirstRepair();
    // A job that does not run cannot fail.
    while (failure_times_.TimeOf(failure_times_.First()) < now_) {
      failure_times_.Advance(failure_times_.First());
    }
  }

  double FirstRepair() const {
    return *std::min_element(repairs_.begin(), repairs_.end());
  }
  void RemoveFirstRepair() {
    repairs_.erase(std::min_element(repairs_.begin(), repairs_.end()));
  }

  const RunModel& model_;
  FailureTimes failure_times_;
  int num_spares_;
  int num_replicas_;
  int num_missing_ = 0;          // replicas
  std::vector<double> repairs_;  // end times
  double now_ = 0;
  double done_ = 0;  // seconds of work before the last safe checkpoint
  RunTimes times_;
};

}  // namespace

RunTimes SimulateRun(const RunModel& model, uint64_t seed, int run) {
  return FailingRun(model, seed, run).Run();
}

double NormalNumber(uint64_t seed, int run, int num_runs) {
  std::mt19937_64 generator = Generator(seed, run, 0);
  return boost::math::quantile(boost::math::normal(),
                               (run + Uniform(generator)) / num_runs);
}

}  // namespace weir::plan
