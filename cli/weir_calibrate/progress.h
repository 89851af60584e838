// SPDX-License-Identifier: Apache-2.0
// A status line for interactive use, and a watchdog for unattended runs.
#ifndef WEIR_CLI_WEIR_CALIBRATE_PROGRESS_H_
#define WEIR_CLI_WEIR_CALIBRATE_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"

namespace weir::cli {

// A line that is overwritten: "[57/210] 3 min left, gemm m 2048 ..., last 312
// us". Shown only if standard error is a terminal.
class WorkloadProgress {
 public:
  WorkloadProgress(bool quiet, int num_done, int num_all,
                   double estimated_seconds);
  ~WorkloadProgress() { Clear(); }

  void Begin(absl::string_view what);
  // `estimated_seconds`: the estimate of this workload.
  void End(absl::string_view result, double estimated_seconds);
  void Clear();

 private:
  bool enabled_;
  int num_done_, num_all_;
  double estimated_left_, estimated_done_ = 0;
  std::string last_;
  std::chrono::steady_clock::time_point begin_;
  bool shown_ = false;
};

// Calls `on_hang` from its own thread, with the operation begun last, if there
// was no sign of life for the timeout. `on_hang` should not return, since a
// hanging operation cannot be ended otherwise.
class Watchdog {
 public:
  Watchdog(double timeout_seconds,
           std::function<void(const std::string& what)> on_hang);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void Begin(const std::string& what);
  void Alive();

 private:
  void Watch();

  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> timeout_;
  const std::function<void(const std::string&)> on_hang_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  Clock::time_point last_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_PROGRESS_H_
