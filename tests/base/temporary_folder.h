// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_TESTS_BASE_TEMPORARY_FOLDER_H_
#define WEIR_TESTS_BASE_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace weir {

// Gives each test an empty folder, which is removed after the test.
class TemporaryFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "weir-test-XXXXXX");
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }
  std::string Path(absl::string_view name) const {
    return absl::StrCat(folder_, "/", name);
  }
  int NumFiles() const {
    const std::filesystem::directory_iterator files(folder_);
    return static_cast<int>(std::distance(begin(files), end(files)));
  }

 private:
  std::string folder_;
};

}  // namespace weir

#endif  // WEIR_TESTS_BASE_TEMPORARY_FOLDER_H_
