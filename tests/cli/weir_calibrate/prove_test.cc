// SPDX-License-Identifier: Apache-2.0
// Tests tools/prove_on_gpu with a fake GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::prove_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ProgramRun Prove(const std::string& fake) {
  static int runs = 0;
  const std::string folder = absl::StrCat(TestFolder(), "/prove", ++runs);
  const int status =
      std::system(absl::StrCat("WEIR_FAKE='", fake, "' WEIR_CALIBRATE='",
                               WEIR_PROGRAM, "' '", WEIR_SOURCE_DIR,
                               "/tools/prove_on_gpu' '", folder, "' gpt2 >'",
                               TestFolder(), "/out' 2>'", TestFolder(), "/err'")
                      .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          ReadFile(absl::StrCat(TestFolder(), "/out")).value_or(""),
          ReadFile(absl::StrCat(TestFolder(), "/err")).value_or("")};
}

TEST(ProveOnGpuTest, EveryCheckHoldsOnAGpuThatFollowsItsFigures) {
  const ProgramRun run = Prove("noise=0.005;efficient=1");
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("wrong or failed operations"),
                    HasSubstr("memory of a stage"), Not(HasSubstr("FAILS")),
                    // Nothing was left unmeasured.
                    Not(HasSubstr("         -  "))));
}

TEST(ProveOnGpuTest, WrongOrMissingKernelsFailByTheirLine) {
  const ProgramRun wrong = Prove("wrong=adam;efficient=1");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.out, HasSubstr("FAILS"));
}

TEST(ProveOnGpuTest, AttentionThatCannotRunFails) {
  const ProgramRun run = Prove("too_large=attention;efficient=1");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("-  FAILS"));
}

}  // namespace weir::cli::prove_test
