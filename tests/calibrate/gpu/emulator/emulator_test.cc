// SPDX-License-Identifier: Apache-2.0
// Checks that the emulator detects the bugs that it is made to find.
#include "tests/calibrate/gpu/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/calibrate/gpu/emulator/guarded_memory.h"
#include "tests/calibrate/gpu/emulator/warp_matrix.h"
// These need the emulator's definitions above.
#include "calibrate/gpu/kernels/device.cuh"
#include "calibrate/gpu/kernels/mma.cuh"

namespace weir::calibrate::emulator_test {

using ::testing::HasSubstr;

constexpr int kThreads = 128;

// Reverses each block's data: each thread reads the value that the thread at
// the opposite end of the block wrote.
void Reverse(float* data, bool barrier) {
  auto* shared = SharedMemory<float>();
  shared[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
  if (barrier) __syncthreads();
  data[blockIdx.x * blockDim.x + threadIdx.x] =
      shared[blockDim.x - 1 - threadIdx.x];
}

bool Reverses(bool barrier, uint64_t seed) {
  emulator::SetSeed(seed);
  std::vector<float> data(size_t{3} * kThreads);
  for (size_t i = 0; i < data.size(); ++i) data[i] = i;
  EXPECT_EQ(emulator::Run(3, kThreads, kThreads * 4,
                          [&] { Reverse(data.data(), barrier); }),
            cudaSuccess);
  for (int i = 0; i < static_cast<int>(data.size()); ++i) {
    const int block = i / kThreads, thread = i % kThreads;
    if (data[i] != block * kThreads + kThreads - 1 - thread) return false;
  }
  return true;
}

TEST(EmulatorTest, AMissingBarrierShowsInEveryOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_TRUE(Reverses(true, seed));
    EXPECT_FALSE(Reverses(false, seed)) << seed;
  }
}

// Adds the round number, passed through one slot of shared memory, to every
// thread's sum.
void SumInRounds(std::vector<float>* sums, bool second_barrier) {
  auto* shared = SharedMemory<float>();
  for (int round = 0; round < 4; ++round) {
    if (threadIdx.x == 0) shared[0] = static_cast<float>(round);
    __syncthreads();
    (*sums)[threadIdx.x] += shared[0];
    if (second_barrier) __syncthreads();
  }
}

TEST(EmulatorTest, OverwritingWhatOthersStillReadShowsInMostOrders) {
  int num_wrong = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (bool second_barrier : {true, false}) {
      emulator::SetSeed(seed);
      std::vector<float> sums(kThreads);
      ASSERT_EQ(emulator::Run(1, kThreads, 4,
                              [&] { SumInRounds(&sums, second_barrier); }),
                cudaSuccess);
      const bool right = sums == std::vector<float>(kThreads, 6);
      if (second_barrier) {
        EXPECT_TRUE(right);
      } else {
        num_wrong += !right;
      }
    }
  }
  EXPECT_GE(num_wrong, 80);
}

TEST(EmulatorTest, ABarrierThatSomeNeverReachIsAnError) {
  EXPECT_EQ(emulator::Run(1, kThreads, 0,
                          [] {
                            if (threadIdx.x != 5) __syncthreads();
                          }),
            cudaErrorLaunchFailure);
  EXPECT_THAT(emulator::LastError(), HasSubstr("never come"));
}

TEST(EmulatorTest, AWarpThatDivergesInItsOperationsIsAnError) {
  EXPECT_EQ(emulator::Run(1, 32, 0,
                          [] {
                            if (threadIdx.x < 16) {
                              WarpSum(1);
                            } else {
                              __syncwarp();
                            }
                          }),
            cudaErrorLaunchFailure);
  EXPECT_THAT(emulator::LastError(), HasSubstr("apart"));
}

