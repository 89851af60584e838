// SPDX-License-Identifier: Apache-2.0
// The first thing that went wrong, told exactly once: by whoever waits, or,
// where the main thread is stuck in a transfer, by the thread that watches.
#ifndef WEIR_CALIBRATE_NETWORK_FAILURE_H_
#define WEIR_CALIBRATE_NETWORK_FAILURE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weir {

// Prints an error; nothing where it is none.
using Tell = std::function<void(const absl::Status& status)>;

// REQUIRES: every call under one mutex of the owner.
class Failure {
 public:
  // Only the first counts.
  void Set(absl::Status status, int exit_code) {
    if (happened()) return;
    status_ = std::move(status);
    exit_code_ = exit_code;
    since_ = absl::Now();
  }
  bool happened() const { return exit_code_ >= 0; }
  const absl::Status& status() const { return status_; }
  int exit_code() const { return exit_code_; }

  // True for the first who asks.
  bool Claim() { return happened() && !std::exchange(claimed_, true); }
  // The main thread had its time to come and see.
  bool IsLeftAlone() const {
    return happened() && !claimed_ && absl::Now() - since_ > absl::Seconds(1);
  }

 private:
  absl::Status status_;
  int exit_code_ = -1;
  bool claimed_ = false;
  absl::Time since_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_FAILURE_H_
