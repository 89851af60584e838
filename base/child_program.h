// SPDX-License-Identifier: Apache-2.0
// Runs another program as a child process with a time limit.
#ifndef WEIR_BASE_CHILD_PROGRAM_H_
#define WEIR_BASE_CHILD_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// An anonymous file in memory. The kernel frees it when the last process that
// has it open ends, even by kill -9.
class ScratchFile {
 public:
  // Returns Unavailable if the kernel cannot create one.
  static absl::StatusOr<ScratchFile> Make(absl::string_view contents = "");
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  // Returns a path by which this process and its children can open it.
  std::string path() const;

 private:
  explicit ScratchFile(int fd) : fd_(fd) {}

  int fd_;  // -1: moved from
};

struct ChildEnd {
  bool was_killed = false;  // at the time limit
  int exit_code = 0;        // 128 + n if signal n ended it
  double seconds = 0;
};

// Returns the path of a program that is found by PATH, or an empty string.
std::string FindProgram(const std::string& program);

// Runs `arguments` (the program first), without a shell, in a process group of
// its own. Its output goes to the file `output_path`; its standard error too,
// unless `error_path` names another file. The group is killed after
// `limit_seconds`, when this process is interrupted (Cancelled), and when this
// thread ends. Calls `tick` at least ten times a second. Returns NotFound if
// there is no such program, Unavailable if no process can be created.
absl::StatusOr<ChildEnd> RunChildProgram(
    const std::vector<std::string>& arguments, const std::string& output_path,
    double limit_seconds, const std::string& error_path = "",
    const std::function<void()>& tick = {});

}  // namespace weir

#endif  // WEIR_BASE_CHILD_PROGRAM_H_
