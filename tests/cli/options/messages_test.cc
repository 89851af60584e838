// SPDX-License-Identifier: Apache-2.0
#include "cli/options/messages.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::cli::messages_test {

TEST(CapturedOutputTest, HasWhatOneThreadPrints) {
  CapturedOutput captured;
  std::thread other([] {
    CapturedOutput theirs;
    PrintNote("theirs", OutputFlags());
    EXPECT_EQ(theirs.err, "theirs\n");
  });
  other.join();
  EXPECT_TRUE(PrintResult("a\n").ok());
  EXPECT_EQ(PrintError(absl::InvalidArgumentError("x\n  y"), OutputFlags()),
            kExitUsage);
  PrintWarning("w", OutputFlags());
  EXPECT_EQ(captured.out, "a\n");
  EXPECT_EQ(captured.err, "error: x\n  y\nwarning: w\n");
}

TEST(CapturedOutputTest, IsNoTerminal) {
  const CapturedOutput captured;
  EXPECT_FALSE(IsStderrTerminal());
  EXPECT_FALSE(UsesColorOnStdout(OutputFlags()));
  EXPECT_EQ(LayoutOf(OutputFlags()).width, TextLayout::kUsualWidth);
}

}  // namespace weir::cli::messages_test
