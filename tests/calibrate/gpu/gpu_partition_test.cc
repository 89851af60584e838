// SPDX-License-Identifier: Apache-2.0
// Partitions of a real GPU: the multiprocessors of each, concurrent execution,
// events and memory across partitions, and paced copies.
#include <algorithm>
#include <cstdio>
#include <set>

#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/graph.h"
#include "calibrate/gpu/kernels/kernels.h"
#include "calibrate/gpu/memory_pool.h"
#include "calibrate/gpu/partition.h"
#include "tests/calibrate/gpu/gpu_test.h"
#include "tests/calibrate/gpu/spin.h"

namespace weir::calibrate::gpu_partition_test {

constexpr double kTimeout = 30;
constexpr int kMaxBlocks = 4096;

class GpuPartitionTest : public GpuTest {
 protected:
  static void SetUpTestSuite() { RequestManyQueues(); }
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  }

  // Partitions the GPU. Returns false if this driver or GPU does not support
  // partitions, or not that many; the test is then skipped.
  bool Cut(int num_parts) {
    auto card = GpuPartitions::Create(0, num_parts);
    if (absl::IsUnimplemented(card.status()) ||
        absl::IsInvalidArgument(card.status())) {
      skip_ = std::string(card.status().message());
      return false;
    }
    EXPECT_TRUE(card.ok()) << card.status();
    if (!card.ok()) return false;
    partitions_ = *std::move(card);
    printf("%d parts of %d, %d for copies, of %d\n", num_parts,
           partitions_->part(0).num_multiprocessors(),
           partitions_->copies().num_multiprocessors(),
           partitions_->num_multiprocessors());
    return true;
  }

  // Returns all partitions; the one for copies is last.
  std::vector<const GpuPartition*> Parts() const {
    std::vector<const GpuPartition*> parts;
    for (int i = 0; i < partitions_->size(); ++i)
      parts.push_back(&partitions_->part(i));
    parts.push_back(&partitions_->copies());
    return parts;
  }

  struct Spun {
    Stream stream;
    DeviceMemory memory;
    int num_blocks = 0;
    std::vector<SpinRecord> records;

    SpinRecord* on_device() const {
      return static_cast<SpinRecord*>(memory.get());
    }
    std::set<uint32_t> multiprocessors() const {
      std::set<uint32_t> seen;
      for (const SpinRecord& each : records) seen.insert(each.multiprocessor);
      return seen;
    }
    uint64_t begin() const {
      uint64_t first = ~uint64_t{0};
      for (const SpinRecord& each : records) {
        first = std::min(first, each.begin_nanoseconds);
      }
      return first;
    }
    uint64_t end() const {
      uint64_t last = 0;
      for (const SpinRecord& each : records) {
        last = std::max(last, each.end_nanoseconds);
      }
      return last;
    }
  };

