// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/base/temporary_folder.h"

namespace weir::output_file_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public TemporaryFolderTest {
 protected:
  bool IsOwn(absl::string_view contents, const ReplaceOptions& options = {}) {
    EXPECT_TRUE(WriteFile(Path("file"), contents).ok());
    const absl::Status status = CheckOutput(Path("file"), options);
    EXPECT_EQ(status.ok(), IsReplaceable(Path("file"), options));
    return status.ok();
  }
};

TEST_F(OutputFileTest, FilesWithTheMarkAreReplaced) {
  EXPECT_TRUE(IsOwn(MarkText("name: 'a'\n")));
  EXPECT_TRUE(IsOwn(MarkJson("{\"a\":1}")));
  EXPECT_TRUE(IsOwn(MarkJson("{\n  \"a\": 1\n}\n")));
  EXPECT_TRUE(IsOwn(MarkSvg("<?xml version=\"1.0\"?>\n<svg></svg>\n")));
  EXPECT_TRUE(IsOwn(MarkSvg("<svg></svg>\n")));
  EXPECT_TRUE(IsOwn(MarkPdf(
      absl::StrCat("%PDF-1.5\n", std::string(5000, 'x'), "\n%%EOF\n"))));
  EXPECT_FALSE(IsOwn("%PDF-1.5\n%%EOF\n"));
  // Only a PDF has the mark at its end.
  EXPECT_FALSE(IsOwn(MarkPdf(std::string(5000, 'x'))));
  const std::string png =
      MarkPng(absl::StrCat("\x89PNG\r\n\x1a\n", std::string(25, 'h'), "rest"));
  EXPECT_TRUE(IsOwn(png));
  EXPECT_TRUE(absl::EndsWith(png, "rest"));
  EXPECT_TRUE(IsOwn(""));
}

TEST_F(OutputFileTest, AnyOtherFileStays) {
  for (const char* contents :
       {"notes\n", " ", "{\"a\":1}", "name: 'a'\n", "<svg></svg>\n",
        "SQLite format 3", "Written by weir\n", "# Written by someone\n"}) {
    EXPECT_FALSE(IsOwn(contents)) << contents;
    EXPECT_THAT(
        WriteOutput(Path("file"), "x", {}).message(),
        HasSubstr("file: was not written by weir; choose another file, or "
                  "--force to overwrite it"));
    EXPECT_EQ(*ReadFile(Path("file")), contents);
  }
  // A mark after the first kMarkBytes does not count.
  EXPECT_FALSE(IsOwn(std::string(kMarkBytes, ' ') + MarkText("")));
  std::string database("SQLite format 3\0", 16);
  database.resize(100, '\0');
  EXPECT_FALSE(IsOwn(database));
  database.replace(68, 4, "weir");
  EXPECT_TRUE(IsOwn(database));
}

TEST_F(OutputFileTest, ForceReplacesAnyFile) {
  ReplaceOptions options;
  options.force = true;
  EXPECT_TRUE(IsOwn("notes", options));
  EXPECT_TRUE(WriteOutput(Path("file"), "x", options).ok());
  EXPECT_EQ(*ReadFile(Path("file")), "x");
}

TEST_F(OutputFileTest, TheSameContentsAreNoLoss) {
  EXPECT_FALSE(IsOwn("0F0,0B0\n"));
  EXPECT_TRUE(WriteOutput(Path("file"), "0F0,0B0\n", {}).ok());
  EXPECT_FALSE(WriteOutput(Path("file"), "0F0,0B1\n", {}).ok());
}

TEST_F(OutputFileTest, AFirstLineMayTell) {
  ReplaceOptions options;
  options.is_own_line = [](absl::string_view line) { return line == "a,b"; };
  EXPECT_TRUE(IsOwn("a,b\n1,2\n", options));
  EXPECT_TRUE(IsOwn("a,b", options));
  EXPECT_FALSE(IsOwn("a,b,c\n1,2,3\n", options));
  EXPECT_FALSE(IsOwn("\na,b\n", options));
}

TEST_F(OutputFileTest, ACompanionWithTheMarkTells) {
  ReplaceOptions options;
  options.companion = Path("companion");
  EXPECT_FALSE(IsOwn("0F0\n", options));
  ASSERT_TRUE(WriteFile(Path("companion"), "{}").ok());
  EXPECT_FALSE(IsOwn("0F0\n", options));
  ASSERT_TRUE(WriteFile(Path("companion"), MarkJson("{\"a\":1}")).ok());
  EXPECT_TRUE(IsOwn("0F0\n", options));
}

TEST_F(OutputFileTest, WhatIsNoFileTakesAnything) {
  EXPECT_TRUE(CheckOutput("", {}).ok());
  EXPECT_TRUE(CheckOutput(Path("new"), {}).ok());
  EXPECT_TRUE(CheckOutput("/dev/null", {}).ok());
  EXPECT_TRUE(WriteOutput("/dev/null", "x", {}).ok());
  // A link is judged by its target.
  ASSERT_TRUE(WriteFile(Path("target"), "notes").ok());
  fs::create_symlink("target", Path("link"));
  EXPECT_FALSE(CheckOutput(Path("link"), {}).ok());
  fs::create_symlink("circle", Path("circle"));
  EXPECT_THAT(CheckOutput(Path("circle"), {}).message(),
              HasSubstr("Too many levels"));
}

TEST_F(OutputFileTest, TwoOutputsNeedTwoFiles) {
  fs::create_symlink("new", Path("link"));
  EXPECT_EQ(CheckOutputs({{"--out", Path("new"), {}},
                          {"--plot", "", {}},
                          {"--trace", Path("link"), {}}})
                .message(),
            absl::StrCat("command line: --trace is ", Path("link"),
                         ", the same file as --out; choose another file"));
  EXPECT_TRUE(CheckOutputs({{"--out", Path("new"), {}},
                            {"--plot", "", {}},
                            {"--report", "", {}},
                            {"--trace", Path("other"), {}}})
                  .ok());
  // Each output is checked with its own options.
  ASSERT_TRUE(WriteFile(Path("other"), "notes").ok());
  ReplaceOptions force;
  force.force = true;
  EXPECT_TRUE(
      CheckOutputs({{"--out", "", {}}, {"--trace", Path("other"), force}})
          .ok());
  EXPECT_THAT(
      CheckOutputs({{"--out", Path("new"), force}, {"--b", Path("other"), {}}})
          .message(),
      HasSubstr("other: was not written by weir"));
}

TEST_F(OutputFileTest, MarksKeepTheFormat) {
  EXPECT_EQ(MarkJson("{\"a\":1}"),
            absl::StrCat("{\"generator\":\"", kOutputMark, "\",\"a\":1}"));
  EXPECT_EQ(MarkJson("{\n  \"a\": 1\n}\n"),
            absl::StrCat("{\n  \"generator\": \"", kOutputMark,
                         "\",\n  \"a\": 1\n}\n"));
  EXPECT_EQ(MarkSvg("<?xml version=\"1.0\"?>\n<svg/>\n"),
            absl::StrCat("<?xml version=\"1.0\"?>\n<!-- ", kOutputMark,
                         " -->\n<svg/>\n"));
}

}  // namespace weir::output_file_test
