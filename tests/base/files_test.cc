// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/temporary_file.h"
#include "tests/base/temporary_folder.h"

namespace weir::files_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

using FilesTest = TemporaryFolderTest;

TEST_F(FilesTest, AFileIsReplacedWhole) {
  const std::string path = Path("file");
  ASSERT_TRUE(WriteFile(path, "long before").ok());
  ASSERT_TRUE(WriteFile(path, "now").ok());
  EXPECT_EQ(*ReadFile(path), "now");
  EXPECT_EQ(NumFiles(), 1);  // no temporary is left
}

TEST_F(FilesTest, ALinkStaysAndItsTargetIsWritten) {
  fs::create_directory(Path("there"));
  fs::create_symlink("there/file", Path("link"));
  fs::create_symlink("link", Path("second"));
  // The target is missing at first and exists the second time.
  for (const char* contents : {"one", "two"}) {
    ASSERT_TRUE(WriteFile(Path("second"), contents).ok());
    EXPECT_TRUE(fs::is_symlink(Path("link")));
    EXPECT_TRUE(fs::is_symlink(Path("second")));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(Path("there/file"))));
    EXPECT_EQ(*ReadFile(Path("there/file")), contents);
  }
}

TEST_F(FilesTest, LinksInACircleAreAnError) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  for (const char* name : {"a", "b"}) {
    EXPECT_THAT(WriteFile(Path(name), "x").message(),
                HasSubstr("cannot be written: Too many levels"));
    EXPECT_THAT(CheckWritable(Path(name)).message(),
                HasSubstr("cannot be written: Too many levels"));
    EXPECT_FALSE(FollowLinks(Path(name)).ok());
  }
  EXPECT_TRUE(fs::is_symlink(Path("a")));
  EXPECT_TRUE(fs::is_symlink(Path("b")));
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(FilesTest, OnlyRegularFilesAreOpenedAsSuch) {
  alarm(60);  // ends a test that blocks on opening the pipe
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", Path("zero"));
  for (const auto& [name, kind] :
       {std::pair("pipe", "a pipe"), {"zero", "a device"}, {".", "a folder"}}) {
    EXPECT_THAT(OpenRegularFile(Path(name), O_RDONLY).status().message(),
                HasSubstr(absl::StrCat(": is ", kind, ", expected a file")));
  }
  EXPECT_THAT(
      OpenRegularFile(Path("pipe"), O_RDWR | O_CREAT).status().message(),
      HasSubstr("is a pipe"));
  EXPECT_TRUE(
      absl::IsNotFound(OpenRegularFile(Path("none"), O_RDONLY).status()));
  const auto fd = OpenRegularFile(Path("new"), O_RDWR | O_CREAT);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(WriteAll(*fd, "0123456789"));
  EXPECT_EQ(lseek(*fd, 0, SEEK_SET), 0);
  EXPECT_THAT(ReadRegularFile("new", *fd, 9).status().message(),
              HasSubstr("new: is larger than 9 "));
  EXPECT_EQ(*ReadRegularFile("new", *fd, 10), "0123456789");
  close(*fd);
  alarm(0);
}

TEST_F(FilesTest, OutputsAreTheSameThroughLinksAndSpellings) {
  fs::create_directory(Path("there"));
  fs::create_directory_symlink("there", Path("folder"));
  fs::create_symlink("folder/new", Path("link"));
  for (const char* same :
       {"there/new", "folder/new", "link", "./there/../link", "there//new"}) {
    EXPECT_TRUE(IsSameOutput(Path(same), Path("there/new"))) << same;
  }
  EXPECT_FALSE(IsSameOutput(Path("new"), Path("there/new")));
  EXPECT_TRUE(IsSameOutput("new", "./new"));
  EXPECT_TRUE(IsSameOutput("new", fs::absolute("new")));
  ASSERT_TRUE(WriteFile(Path("link"), "x").ok());
  EXPECT_TRUE(IsSameOutput(Path("link"), Path("there/new")));
  EXPECT_FALSE(IsSameOutput("/dev/null", "/dev/null"));
}

