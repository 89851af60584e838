// SPDX-License-Identifier: Apache-2.0
#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::machine_memory_test {

// Uses its own /proc and /sys folders.
class MachineMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFile(absl::StrCat(root_, path), text).ok());
  }

  const std::string root_ = absl::StrCat(
      testing::TempDir(), "machine_memory/",
      testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(MachineMemoryTest, IsWhatTheKernelReportsAsAvailable) {
  Write("/proc/meminfo",
        "MemTotal:       8000 kB\nMemFree:        100 kB\n"
        "MemAvailable:   2000 kB\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 2000 * 1024.0);
}

TEST_F(MachineMemoryTest, IsLessInAGroupOfVersion2WithALimit) {
  Write("/proc/meminfo", "MemAvailable:   2000 kB\n");
  Write("/proc/self/cgroup", "0::/user/job\n");
  Write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/user/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/user/memory.current", "700000\n");
  Write("/sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 200000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 500000);
}

TEST_F(MachineMemoryTest, IsLessInAGroupOfVersion1WithALimit) {
  Write("/proc/meminfo", "MemAvailable:   2000 kB\n");
  Write("/proc/self/cgroup", "5:devices:/\n4:memory:/box\n0::/\n");
  Write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "300000\n");
  Write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 200000);
}

TEST_F(MachineMemoryTest, IsOfTheMountedRootWhereTheGroupCannotBeSeen) {
  Write("/proc/meminfo", "MemAvailable:   2000 kB\n");
  Write("/proc/self/cgroup", "0::/outside/container\n");
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "100000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 400000);
}

TEST_F(MachineMemoryTest, IsNothingWhereAGroupIsFull) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "600000\n");
  EXPECT_EQ(AvailableMemoryBytes(root_), 0);
}

TEST_F(MachineMemoryTest, IsInfiniteWhereNothingIsKnown) {
  EXPECT_TRUE(std::isinf(AvailableMemoryBytes(root_)));
}

TEST(MachineMemoryOfThisMachineTest, IsSomeOfIt) {
  EXPECT_GT(AvailableMemoryBytes(), 0);
  EXPECT_LT(AvailableMemoryBytes(), 1e15);
}

}  // namespace weir::machine_memory_test
