// SPDX-License-Identifier: Apache-2.0
// One run at a time writes an output: two would disturb each other's times.
#ifndef WEIR_CALIBRATE_PROGRAM_OUTPUT_LOCK_H_
#define WEIR_CALIBRATE_PROGRAM_OUTPUT_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace weir {

// Held while it lives, given back however the process ends.
class OutputLock {
 public:
  // Returns PATH.lock.
  static std::string PathOf(const std::string& path);

  // Takes the file PATH.lock. InvalidArgument where another process has it.
  static absl::StatusOr<OutputLock> Take(const std::string& path);
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&&) = delete;
  ~OutputLock();

 private:
  OutputLock(std::string path, int fd);

  std::string path_;
  int fd_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_PROGRAM_OUTPUT_LOCK_H_
