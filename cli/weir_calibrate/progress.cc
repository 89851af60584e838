// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "cli/options/messages.h"

namespace weir::cli {
namespace {

constexpr size_t kMostLetters = 60;

}  // namespace

WorkloadProgress::WorkloadProgress(bool quiet, int num_done, int num_all,
                                   double estimated_seconds)
    : enabled_(!quiet && IsStderrTerminal()),
      num_done_(num_done),
      num_all_(num_all),
      estimated_left_(estimated_seconds),
      begin_(std::chrono::steady_clock::now()) {}

void WorkloadProgress::Begin(absl::string_view what) {
  if (!enabled_) return;
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin_;
  // Scale by the error of the estimates so far.
  const double pace =
      estimated_done_ > 0 ? passed.count() / estimated_done_ : 1;
  std::fputs(absl::StrFormat("\r[%d/%d] %.0f min left, %s%s\033[K", num_done_,
                             num_all_, std::ceil(estimated_left_ * pace / 60),
                             EscapeLine(what.substr(0, kMostLetters)), last_)
                 .c_str(),
             stderr);
  shown_ = true;
}

void WorkloadProgress::End(absl::string_view result, double estimated_seconds) {
  ++num_done_;
  estimated_done_ += estimated_seconds;
  estimated_left_ = std::max(0.0, estimated_left_ - estimated_seconds);
  last_ = result.empty() ? "" : absl::StrFormat(", last %s", result);
}

void WorkloadProgress::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

Watchdog::Watchdog(double timeout_seconds,
                   std::function<void(const std::string&)> on_hang)
    : timeout_(timeout_seconds),
      on_hang_(std::move(on_hang)),
      last_(Clock::now()),
      thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::Begin(const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  what_ = what;
  last_ = Clock::now();
}

void Watchdog::Alive() {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = Clock::now();
}

void Watchdog::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!done_) {
    const auto end =
        last_ + std::chrono::duration_cast<Clock::duration>(timeout_);
    if (Clock::now() >= end) {
      const std::string what = what_;
      lock.unlock();
      on_hang_(what);
      lock.lock();
      last_ = Clock::now();
      continue;
    }
    changed_.wait_until(lock, end);
  }
}

}  // namespace weir::cli
