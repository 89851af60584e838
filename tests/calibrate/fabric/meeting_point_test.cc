// SPDX-License-Identifier: Apache-2.0
// Checks what the file of --rendezvous may replace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/calibrate/fabric/rank0.h"

namespace weir::calibrate::meeting_point_test {

using ::testing::HasSubstr;

class MeetingPointTest : public testing::Test {
 protected:
  // Rank 0 waits briefly; no other rank joins.
  absl::Status Connect() const {
    Rendezvous meeting;
    meeting.file = path_;
    meeting.all_local = true;
    meeting.token = kToken;
    Leader leader(LaunchOf(2), OptionsOf(0.2));
    return leader.Connect(meeting);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "weir_meeting_point_", getpid());
};

TEST_F(MeetingPointTest, IsRemovedAtTheEnd) {
  EXPECT_EQ(Connect().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MeetingPointTest, ReplacesNoFileOfOthers) {
  ASSERT_TRUE(WriteFile(path_, "notes\n").ok());
  EXPECT_THAT(std::string(Connect().message()),
              HasSubstr("was not written by weir"));
  EXPECT_EQ(ReadFile(path_).value_or(""), "notes\n");
}

TEST_F(MeetingPointTest, ReplacesNoFolder) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(std::string(Connect().message()), HasSubstr("is a folder"));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(MeetingPointTest, ReplacesNoPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(std::string(Connect().message()),
              HasSubstr("is a device or a pipe, expected a file"));
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(MeetingPointTest, KeepsALinkAndReplacesItsTarget) {
  const std::string target = path_ + "_target";
  ASSERT_TRUE(WriteFile(target, "").ok());
  std::filesystem::create_symlink(target, path_);
  EXPECT_EQ(Connect().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(std::filesystem::exists(target));
}

}  // namespace weir::calibrate::meeting_point_test
