// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/temporary_file.h"
#include "base/worker_pool.h"

namespace {

int num_fdatasyncs = 0;

}  // namespace

// Overrides the C library's function in this program.
extern "C" int fdatasync(int) {
  ++num_fdatasyncs;
  return 0;
}

namespace weir::plan::shard_test {

using testing::HasSubstr;

class ShardTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "weir-shard-XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = ShardPath(folder_, {0, 1});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes a head and two points.
  void WriteTwo() {
    auto writer = ShardWriter::Open(path_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    SweepHead head;
    head.set_sweep("text \"with\" quotes\nand lines");
    ASSERT_TRUE(writer->Append(head).ok());
    for (uint32_t point : {0, 1}) {
      SweepOutcome outcome;
      outcome.set_point(point);
      outcome.set_kind(SWEEP_DONE);
      outcome.set_batch_seconds(0.1 + 0.2 * point);
      ASSERT_TRUE(writer->Append(outcome).ok());
    }
  }

  std::string folder_, path_;
};

TEST_F(ShardTest, WhatIsAppendedIsReadAgain) {
  WriteTwo();
  const auto contents = ReadShardFile(path_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->head.sweep(), "text \"with\" quotes\nand lines");
  ASSERT_EQ(contents->outcomes.size(), 2);
  EXPECT_EQ(contents->outcomes[1].batch_seconds(), 0.1 + 0.2);
  EXPECT_THAT(contents->damage, testing::IsEmpty());
}

TEST_F(ShardTest, AFileCutAtAnyByteIsGoneOnWithFromItsLastWholeLine) {
  WriteTwo();
  const std::string whole = *ReadFile(path_);
  const size_t first = whole.find('\n') + 1;
  const size_t second = whole.find('\n', first) + 1;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    ASSERT_TRUE(WriteFile(path_, whole.substr(0, cut)).ok());
    const size_t num_whole = cut < first          ? 0
                             : cut < second       ? 0
                             : cut < whole.size() ? 1
                                                  : 2;
    const auto writer = ShardWriter::Open(path_);
    ASSERT_TRUE(writer.ok()) << cut << ": " << writer.status();
    EXPECT_EQ(writer->contents().has_head, cut >= first) << cut;
    EXPECT_EQ(writer->contents().outcomes.size(), num_whole) << cut;
    EXPECT_THAT(writer->contents().damage, testing::IsEmpty()) << cut;
    const std::string left = *ReadFile(path_);
    EXPECT_TRUE(left.empty() || left.back() == '\n') << cut;
  }
}

