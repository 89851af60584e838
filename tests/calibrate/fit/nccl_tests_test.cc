// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/nccl_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::nccl_tests_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kAllReduce[] =
    R"(# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4242 on      node1 device  0 [0000:19:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4242 on      node1 device  1 [0000:3b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
node1:4242:4250 [0] NCCL INFO Connected all rings
           0             0     float     sum      -1     0.10    0.00    0.00      0     0.10    0.00    0.00      0
        1024           256     float     sum      -1     6.01    0.17    0.17      0     5.98    0.17    0.17      0
     1048576        262144     float     sum      -1    14.70   71.33   71.33    N/A    14.60   71.82   71.82    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 35.75
#
)";

// The format of 2019: no `root`, `error` instead of `#wrong`, ranks without
// groups.
constexpr char kOld[] =
    R"(# Collective test starting: all_gather_perf
#   Rank  0 Pid  98812 on  machine device  0 [0x06] Tesla V100-SXM2-16GB
#   Rank  1 Pid  98812 on  machine device  1 [0x07] Tesla V100-SXM2-16GB
#   Rank  2 Pid  98812 on  machine device  2 [0x0a] Tesla V100-SXM2-16GB
#   Rank  3 Pid  98812 on  machine device  3 [0x0b] Tesla V100-SXM2-16GB
#
#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608        524288   float    131.2   63.94   47.95  0e+00    129.9   64.58   48.43  0e+00
)";

constexpr char kJson[] = R"({
  "version": 1, "start_time": "2026-01-01 00:00:00",
  "args": ["/opt/nccl-tests/build/reduce_scatter_perf", "-g", "2", "-J", "x"],
  "env": ["SECRET=hunter2"],
  "nccl_version": 22902,
  "config": {"nthreads": 1, "ngpus": 2, "iterations": 20,
    "devices": [
      {"rank": 0, "hostname": "a", "device_info": "NVIDIA H200"},
      {"rank": 2, "hostname": "b", "device_info": "NVIDIA H200"}]},
  "results": [
    {"size": 1024, "count": 256, "type": "float", "redop": "sum",
     "root": "    -1",
     "out_of_place": {"time": 5.1, "alg_bw": 0.2, "bus_bw": 0.1, "nwrong": 0},
     "in_place": {"time": 5.0, "alg_bw": 0.2, "bus_bw": 0.1, "nwrong": null}},
    {"size": 2048, "count": 512, "type": "float", "redop": "sum",
     "root": "    -1", "out_of_place": null,
     "in_place": {"time": 5.3, "alg_bw": 0.4, "bus_bw": 0.2, "nwrong": null}}
  ],
  "average_bus_bandwidth": 0.1
})";

std::string Error(absl::string_view text) {
  const auto runs = ParseNcclTests("run.txt", text);
  EXPECT_EQ(runs.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(runs.status().message());
}

TEST(NcclTestsTest, TextGivesKindRanksAndTimesOutOfPlace) {
  const auto runs = ParseNcclTests("run.txt", kAllReduce);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 1u);
  const NcclTestsRun& run = runs->front();
  EXPECT_EQ(run.kind, models::CollectiveKind::kAllReduce);
  EXPECT_EQ(run.num_ranks, 2);
  EXPECT_EQ(run.num_nodes, 1);
  EXPECT_EQ(run.nccl_version, "2.28.9");
  EXPECT_THAT(run.devices, ElementsAre("NVIDIA H100 80GB HBM3"));
  ASSERT_EQ(run.rows.size(), 2u);  // the row of 0 bytes is skipped
  EXPECT_EQ(run.rows[1].bytes, 1048576);
  EXPECT_DOUBLE_EQ(run.rows[1].seconds, 14.7e-6);
}

TEST(NcclTestsTest, ColumnsGoByTheirNames) {
  const auto runs = ParseNcclTests("run.txt", kOld);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(runs->front().kind, models::CollectiveKind::kAllGather);
  EXPECT_EQ(runs->front().num_ranks, 4);
  EXPECT_EQ(runs->front().nccl_version, "");
  EXPECT_DOUBLE_EQ(runs->front().rows.at(0).seconds, 131.2e-6);
}

TEST(NcclTestsTest, AHalfThatIsBlankIsNoRowTooShort) {
  const std::string text = absl::StrReplaceAll(
      kAllReduce, {{"     5.98    0.17    0.17      0\n", "\n"}});
  const auto runs = ParseNcclTests("run.txt", text);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_DOUBLE_EQ(runs->front().rows.at(0).seconds, 6.01e-6);
}

TEST(NcclTestsTest, RunsMayFollowEachOther) {
  const auto runs =
      ParseNcclTests("run.txt", std::string(kAllReduce) + kOld + kAllReduce);
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 3u);
  EXPECT_EQ((*runs)[1].kind, models::CollectiveKind::kAllGather);
  EXPECT_EQ((*runs)[1].num_ranks, 4);
  EXPECT_EQ((*runs)[2].num_ranks, 2);
  EXPECT_EQ((*runs)[2].nccl_version, "2.28.9");
}