  static void Prepare(const GpuPartition& part, Spun* spun) {
    auto stream = part.MakeStream();
    ASSERT_TRUE(stream.ok()) << stream.status();
    spun->stream = *std::move(stream);
    auto memory = Allocate(kMaxBlocks * sizeof(SpinRecord), "records");
    ASSERT_TRUE(memory.ok()) << memory.status();
    spun->memory = *std::move(memory);
    spun->num_blocks = std::min(4 * part.num_multiprocessors(), kMaxBlocks);
  }
  static void Spin(const Spun& spun, double seconds) {
    ASSERT_EQ(LaunchSpin(spun.stream.get(), spun.num_blocks, seconds,
                         spun.on_device()),
              cudaSuccess);
  }
  static void Fetch(Spun* spun) {
    const absl::Status ended =
        WaitFor(spun->stream.get(), kTimeout, "spinning");
    ASSERT_TRUE(ended.ok()) << ended;
    spun->records.resize(spun->num_blocks);
    ASSERT_EQ(cudaMemcpy(spun->records.data(), spun->memory.get(),
                         spun->num_blocks * sizeof(SpinRecord),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
  }

  // Keeps all partitions busy at the same time. Returns one element per
  // partition.
  std::vector<Spun> SpinAll(double seconds) {
    const std::vector<const GpuPartition*> parts = Parts();
    std::vector<Spun> spun(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) Prepare(*parts[i], &spun[i]);
    if (HasFatalFailure()) return {};
    for (const Spun& each : spun) Spin(each, 1e-6);  // loads the kernel
    for (Spun& each : spun) Fetch(&each);
    for (const Spun& each : spun) Spin(each, seconds);
    for (Spun& each : spun) Fetch(&each);
    if (HasFatalFailure()) return {};
    return spun;
  }

  static void ExpectDisjoint(const std::vector<const GpuPartition*>& parts,
                             const std::vector<Spun>& spun) {
    std::set<uint32_t> taken;
    for (size_t i = 0; i < spun.size(); ++i) {
      const std::set<uint32_t> own = spun[i].multiprocessors();
      // On compute capability 9, a module with dynamic parallelism would add 2.
      EXPECT_LE(own.size(), parts[i]->num_multiprocessors()) << "part " << i;
      EXPECT_GT(own.size(), parts[i]->num_multiprocessors() / 2)
          << "part " << i;
      for (const uint32_t each : own) {
        EXPECT_TRUE(taken.insert(each).second)
            << "part " << i << " ran on another's multiprocessor " << each;
      }
    }
  }

  // Returns the time of the fastest of several copies on the stream.
  double CopySeconds(const Launch& launch, const PacedCopy& copy) {
    auto watch = Stopwatch::Create();
    EXPECT_TRUE(watch.ok());
    double fastest = 1e9;
    for (int i = 0; i < 5 && watch.ok(); ++i) {
      EXPECT_TRUE(watch->Start(launch.stream).ok());
      EXPECT_EQ(LaunchPacedCopy(launch, copy), cudaSuccess);
      EXPECT_TRUE(watch->Stop(launch.stream).ok());
      const auto seconds = watch->Seconds(kTimeout, "a paced copy");
      EXPECT_TRUE(seconds.ok()) << seconds.status();
      if (!seconds.ok()) return 1e9;
      fastest = std::min(fastest, *seconds);
    }
    return fastest;
  }

  std::string skip_;
  std::unique_ptr<GpuPartitions> partitions_;
};

TEST_F(GpuPartitionTest, PartsAreDisjointAndWorkAtTheSameTime) {
  for (const int num_parts : {2, 4, 8}) {
    partitions_.reset();
    if (!Cut(num_parts)) GTEST_SKIP() << skip_;
    // Destroyed before the partitions: destroying a stream of a destroyed
    // green context is an error, which the next launch would report.
    const std::vector<Spun> spun = SpinAll(5e-3);
    ASSERT_FALSE(HasFatalFailure());
    ExpectDisjoint(Parts(), spun);
    uint64_t last_begin = 0, first_end = ~uint64_t{0};
    for (const Spun& each : spun) {
      last_begin = std::max(last_begin, each.begin());
      first_end = std::min(first_end, each.end());
    }
    EXPECT_LT(last_begin, first_end) << "not all at work at any moment";
  }
}

TEST_F(GpuPartitionTest, GraphsStayOnTheirPart) {
  if (!Cut(4)) GTEST_SKIP() << skip_;
  Spun first, second;
  Prepare(partitions_->part(0), &first);
  Prepare(partitions_->part(1), &second);
  ASSERT_FALSE(HasFatalFailure());
  Spin(second, 1e-6);
  std::vector<GraphExec> graphs;
  for (Spun* each : {&first, &second}) {
    Spin(*each, 1e-6);
    Fetch(each);
    auto graph = CaptureGraph(each->stream.get(), [&] {
      return CudaStatus(LaunchSpin(each->stream.get(), each->num_blocks, 2e-3,
                                   each->on_device()),
                        "spinning");
    });
    ASSERT_TRUE(graph.ok()) << graph.status();
    graphs.push_back(*std::move(graph));
  }
  ASSERT_EQ(cudaGraphLaunch(graphs[0].get(), first.stream.get()), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(graphs[1].get(), second.stream.get()), cudaSuccess);
  std::vector<Spun> spun;
  for (Spun* each : {&first, &second}) {
    Fetch(each);
    spun.push_back(std::move(*each));
  }
  ExpectDisjoint({&partitions_->part(0), &partitions_->part(1)}, spun);
}

// Checks that a stage's output reaches the next stage through the partition for
// copies: events order the streams of different partitions, and all of them can
// access the memory of a pool.
TEST_F(GpuPartitionTest, EventsAndPoolsGoAcrossParts) {
  if (!Cut(2)) GTEST_SKIP() << skip_;
  constexpr int64_t kBytes = 8 << 20;
  auto from = partitions_->part(0).MakeStream(),
       to = partitions_->part(1).MakeStream(),
       copies = partitions_->copies().MakeStream();
  ASSERT_TRUE(from.ok() && to.ok() && copies.ok());
  auto sent = MakeEvent(), received = MakeEvent();
  ASSERT_TRUE(sent.ok() && received.ok());
  auto pool = MemoryPool::Create(0, 0), other = MemoryPool::Create(0, 0);
  ASSERT_TRUE(pool.ok() && other.ok()) << pool.status() << other.status();
  auto source = (*pool)->Allocate(kBytes, from->get(), "a source");
  auto target = (*other)->Allocate(kBytes, to->get(), "a target");
  ASSERT_TRUE(source.ok() && target.ok());
  std::vector<unsigned char> seen(kBytes);
  for (const int byte : {1, 2, 3, 4, 5}) {
    ASSERT_EQ(cudaMemsetAsync(*target, 0, kBytes, to->get()), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(received->get(), to->get()), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(copies->get(), received->get(), 0),
              cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(*source, byte, kBytes, from->get()), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(sent->get(), from->get()), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(copies->get(), sent->get(), 0), cudaSuccess);
    Launch launch;
    launch.stream = copies->get();
    launch.num_multiprocessors = partitions_->copies().num_multiprocessors();
    ASSERT_EQ(LaunchPacedCopy(launch, {*source, *target, kBytes, 1e-5, 25e9}),
              cudaSuccess);
    ASSERT_EQ(cudaEventRecord(received->get(), copies->get()), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(to->get(), received->get(), 0), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(seen.data(), *target, kBytes,
                              cudaMemcpyDeviceToHost, to->get()),
              cudaSuccess);
    ASSERT_TRUE(WaitFor(to->get(), kTimeout, "a message").ok());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), byte), kBytes);
  }
  EXPECT_TRUE((*pool)->Free(*source, from->get()).ok());
  EXPECT_TRUE((*other)->Free(*target, to->get()).ok());
  EXPECT_TRUE(WaitFor(from->get(), kTimeout, "giving back").ok());
  EXPECT_TRUE(WaitFor(to->get(), kTimeout, "giving back").ok());
}

