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
// has it open ends, even by SIGKILL.
class ScratchFile {
 public:
  // Returns Unavailable if the kernel cannot create one.
  static absl::StatusOr<ScratchFile> Make(absl::string_view contents = "");
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  // Returns a path that this process and its children can open.
  std::string path() const;

 private:
  explicit ScratchFile(int fd) : fd_(fd) {}

  int fd_;  // -1 if moved from
};

struct ChildEnd {
  bool was_killed = false;  // true if the time limit was reached
  int exit_code = 0;        // 128 + n if signal n ended it
  double seconds = 0;
};

// Returns the path of a program found through PATH, or an empty string.
std::string FindProgram(const std::string& program);

// Runs `arguments` (the program first) without a shell, in its own process
// group. Writes its output to the file `output_path`, and also its standard
// error unless `error_path` names another file. Kills the group after
// `limit_seconds`, when this process is interrupted (returns Cancelled), and
// when this thread ends. Calls `tick` at least ten times per second. Returns
// NotFound if the program does not exist, Unavailable if no process can be
// created.
absl::StatusOr<ChildEnd> RunChildProgram(
    const std::vector<std::string>& arguments, const std::string& output_path,
    double limit_seconds, const std::string& error_path = "",
    const std::function<void()>& tick = {});

}  // namespace weir

#endif  // WEIR_BASE_CHILD_PROGRAM_H_
