// SPDX-License-Identifier: Apache-2.0
// Another program as a child that cannot outlive its time or us.
#ifndef WEIR_PLAN_SYNTHESIS_CHILD_PROGRAM_H_
#define WEIR_PLAN_SYNTHESIS_CHILD_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// A folder for scratch files, gone with this object.
class ScratchFolder {
 public:
  static absl::StatusOr<ScratchFolder> Make(absl::string_view prefix);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  std::string File(absl::string_view name) const;

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

struct ChildEnd {
  bool was_killed = false;  // by us, at the end of its time
  int exit_code = 0;        // 128 + n after signal n
  double seconds = 0;
};

// Where PATH finds a program; empty if nowhere.
std::string FindProgram(const std::string& program);

// Runs `arguments` (the program first) in a process group of its own, its
// output to the file `output_path`. The group is killed after `limit_seconds`,
// after Ctrl-C (Cancelled), and when this thread dies. NotFound when there is
// no such program, Unavailable when no process is to be had.
absl::StatusOr<ChildEnd> RunChildProgram(
    const std::vector<std::string>& arguments, const std::string& output_path,
    double limit_seconds);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_CHILD_PROGRAM_H_