TEST_F(GpuPartitionTest, PacedCopiesTakeTheirLatencyAndTheirBytesByTheirRate) {
  if (!Cut(4)) GTEST_SKIP() << skip_;
  constexpr int64_t kMost = 400 << 20;
  const auto memory = Allocate(2 * kMost, "copies");
  ASSERT_TRUE(memory.ok()) << memory.status();
  auto stream = partitions_->copies().MakeStream();
  auto whole = MakeStream();
  ASSERT_TRUE(stream.ok() && whole.ok());
  Launch copies, card;
  copies.stream = stream->get();
  copies.num_multiprocessors = partitions_->copies().num_multiprocessors();
  card.stream = whole->get();
  card.num_multiprocessors = partitions_->num_multiprocessors();
  PacedCopy copy;
  copy.from = memory->get();
  copy.to = static_cast<char*>(memory->get()) + kMost;
  for (const double rate : {1e9, 12e9, 25e9, 50e9, 100e9, 200e9, 400e9}) {
    for (const double latency : {0.0, 1e-4}) {
      copy.num_bytes = static_cast<int64_t>(1e-3 * rate);
      copy.latency_seconds = latency;
      copy.bytes_per_second = rate;
      const double expected = latency + 1e-3;
      const double on_copies = CopySeconds(copies, copy);
      const double on_card = CopySeconds(card, copy);
      printf(
          "%.0f GB/s, %.0f us: %.4f by the part for copies, %.4f by the "
          "card\n",
          1e-9 * rate, 1e6 * latency, on_copies / expected, on_card / expected);
      EXPECT_NEAR(on_card / expected, 1, 0.03) << rate;
      // The partition for copies has few multiprocessors. The rates that it
      // reaches are printed below.
      if (rate <= 100e9) {
        EXPECT_NEAR(on_copies / expected, 1, 0.03) << rate;
      }
    }
  }
  // Prints the rates of the blocks' copies without a limit.
  for (const int num_multiprocessors : {1, 2, 4, 8}) {
    card.num_multiprocessors = num_multiprocessors;
    copy = {copy.from, copy.to, kMost, 0, 0};
    const double seconds = CopySeconds(card, copy);
    printf("%d blocks: %.1f GB/s each\n",
           MaxPacedCopyBlocks(num_multiprocessors),
           1e-9 * kMost / seconds / MaxPacedCopyBlocks(num_multiprocessors));
  }
  copies.num_multiprocessors = partitions_->copies().num_multiprocessors();
  printf("the part for copies: %.0f GB/s\n",
         1e-9 * kMost / CopySeconds(copies, copy));
}

