// SPDX-License-Identifier: Apache-2.0
// Locks an output: two concurrent runs would disturb each other's times.
#ifndef WEIR_CLI_WEIR_CALIBRATE_OUTPUT_LOCK_H_
#define WEIR_CLI_WEIR_CALIBRATE_OUTPUT_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace weir::cli {

// A lock held for the object's lifetime, released however the process ends.
class OutputLock {
 public:
  // Returns PATH.lock.
  static std::string PathOf(const std::string& path);

  // Locks the file PATH.lock. Returns InvalidArgument if another process holds
  // the lock.
  static absl::StatusOr<OutputLock> Take(const std::string& path);
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&&) = delete;
  ~OutputLock();

 private:
  OutputLock(std::string path, int fd);

  std::string path_;
  int fd_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_OUTPUT_LOCK_H_