TEST_F(ShardTest, ADamagedLineCostsItsPointOnly) {
  WriteTwo();
  std::string bytes = *ReadFile(path_);
  const size_t second = bytes.find('\n') + 1;
  // Zeros, as a machine may leave them after a power failure.
  bytes.replace(second, 20, 20, '\0');
  ASSERT_TRUE(WriteFile(path_, bytes).ok());
  const auto contents = ReadShardFile(path_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_THAT(contents->damage,
              testing::ElementsAre(
                  absl::StrCat(path_, ": record 2 (byte ", second,
                               ") is damaged: its checksum does not match")));
  ASSERT_EQ(contents->outcomes.size(), 1);
  EXPECT_EQ(contents->outcomes[0].point(), 1);
}

TEST_F(ShardTest, AFileThatIsNoShardIsRefusedAndStays) {
  for (const char* text : {"a letter\n", "a letter", "{}\n", "\n"}) {
    ASSERT_TRUE(WriteFile(path_, text).ok());
    EXPECT_THAT(std::string(ShardWriter::Open(path_).status().message()),
                HasSubstr("does not start with the header"));
    EXPECT_FALSE(ReadShardFile(path_).ok());
    EXPECT_EQ(*ReadFile(path_), text);
  }
  EXPECT_TRUE(ShardWriter::Open(path_, /*force=*/true).ok());
  EXPECT_EQ(*ReadFile(path_), "");
}

TEST_F(ShardTest, OnlyARegularFileIsAShard) {
  alarm(60);  // ends a test that blocks on opening the pipe
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (const bool force : {false, true}) {
    EXPECT_EQ(ShardWriter::Open(path_, force).status().message(),
              absl::StrCat(path_, ": is a pipe, expected a file"));
  }
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/dev/zero", path_);
  EXPECT_EQ(ShardWriter::Open(path_, /*force=*/true).status().message(),
            absl::StrCat(path_, ": is a device, expected a file"));
  alarm(0);
}

TEST_F(ShardTest, AShardAboveTheLimitIsNotRead) {
  WriteTwo();
  std::filesystem::resize_file(path_, size_t{5} << 30);  // sparse
  EXPECT_THAT(std::string(ShardWriter::Open(path_).status().message()),
              HasSubstr("is larger than 4.00 GiB, the limit"));
}

TEST_F(ShardTest, ARecordThatFitsInPartLeavesNoHalfLine) {
  WriteTwo();
  const std::string whole = *ReadFile(path_);
  IgnoreFileSizeSignal();
  auto writer = ShardWriter::Open(path_);
  ASSERT_TRUE(writer.ok());
  SweepOutcome outcome;
  outcome.set_kind(SWEEP_DONE);
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {whole.size() + 5, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = writer->Append(outcome);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot be written: File too large"));
  EXPECT_EQ(*ReadFile(path_), whole);
  // Once there is room again, appending continues.
  ASSERT_TRUE(writer->Append(outcome).ok());
  EXPECT_EQ(ReadShardFile(path_)->outcomes.size(), 3);
}

TEST_F(ShardTest, EveryFlippedBitIsFound) {
  WriteTwo();
  const std::string whole = *ReadFile(path_);
  const ShardContents right = *ParseShardFile("s", whole);
  std::set<std::string> outcomes;
  for (const SweepOutcome& outcome : right.outcomes) {
    outcomes.insert(outcome.SerializeAsString());
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto contents = ParseShardFile("s", flipped);
    if (!contents.ok()) continue;
    EXPECT_EQ(contents->head.sweep(), right.head.sweep()) << bit;
    for (const SweepOutcome& outcome : contents->outcomes) {
      EXPECT_EQ(outcomes.count(outcome.SerializeAsString()), 1) << bit;
    }
    EXPECT_LT(contents->outcomes.size(), right.outcomes.size()) << bit;
    // A partial last line is cut off and written again.
    EXPECT_TRUE(!contents->damage.empty() ||
                contents->num_bytes < static_cast<off_t>(whole.size()))
        << bit;
  }
}

TEST_F(ShardTest, ADamagedHeadAndOneWithoutChecksumAreErrors) {
  WriteTwo();
  std::string bytes = *ReadFile(path_);
  const size_t first = bytes.find('\n') + 1;
  bytes[30] = static_cast<char>(bytes[30] ^ 4);
  EXPECT_EQ(ParseShardFile("s", bytes).status().message(),
            "s: record 1 (byte 0) is damaged: its checksum does not match");
  EXPECT_THAT(
      ParseShardFile("s", "{\"sweep\":\"name: 'a'\"}\n").status().message(),
      HasSubstr("s: its records have no checksums"));
  // A point in place of the head.
  EXPECT_EQ(ParseShardFile("s", bytes.substr(first)).status().message(),
            "s: record 1 is not the header of a sweep");
}

TEST_F(ShardTest, RecordsAreSyncedToDisk) {
  auto writer = ShardWriter::Open(path_);
  ASSERT_TRUE(writer.ok());
  SweepHead head;
  head.set_sweep("a");
  num_fdatasyncs = 0;
  ASSERT_TRUE(writer->Append(head).ok());
  EXPECT_EQ(num_fdatasyncs, 1);
  SweepOutcome outcome;
  outcome.set_kind(SWEEP_DONE);
  ASSERT_TRUE(writer->Append(outcome).ok());
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(num_fdatasyncs, 2);
  // Nothing is left to sync.
  ASSERT_TRUE(writer->Sync().ok());
  EXPECT_EQ(num_fdatasyncs, 2);
  // The next sync is due after a second.
  ASSERT_TRUE(writer->Append(outcome).ok());
  sleep(2);
  ASSERT_TRUE(writer->SyncIfDue().ok());
  EXPECT_EQ(num_fdatasyncs, 3);
}

TEST_F(ShardTest, OnlyOneProcessWritesAndItsChildrenDoNotHoldTheLock) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = ForkChild();
  if (holder == 0) {
    const auto writer = ShardWriter::Open(path_);
    // This child has its own session and outlives the holder of the lock, as a
    // worker may for a short time.
    if (fork() == 0) {
      (void)!write(ready[1], "x", 1);
      sleep(2);
      _exit(0);
    }
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const auto second = ShardWriter::Open(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("(process ", holder, ")")));
  kill(holder, SIGKILL);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  EXPECT_TRUE(ShardWriter::Open(path_).ok());
}

TEST_F(ShardTest, NamesOfShards) {
  EXPECT_EQ(ParseShard("3/4")->index, 3);
  for (const char* bad : {"4/4", "-1/4", "1", "1/2/3", "x/2", "0/0", ""}) {
    EXPECT_FALSE(ParseShard(bad).ok()) << bad;
  }
  WriteTwo();
  ASSERT_TRUE(WriteFile(absl::StrCat(folder_, "/slurm-0.log"), "x").ok());
  EXPECT_THAT(*ShardPaths(folder_), testing::ElementsAre(path_));
  EXPECT_TRUE(absl::IsNotFound(ShardPaths(folder_ + "/none").status()));
}

}  // namespace weir::plan::shard_test