TEST_F(GpuPartitionTest, LinksThatAreBusyTogetherKeepTheirRates) {
  if (!Cut(4)) GTEST_SKIP() << skip_;
  constexpr double kRate = 25e9;
  constexpr int64_t kBytes = 50 << 20;  // 2.1 ms
  const int num_links =
      MaxPacedCopyBlocks(partitions_->copies().num_multiprocessors()) /
      NumPacedCopyBlocks(kRate) / 2;
  ASSERT_GE(num_links, 1);
  const auto memory = Allocate(2 * kBytes * num_links, "copies");
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<Stream> streams;
  std::vector<Stopwatch> watches;
  for (int i = 0; i < num_links; ++i) {
    auto stream = partitions_->copies().MakeStream();
    auto watch = Stopwatch::Create();
    ASSERT_TRUE(stream.ok() && watch.ok());
    streams.push_back(*std::move(stream));
    watches.push_back(*std::move(watch));
  }
  for (int round = 0; round < 2; ++round) {  // the first round warms up
    for (int i = 0; i < num_links; ++i) {
      Launch launch;
      launch.stream = streams[i].get();
      launch.num_multiprocessors = partitions_->copies().num_multiprocessors();
      char* from = static_cast<char*>(memory->get()) + 2 * kBytes * i;
      ASSERT_TRUE(watches[i].Start(launch.stream).ok());
      ASSERT_EQ(
          LaunchPacedCopy(launch, {from, from + kBytes, kBytes, 0, kRate}),
          cudaSuccess);
      ASSERT_TRUE(watches[i].Stop(launch.stream).ok());
    }
    for (int i = 0; i < num_links; ++i) {
      const auto seconds = watches[i].Seconds(kTimeout, "a link");
      ASSERT_TRUE(seconds.ok()) << seconds.status();
      if (round == 0) continue;
      EXPECT_NEAR(*seconds * kRate / kBytes, 1, 0.03)
          << "link " << i << " of " << num_links;
    }
  }
}

}  // namespace weir::calibrate::gpu_partition_test
