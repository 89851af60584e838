// SPDX-License-Identifier: Apache-2.0
// Another program as a child that cannot outlive its time or us.
#ifndef WEIR_BASE_CHILD_PROGRAM_H_
#define WEIR_BASE_CHILD_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// A file in memory, without a name in any folder: it ends with the last process
// that has it, even with kill -9.
class ScratchFile {
 public:
  // Unavailable when no file is to be had.
  static absl::StatusOr<ScratchFile> Make(absl::string_view contents = "");
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  // How this process and its children open it.
  std::string path() const;

 private:
  explicit ScratchFile(int fd) : fd_(fd) {}

  int fd_;  // -1: moved from
};

struct ChildEnd {
  bool was_killed = false;  // by us, at the end of its time
  int exit_code = 0;        // 128 + n after signal n
  double seconds = 0;
};

// Where PATH finds a program; empty if nowhere.
std::string FindProgram(const std::string& program);

// Runs `arguments` (the program first), without a shell, in a process group of
// its own. Its output goes to the file `output_path`; its standard error too,
// unless `error_path` names another file. The group is killed after
// `limit_seconds`, when this process is interrupted (Cancelled), and when this
// thread dies. Calls `tick` at least ten times a second. NotFound when there is
// no such program, Unavailable when no process is to be had.
absl::StatusOr<ChildEnd> RunChildProgram(
    const std::vector<std::string>& arguments, const std::string& output_path,
    double limit_seconds, const std::string& error_path = "",
    const std::function<void()>& tick = {});

}  // namespace weir

#endif  // WEIR_BASE_CHILD_PROGRAM_H_
