// SPDX-License-Identifier: Apache-2.0
// Checks imports of Nsight Systems' exports, also damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "results/import/import_trace.h"
#include "tests/results/import/sample_trace.h"

namespace weir::results::nsight_export_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns the bytes of a database of these statements.
std::string DatabaseOf(const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string copy(reinterpret_cast<char*>(bytes), size);
  sqlite3_free(bytes);
  sqlite3_close(db);
  return copy;
}

constexpr char kTables[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, "
    "text TEXT, globalTid INTEGER, textId INTEGER);";
constexpr char kKernelTables[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, "
    "globalTid INTEGER, correlationId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
    "correlationId INTEGER, globalPid INTEGER);";

// Two processes of a pipeline: each pass launches two kernels, the second one
// from another thread.
std::string Export(bool with_kernels) {
  std::string sql = absl::StrCat(kTables, with_kernels ? kKernelTables : "",
                                 "INSERT INTO StringIds VALUES (1, 'PP:1F0');");
  int correlation = 0;
  for (int process = 0; process < 2; ++process) {
    const int64_t pid = (int64_t{process} + 5) << 24;
    int64_t host = 1000 + 100 * process, gpu = 100'000 * (process + 1);
    for (const char* op : {"F0", "B0"}) {
      const bool by_id = process == 1 && op[0] == 'F';
      absl::StrAppend(&sql, "INSERT INTO NVTX_EVENTS VALUES (", host, ",",
                      host + 100, ",59,",
                      by_id ? "NULL" : absl::StrCat("'PP:", process, op, "'"),
                      ",", pid + 7, ",", by_id ? "1" : "NULL", ");");
      for (int kernel = 0; kernel < 2 && with_kernels; ++kernel) {
        ++correlation;
        absl::StrAppend(
            &sql, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (",
            host + 10 + 40 * kernel, ",", host + 20, ",", pid + 7 + kernel, ",",
            correlation, ");INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (",
            gpu + 30'000 * kernel, ",", gpu + 30'000 * kernel + 20'000, ",",
            correlation, ",", pid, ");");
      }
      // The gradient comes from process 1.
      host += process == 0 ? 300 : 100;
      gpu += process == 0 ? 260'000 : 60'000;
    }
  }
  return DatabaseOf(sql);
}

TEST(NsightExportTest, RangesLastAsLongAsTheirKernels) {
  const auto run = ImportTraceText("a", Export(true));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, IsEmpty());
  EXPECT_EQ(run->num_ranks, 2);
  EXPECT_EQ(run->num_stages, 2);
  ASSERT_EQ(run->operations.size(), 4);
  for (const RecordedOperation& o : run->operations) {
    EXPECT_NEAR(o.seconds(), 50e-6, 1e-12);
    EXPECT_EQ(o.microbatch, 0);
    EXPECT_EQ(o.stage, o.rank);
  }
  EXPECT_NEAR(run->operations[2].start_seconds, 100e-6, 1e-12);
}

TEST(NsightExportTest, WithoutKernelsRangesAreThoseOfTheHost) {
  const std::string path = absl::StrCat(testing::TempDir(), "/export.sqlite");
  std::ofstream(path, std::ios::binary) << Export(false);
  const auto run = ImportTrace({path});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->notes, ElementsAre(HasSubstr("ranges on the host")));
  EXPECT_NEAR(run->operations[0].seconds(), 100e-9, 1e-15);
}

TEST(NsightExportTest, OtherDatabasesAreRefused) {
  const auto other = ImportTraceText("a", DatabaseOf("CREATE TABLE t (x);"));
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("a: has no table NVTX_EVENTS, expected an SQLite"));
  const auto columns =
      ImportTraceText("a", DatabaseOf("CREATE TABLE NVTX_EVENTS (x);"));
  EXPECT_THAT(std::string(columns.status().message()),
              HasSubstr("expected an SQLite export of Nsight Systems"));
  const auto empty = ImportTraceText("a", DatabaseOf(kTables));
  EXPECT_THAT(std::string(empty.status().message()),
              HasSubstr("none of 0 events names a pass"));
}

TEST(NsightExportTest, CompressedExportsAreRefused) {
  const std::string text = Gzip(Export(true));
  const std::string path = absl::StrCat(testing::TempDir(), "/e.sqlite.gz");
  std::ofstream(path, std::ios::binary) << text;
  for (const auto& run : {ImportTraceText("e", text), ImportTrace({path})}) {
    EXPECT_THAT(std::string(run.status().message()),
                HasSubstr("is a compressed SQLite database, expected it "
                          "decompressed"));
  }
}

// Damaged files are errors or runs, and never end the program.
TEST(NsightExportTest, DamagedExports) {
  const std::string whole = Export(true);
  std::mt19937 random(3);
  int num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bytes = whole;
    if (i % 3 == 0) bytes.resize(random() % whole.size());
    for (int k = 0; k < 8 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (!ImportTraceText("a", bytes).ok()) ++num_refused;
  }
  EXPECT_GT(num_refused, 30);
}

}  // namespace
}  // namespace weir::results::nsight_export_test