TEST(NcclTestsTest, JsonIsReadAlike) {
  const auto runs = ParseNcclTests("run.json", kJson);
  ASSERT_TRUE(runs.ok()) << runs.status();
  const NcclTestsRun& run = runs->front();
  EXPECT_EQ(run.kind, models::CollectiveKind::kReduceScatter);
  EXPECT_EQ(run.num_ranks, 4);
  EXPECT_EQ(run.num_nodes, 2);
  EXPECT_EQ(run.nccl_version, "2.29.2");
  EXPECT_THAT(run.devices, ElementsAre("NVIDIA H200"));
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(run.rows[0].seconds, 5.1e-6);
  EXPECT_DOUBLE_EQ(run.rows[1].seconds, 5.3e-6);
}

TEST(NcclTestsTest, IsKnownByItsContent) {
  for (const char* text : {kAllReduce, kOld, kJson}) {
    EXPECT_TRUE(LooksLikeNcclTests(text));
  }
  EXPECT_FALSE(LooksLikeNcclTests("m,n,k,latency_ms\n1,1,1,1\n"));
}

TEST(NcclTestsTest, ErrorsNameTheLine) {
  EXPECT_THAT(Error(absl::StrReplaceAll(kAllReduce, {{"14.70", "fast"}})),
              HasSubstr("run.txt: line 15: time is \"fast\", expected"));
  EXPECT_THAT(Error(absl::StrReplaceAll(
                  kAllReduce, {{"0.17    0.17      0     5.98", "0.17"}})),
              HasSubstr("run.txt: line 14 has 10 fields, expected 9 or 13"));
  EXPECT_THAT(Error(absl::StrReplaceAll(kAllReduce,
                                        {{"71.33    N/A", "71.33      7"}})),
              HasSubstr("line 15: #wrong is 7, expected 0 or N/A"));
  EXPECT_THAT(Error(absl::StrReplaceAll(kAllReduce,
                                        {{"all_reduce_perf", "scatter_perf"}})),
              HasSubstr("scatter_perf"));
  EXPECT_THAT(Error(absl::StrReplaceAll(kAllReduce, {{"time", "cputime"}})),
              HasSubstr("no column \"time\""));
  EXPECT_THAT(Error("nothing of the kind"), HasSubstr("nccl-tests"));
  EXPECT_THAT(Error(""), HasSubstr("nccl-tests"));
}

TEST(NcclTestsTest, ErrorsOfJsonNameThePath) {
  EXPECT_THAT(
      Error(absl::StrReplaceAll(kJson, {{"\"time\": 5.3", "\"t\": 1"}})),
      HasSubstr("results[1].in_place.time is null, expected"));
  EXPECT_THAT(Error(absl::StrReplaceAll(kJson, {{"\"ngpus\": 2", "\"n\": 2"}})),
              HasSubstr("config.ngpus is null"));
  EXPECT_THAT(Error("{\n\"version\": 1,\n]"), HasSubstr("3:1: is not JSON"));
  EXPECT_THAT(Error("{}"), HasSubstr("results"));
}

TEST(NcclTestsTest, TheEnvironmentIsNeverRepeated) {
  const std::string text =
      absl::StrReplaceAll(kJson, {{"\"results\"", "\"other\""}});
  EXPECT_THAT(Error(text), Not(HasSubstr("hunter2")));
}

TEST(ImportNcclTestsTest, MovesTheProfileAndSaysFromWhat) {
  const auto start = LoadDeviceProfile("h100-sxm");
  ASSERT_TRUE(start.ok()) << start.status();
  const auto import =
      ImportMeasurements("run.txt", kAllReduce, *start, "run.txt");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_THAT(import->report, HasSubstr("2 points"));
  EXPECT_THAT(import->report, Not(HasSubstr("warning")));
  const Figure& base = import->profile.collectives().ll().base_seconds();
  EXPECT_EQ(base.kind(), Figure::FITTED);
  EXPECT_THAT(base.source(), HasSubstr("NCCL 2.28.9, NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(base.source(), HasSubstr("run.txt: mean |error|"));
}

TEST(ImportNcclTestsTest, WarnsWhereTheModelDoesNotFit) {
  const auto start = LoadDeviceProfile("h100-sxm");
  ASSERT_TRUE(start.ok()) << start.status();
  // Less time for a thousand times the bytes.
  const std::string text =
      absl::StrReplaceAll(kAllReduce, {{" 14.70", "  1.70"}});
  const auto import = ImportMeasurements("run.txt", text, *start, "run.txt");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_THAT(import->report, HasSubstr("warning: "));
}

TEST(ImportNcclTestsTest, RunsOverNodesAreRefused) {
  const auto start = LoadDeviceProfile("h200-sxm");
  ASSERT_TRUE(start.ok()) << start.status();
  const auto import = ImportMeasurements("run.json", kJson, *start, "run.json");
  EXPECT_THAT(std::string(import.status().message()), HasSubstr("2 hosts"));
}

}  // namespace weir::calibrate::nccl_tests_test
