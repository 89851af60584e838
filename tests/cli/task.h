// SPDX-License-Identifier: Apache-2.0
// Commands that users try, with what they must see.
#ifndef WEIR_TESTS_CLI_TASK_H_
#define WEIR_TESTS_CLI_TASK_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli {

struct Task {
  const char* name;
  const char* arguments;  // "$WEIR": the program
  int exit_code;
  std::vector<const char*> out;  // phrases on standard output
  std::vector<const char*> err = {};
  std::vector<const char*> files = {};   // written, and not empty
  std::vector<const char*> absent = {};  // from both outputs
  bool wide = false;                     // lines may be long: --wide, findings
};

inline void PrintTo(const Task& task, std::ostream* out) { *out << task.name; }

inline std::string NameOf(const testing::TestParamInfo<Task>& info) {
  return info.param.name;
}

// Runs the task and expects all of it except the width of lines.
inline ProgramRun RunTask(const Task& task) {
  using testing::HasSubstr;
  ProgramRun run =
      RunWeir(absl::StrReplaceAll(task.arguments, {{"$WEIR", WEIR_PROGRAM}}));
  EXPECT_EQ(run.exit_code, task.exit_code) << run.out << run.err;
  for (const char* phrase : task.out) {
    EXPECT_THAT(run.out, HasSubstr(phrase)) << run.err;
  }
  for (const char* phrase : task.err) EXPECT_THAT(run.err, HasSubstr(phrase));
  for (const char* phrase : task.absent) {
    EXPECT_THAT(absl::StrCat(run.out, run.err),
                testing::Not(HasSubstr(phrase)));
  }
  for (const char* file : task.files) {
    const auto text = ReadFile(absl::StrCat(TestFolder(), "/", file));
    EXPECT_TRUE(text.ok() && !text->empty()) << file << ": " << text.status();
  }
  return run;
}

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_TASK_H_
