// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "tests/base/temporary_folder.h"

namespace {

int num_fsyncs = 0;

}  // namespace

// Overrides the C library's function in this program.
extern "C" int fsync(int) {
  ++num_fsyncs;
  return 0;
}

namespace weir::temporary_file_test {

namespace fs = std::filesystem;

using TemporaryFileTest = TemporaryFolderTest;

TEST_F(TemporaryFileTest, CommittedFilesHaveTheNameOfTheTarget) {
  auto file = TemporaryFile::Create(Path("file"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(fs::path(file->path()).parent_path(), folder());
  ASSERT_TRUE(WriteAll(file->fd(), "text"));
  EXPECT_FALSE(fs::exists(Path("file")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(*ReadFile(Path("file")), "text");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(TemporaryFileTest, OtherFilesAreRemoved) {
  auto file = TemporaryFile::Create(Path("file"));
  ASSERT_TRUE(file.ok());
  {
    const TemporaryFile moved = *std::move(file);
    EXPECT_EQ(NumFiles(), 1);
  }
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(TemporaryFileTest, NamesAreNotPredictable) {
  const auto one = TemporaryFile::Create(Path("file"));
  const auto two = TemporaryFile::Create(Path("file"));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->path(), two->path());
  EXPECT_EQ(one->path().find(absl::StrCat(getpid())), std::string::npos);
}

TEST_F(TemporaryFileTest, ContentsAndFolderAreSyncedToDisk) {
  auto file = TemporaryFile::Create(Path("file"));
  ASSERT_TRUE(file.ok());
  num_fsyncs = 0;
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(num_fsyncs, 2);
}

TEST_F(TemporaryFileTest, AFolderThatIsMissingIsTheReason) {
  EXPECT_EQ(TemporaryFile::Create(Path("none/file")).status().message(),
            "No such file or directory");
  // A folder cannot be replaced by a file.
  fs::create_directory(Path("folder"));
  auto file = TemporaryFile::Create(Path("folder"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Commit().message(), "Is a directory");
}

// Runs `body` in a child process and returns its wait status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(TemporaryFileTest, AnInterruptRemovesThem) {
  for (const bool is_noted : {false, true}) {
    const int status = InChild([&] {
      is_noted ? NoteInterrupt() : ExitOnInterrupt();
      const auto file = TemporaryFile::Create(Path("file"));
      if (!file.ok() || NumFiles() != 1) _exit(1);
      // Sends the signal from another process, as a terminal does: two signals
      // from this process itself would count once.
      const auto interrupt = [] {
        if (fork() == 0) {
          kill(getppid(), SIGINT);
          _exit(0);
        }
        wait(nullptr);
      };
      interrupt();
      if (is_noted && NumFiles() != 1) _exit(2);
      interrupt();
    });
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_EQ(NumFiles(), 0);
  }
}

TEST_F(TemporaryFileTest, AChildLeavesThoseOfItsParent) {
  const auto file = TemporaryFile::Create(Path("file"));
  ASSERT_TRUE(file.ok());
  InChild([] { RemoveTemporaryFiles(); });
  EXPECT_EQ(NumFiles(), 1);
  RemoveTemporaryFiles();
  EXPECT_EQ(NumFiles(), 0);
}

TEST_F(TemporaryFileTest, MoreThanSignalsCanRemoveAreStillRemovedAtTheEnd) {
  std::vector<TemporaryFile> files;
  for (int i = 0; i < 100; ++i) {
    auto file = TemporaryFile::Create(Path("file"));
    ASSERT_TRUE(file.ok());
    files.push_back(*std::move(file));
  }
  EXPECT_EQ(NumFiles(), 100);
  files.clear();
  EXPECT_EQ(NumFiles(), 0);
}

}  // namespace weir::temporary_file_test
