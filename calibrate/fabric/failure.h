// SPDX-License-Identifier: Apache-2.0
// The first failure, reported exactly once: by the waiting main thread or, if
// that is stuck in a transfer, by the thread that watches the connections.
#ifndef WEIR_CALIBRATE_FABRIC_FAILURE_H_
#define WEIR_CALIBRATE_FABRIC_FAILURE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace weir::calibrate {

// Prints an error; does nothing if the status is OK.
using ReportError = std::function<void(const absl::Status& status)>;

// Requires: all calls hold one mutex of the owner.
class Failure {
 public:
  // Records the first failure; ignores later ones.
  void Set(absl::Status status, int exit_code) {
    if (happened()) return;
    status_ = std::move(status);
    exit_code_ = exit_code;
    since_ = absl::Now();
  }
  bool happened() const { return exit_code_ >= 0; }
  const absl::Status& status() const { return status_; }
  int exit_code() const { return exit_code_; }

  // Returns true for the first caller after a failure, which must report it.
  bool Claim() { return happened() && !std::exchange(claimed_, true); }
  // Returns true if the main thread has not claimed the failure within a
  // second.
  bool IsLeftAlone() const {
    return happened() && !claimed_ && absl::Now() - since_ > absl::Seconds(1);
  }

 private:
  absl::Status status_;
  int exit_code_ = -1;
  bool claimed_ = false;
  absl::Time since_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_FAILURE_H_