TEST(EmulatorTest, AnAsynchronousCopyArrivesWhenItIsWaitedFor) {
  emulator::GuardedMemory global(64);
  auto* from = static_cast<float*>(global.data());
  for (int i = 0; i < 16; ++i) from[i] = i + 1;
  std::vector<float> seen(3);
  ASSERT_EQ(emulator::Run(1, 32, 64,
                          [&] {
                            if (threadIdx.x != 0) return;
                            auto* to = SharedMemory<float>();
                            to[0] = 5;
                            CopyAsync<16>(AddressOf(to), from, true);
                            CommitCopies();
                            CopyAsync<16>(AddressOf(to + 4), from + 4, false);
                            CommitCopies();
                            seen[0] = to[0];
                            WaitCopies<1>();
                            seen[1] = to[0];
                            WaitCopies<0>();
                            seen[2] = to[4];
                          }),
            cudaSuccess);
  EXPECT_TRUE(std::isnan(seen[0]));
  EXPECT_EQ(seen[1], 1);
  EXPECT_EQ(seen[2], 0);
}

TEST(EmulatorTest, SharedMemoryBeginsAsNan) {
  bool nan = false;
  ASSERT_EQ(emulator::Run(
                1, 32, 128,
                [&] { nan = std::isnan(SharedMemory<float>()[threadIdx.x]); }),
            cudaSuccess);
  EXPECT_TRUE(nan);
}

TEST(EmulatorTest, ReadingBehindABufferEndsTheProgram) {
  EXPECT_DEATH(
      {
        emulator::GuardedMemory memory(256);
        float sum = 0;
        (void)emulator::Run(1, 96, 0, [&] {
          sum += static_cast<float*>(memory.data())[threadIdx.x];
        });
        fprintf(stderr, "%g", sum);
      },
      "");
}

TEST(EmulatorTest, WritingBeforeABufferIsSeenBehind) {
  emulator::GuardedMemory memory(256);
  EXPECT_TRUE(memory.Intact());
  static_cast<float*>(memory.data())[-1] = 1;
  EXPECT_FALSE(memory.Intact());
}

// Computes d = a b for row-major a [16, 16], b [16, 8] and d [16, 8].
template <typename Half>
void RunGemm(const Half* a, const Half* b, float* d) {
  auto* shared_a = SharedMemory<Half>();
  Half* shared_b = shared_a + 256;
  const int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) shared_a[lane * 8 + i] = a[lane * 8 + i];
  for (int i = 0; i < 4; ++i) shared_b[lane * 4 + i] = b[lane * 4 + i];
  __syncwarp();
  uint32_t of_a[4], of_b[4];
  LoadMatrix4(of_a, AddressOf(shared_a + lane % 16 * 16 + lane / 16 * 8));
  LoadMatrix4Transposed(of_b, AddressOf(shared_b + lane % 16 * 8));
  float sums[4] = {1, 1, 1, 1};
  Mma<Half>(sums, of_a, of_b[0], of_b[1]);
  for (int i = 0; i < 4; ++i) {
    d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
  }
}

template <typename Half>
void ExpectPlainGemm() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Half> a(256), b(128);
  for (Half& x : a) x = Pair<Half>::FromFloat(normal(random));
  for (Half& x : b) x = Pair<Half>::FromFloat(normal(random));
  std::vector<float> d(128);
  ASSERT_EQ(
      emulator::Run(1, 32, 768, [&] { RunGemm(a.data(), b.data(), d.data()); }),
      cudaSuccess);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      double sum = 1;
      for (int k = 0; k < 16; ++k) {
        sum += static_cast<double>(static_cast<float>(a[i * 16 + k])) *
               static_cast<double>(static_cast<float>(b[k * 8 + j]));
      }
      EXPECT_NEAR(d[i * 8 + j], sum, 1e-5);
    }
  }
}

TEST(EmulatorTest, MatrixInstructionsGiveThePlainProduct) {
  ExpectPlainGemm<__nv_bfloat16>();
  ExpectPlainGemm<__half>();
}

}  // namespace weir::calibrate::emulator_test