// Writes through a link, so that a bug replaces the link and not the machine's
// device.
TEST_F(FilesTest, ADeviceTakesTheBytesAndStays) {
  fs::create_symlink("/dev/null", Path("null"));
  EXPECT_TRUE(WriteFile(Path("null"), "x").ok());
  EXPECT_TRUE(fs::is_symlink(Path("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FilesTest, AFullDeviceIsAnError) {
  fs::create_symlink("/dev/full", Path("full"));
  const absl::Status status = WriteFile(Path("full"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("full: cannot be written: No space"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(FilesTest, APipeTakesTheBytesAndStays) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = ReadFile(path).value_or("nothing"); });
  EXPECT_TRUE(WriteFile(path, "through").ok());
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(FilesTest, AFolderIsNotReplaced) {
  fs::create_directory(Path("folder"));
  EXPECT_FALSE(WriteFile(Path("folder"), "x").ok());
  EXPECT_TRUE(fs::is_directory(Path("folder")));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FilesTest, WhatCannotBeWrittenIsKnownBefore) {
  EXPECT_FALSE(CheckWritable("/").ok());
  EXPECT_FALSE(CheckWritable("not/there/").ok());
  EXPECT_TRUE(CheckWritable("not/there").ok());
  EXPECT_TRUE(CheckWritable("file").ok());
  EXPECT_TRUE(CheckWritable("").ok());
  EXPECT_TRUE(CheckWritable("/dev/null").ok());
  ASSERT_TRUE(WriteFile(Path("file"), "x").ok());
  EXPECT_TRUE(CheckWritable(Path("file")).ok());
  EXPECT_THAT(CheckWritable(Path("file/below")).message(),
              HasSubstr("file is not a folder"));
  EXPECT_EQ(*ReadFile(Path("file")), "x");
  if (geteuid() == 0) return;  // root may write everywhere
  EXPECT_FALSE(CheckWritable("/etc/weir").ok());
}

TEST_F(FilesTest, APipeThatNobodyWritesIsAnError) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const absl::Status status = ReadFile(Path("pipe")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("no process has opened this pipe"));
}

TEST_F(FilesTest, ASlowWriterIsWaitedFor) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = ReadFile(path).value_or("nothing"); });
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (const char* part : {"a", "b", "c"}) {
    usleep(300'000);
    EXPECT_EQ(write(fd, part, 1), 1);
  }
  close(fd);
  reader.join();
  EXPECT_EQ(received, "abc");
}

TEST_F(FilesTest, AnEmptyPipeIsAnEmptyFile) {
  const std::string path = Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string received = "nothing";
  std::thread reader([&] { received = ReadFile(path).value_or("error"); });
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  close(fd);
  reader.join();
  EXPECT_EQ(received, "");
}

TEST_F(FilesTest, WhatIsTooLargeIsNotRead) {
  const std::string path = Path("sparse");
  ASSERT_TRUE(WriteFile(path, "x").ok());
  fs::resize_file(path, uintmax_t{1} << 40);
  EXPECT_THAT(ReadFile(path, size_t{1} << 30).status().message(),
              HasSubstr("sparse: is larger than 1.00 GiB"));
}

TEST_F(FilesTest, ADeviceEndsAtTheLimitOfTexts) {
  for (const char* path : {"/dev/zero", "/dev/random"}) {
    EXPECT_THAT(
        ReadFile(path, std::numeric_limits<size_t>::max()).status().message(),
        HasSubstr("is larger than 64.0 MiB"));
  }
  EXPECT_EQ(*ReadFile("/dev/null"), "");
}

TEST_F(FilesTest, ALinkToItselfCannotBeRead) {
  fs::create_symlink("loop", Path("loop"));
  EXPECT_THAT(ReadFile(Path("loop")).status().message(),
              HasSubstr("loop: cannot be read: Too many levels"));
}

TEST_F(FilesTest, WhatHasNoEndIsRefusedAtTheLimit) {
  const absl::Status status = ReadFile("/dev/zero").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "/dev/zero: is larger than 64.0 MiB, the limit");
  ASSERT_TRUE(WriteFile(Path("file"), "12345").ok());
  EXPECT_EQ(*ReadFile(Path("file"), 5), "12345");
  EXPECT_THAT(ReadFile(Path("file"), 4).status().message(), HasSubstr("4 B"));
}

// Uses the name that earlier versions gave to temporary files.
TEST_F(FilesTest, APlantedLinkIsNotWrittenThrough) {
  ASSERT_TRUE(WriteFile(Path("victim"), "precious").ok());
  fs::create_symlink("victim", Path(absl::StrCat("file.tmp", getpid())));
  ASSERT_TRUE(WriteFile(Path("file"), "x").ok());
  EXPECT_EQ(*ReadFile(Path("victim")), "precious");
}

TEST_F(FilesTest, AReplacedFileKeepsItsPermissions) {
  ASSERT_TRUE(WriteFile(Path("file"), "x").ok());
  ASSERT_EQ(chmod(Path("file").c_str(), 0640), 0);
  ASSERT_TRUE(WriteFile(Path("file"), "y").ok());
  EXPECT_EQ(static_cast<int>(fs::status(Path("file")).permissions()), 0640);
  const mode_t old = umask(077);
  EXPECT_TRUE(WriteFile(Path("new"), "y").ok());
  umask(old);
  EXPECT_EQ(static_cast<int>(fs::status(Path("new")).permissions()), 0600);
}

TEST_F(FilesTest, AnErrorWhileWritingKeepsTheOldFileAndLeavesNoOther) {
  ASSERT_TRUE(WriteFile(Path("file"), "before").ok());
  IgnoreFileSizeSignal();
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {100, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFile(Path("file"), std::string(1000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_THAT(status.message(), HasSubstr("file: cannot be written: File too"));
  EXPECT_EQ(*ReadFile(Path("file")), "before");
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(FilesTest, AFolderThatCannotBeMadeIsTheReason) {
  ASSERT_TRUE(WriteFile(Path("file"), "x").ok());
  EXPECT_THAT(WriteFile(Path("file/sub/new"), "x").message(),
              HasSubstr("cannot be written: Not a directory"));
}

TEST_F(FilesTest, APipeWithoutAReaderIsAnError) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(WriteFile(Path("pipe"), "x").message(),
              HasSubstr("a pipe that no process has read from for 5 s"));
}

TEST_F(FilesTest, ADeviceIsReadUpToTheLimitOfTexts) {
  EXPECT_EQ(ReadFile("/dev/zero", size_t{1} << 40).status().message(),
            "/dev/zero: is larger than 64.0 MiB, the limit");
}

}  // namespace weir::files_test
