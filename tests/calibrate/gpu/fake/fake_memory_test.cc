// SPDX-License-Identifier: Apache-2.0
// The memory management of replay ranks, on a fake GPU.
#include <gmock/gmock.h>

#include <cstring>

#include "calibrate/execute/gpu/pinned_memory.h"
#include "calibrate/execute/gpu/spilled_memory.h"
#include "tests/calibrate/gpu/fake/fake.h"

namespace weir::calibrate::fake_memory_test {

using testing::Each;
using testing::IsEmpty;

class FakeMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Gpu() = FakeState();
    stream_ = MakeStream().value();
  }
  void TearDown() override { EXPECT_THAT(Gpu().faults, IsEmpty()); }

  // Returns the contents of device or host memory after all queued work.
  std::vector<uint8_t> Bytes(const void* memory, int64_t num_bytes) {
    EXPECT_TRUE(WaitFor(stream_.get(), 5, "a test").ok());
    std::vector<uint8_t> bytes(num_bytes);
    std::memcpy(bytes.data(), memory, num_bytes);
    return bytes;
  }

  Stream stream_;
};

TEST_F(FakeMemoryTest, UploadsWaitOnlyForWhatIsInTheirWay) {
  auto ring = UploadRing::Create(4096);
  auto events = EventPool::Create(4);
  ASSERT_TRUE(ring.ok() && events.ok());
  const DeviceMemory memory = Allocate(1 << 16, "a test").value();
  auto* to = static_cast<uint8_t*>(memory.get());
  // One second of work that all uploads wait for.
  Enqueue(stream_.get(), 1, [] {});
  for (int i = 0; i < 9; ++i) {
    const double before = Gpu().now;
    ASSERT_TRUE(
        ring->Upload(1000, to + 1000 * i, stream_.get(), *events, 5,
                     [i](uint8_t* bytes) { std::memset(bytes, i + 1, 1000); })
            .ok());
    // The ring holds four uploads.
    EXPECT_EQ(Gpu().now - before > 0.5, i == 4) << i;
  }
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(Bytes(to + 1000 * i, 1000), Each(i + 1)) << i;
  }
}

TEST_F(FakeMemoryTest, APoolIsPrimedWithNoMoreThanThereIs) {
  for (const int64_t free_bytes : {int64_t{200} << 20, int64_t{70} << 20}) {
    Gpu().total_bytes = Gpu().used_bytes + free_bytes;
    const auto pool = MemoryPool::Create(0, 0);
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->Prime(int64_t{150} << 20, stream_.get()).ok());
    const double reserved = (*pool)->Marks()->reserved_bytes;
    EXPECT_LE(reserved, free_bytes + (2 << 20));  // granularity of the pool
    EXPECT_GE(reserved, 0.8 * std::min(free_bytes, int64_t{150} << 20));
    ASSERT_TRUE((*pool)->ResetMarks().ok());
    EXPECT_EQ((*pool)->Marks()->used_bytes, 0);
  }
}

TEST_F(FakeMemoryTest, WhatIsSpilledComesBackUnderItsName) {
  const auto pool = MemoryPool::Create(0, 0);
  ASSERT_TRUE(pool.ok());
  PinnedBlocks host;
  SpilledMemory memory(pool->get(), &host, stream_.get(), 5);
  std::vector<void*> names;
  for (const int64_t size : {1, 256, 5000}) {
    auto name = memory.Allocate(size, "a test");
    ASSERT_TRUE(name.ok()) << name.status();
    cudaMemsetAsync(memory.Locate(*name).value(), static_cast<int>(size % 251),
                    size, stream_.get());
    names.push_back(*name);
  }
  EXPECT_EQ(memory.num_bytes(), 5257);
  auto* last = static_cast<char*>(names[2]);
  ASSERT_TRUE(memory.Spill().ok());
  EXPECT_EQ((*pool)->Marks()->used_bytes, 6144);
  EXPECT_THAT(Bytes(memory.Locate(last + 4000).value(), 1000),
              Each(5000 % 251));
  ASSERT_TRUE(memory.Restore().ok());
  EXPECT_EQ((*pool)->Marks()->used_bytes, 6144);  // not more than before
  EXPECT_THAT(Bytes(memory.Locate(last).value(), 5000), Each(5000 % 251));
  EXPECT_THAT(Bytes(memory.Locate(names[1]).value(), 256), Each(5));
  EXPECT_FALSE(memory.Locate(last + 5000).ok());
  ASSERT_TRUE(memory.Free(names[1]).ok());
  EXPECT_FALSE(memory.Locate(names[1]).ok());
  EXPECT_FALSE(memory.Free(names[1]).ok());
}

TEST_F(FakeMemoryTest, ARankThatDoesNotFitYetComesBackInTwoSteps) {
  const auto pool = MemoryPool::Create(0, 0);
  PinnedBlocks host;
  SpilledMemory memory(pool->get(), &host, stream_.get(), 5);
  std::vector<void*> names;
  for (int i = 0; i < 3; ++i) {
    names.push_back(memory.Allocate(1000, "a test").value());
    cudaMemsetAsync(memory.Locate(names[i]).value(), i + 1, 1000,
                    stream_.get());
  }
  ASSERT_TRUE(memory.Spill().ok());
  const int64_t total = Gpu().total_bytes;
  Gpu().total_bytes = Gpu().used_bytes + 2048;
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Restore()));
  EXPECT_TRUE(memory.is_spilled());
  Gpu().total_bytes = total;
  EXPECT_TRUE(memory.Restore().ok());
  EXPECT_FALSE(memory.is_spilled());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Bytes(memory.Locate(names[i]).value(), 1000), Each(i + 1));
  }
}

TEST_F(FakeMemoryTest, EventsComeBackToTheirPool) {
  auto events = EventPool::Create(1).value();
  cudaEvent_t first = nullptr;
  {
    const auto recorded = RecordedEvent::Record(events, stream_.get());
    ASSERT_TRUE(recorded.ok());
    first = (*recorded)->get();
    EXPECT_TRUE((*recorded)->HasPassed());
  }
  const auto again = RecordedEvent::Record(events, stream_.get());
  EXPECT_EQ((*again)->get(), first);
  Enqueue(stream_.get(), 1, [] {});
  const auto more = RecordedEvent::Record(events, stream_.get());
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE((*more)->HasPassed());
}

}  // namespace weir::calibrate::fake_memory_test
