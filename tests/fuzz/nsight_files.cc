// SPDX-License-Identifier: Apache-2.0
// Recordings as exports of Nsight Systems.
#include <sqlite3.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/fuzz/generate_recording.h"

namespace weir::fuzz {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE StringIds (id INTEGER, value TEXT);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, "
    "text TEXT, globalTid INTEGER, textId INTEGER);";
constexpr char kKernelSchema[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, "
    "globalTid INTEGER, correlationId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, "
    "correlationId INTEGER, globalPid INTEGER);";

std::string DatabaseBytes(const std::string& sql) {
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
      sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    std::abort();
  }
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string copy(reinterpret_cast<char*>(bytes), size);
  sqlite3_free(bytes);
  sqlite3_close(db);
  return copy;
}

// Writes the rows of one file.
class NsightSql {
 public:
  NsightSql(bool with_kernels, RandomSource* hostile)
      : with_kernels_(with_kernels),
        hostile_(hostile),
        sql_(absl::StrCat(kSchema, with_kernels ? kKernelSchema : "")) {}

  void AddRange(const RecordingRange& range, int64_t offset, int64_t process) {
    ++id_;
    // Nanoseconds.
    const int64_t start = 1000 * (range.start + offset);
    const int64_t end = 1000 * (range.end + offset);
    // Kernels begin long after their launches, which follow each other.
    const int64_t host = with_kernels_ ? 1000 * (offset + id_) : start;
    const int64_t host_end = with_kernels_ ? host + 900 : end;
    const std::string name = absl::StrCat("'", range.name, "'");
    const bool by_id = id_ % 2 == 0;
    const std::string id = absl::StrCat(id_);
    const std::string thread = absl::StrCat(process + 7);
    if (by_id) Insert("StringIds", {id, name});
    Insert("NVTX_EVENTS", {absl::StrCat(host), absl::StrCat(host_end), "59",
                           by_id ? "NULL" : name, thread, by_id ? id : "NULL"});
    if (!with_kernels_) return;
    Insert("CUPTI_ACTIVITY_KIND_RUNTIME",
           {absl::StrCat(host + 1), absl::StrCat(host + 2), thread, id});
    Insert("CUPTI_ACTIVITY_KIND_KERNEL",
           {absl::StrCat(start), absl::StrCat(end), id, absl::StrCat(process)});
  }

  const std::string& sql() const { return sql_; }

 private:
  void Insert(const char* table, std::vector<std::string> values) {
    for (std::string& value : values) {
      if (hostile_ == nullptr || !hostile_->OneIn(20)) continue;
      value = hostile_->Of<std::string>({"NULL", "'PP:0F0'", "x'ff00'", "-1",
                                         "0.5", "1e300", "9223372036854775807",
                                         "-9223372036854775807"});
    }
    absl::StrAppend(&sql_, "INSERT OR IGNORE INTO ", table, " VALUES (",
                    absl::StrJoin(values, ","), ");");
  }

  const bool with_kernels_;
  RandomSource* const hostile_;
  std::string sql_;
  int64_t id_ = 0;
};

}  // namespace

std::vector<std::string> NsightFiles(const Recording& recording,
                                     const ClockOffsets& offsets,
                                     bool with_kernels, RandomSource* hostile) {
  std::vector<std::string> files;
  for (size_t w = 0; w < recording.workers.size(); ++w) {
    const int64_t process = (static_cast<int64_t>(w) + 5) << 24;
    NsightSql file(with_kernels, hostile);
    for (const RecordingRange& range : recording.workers[w]) {
      file.AddRange(range, offsets[w], process);
    }
    files.push_back(DatabaseBytes(file.sql()));
  }
  return files;
}

}  // namespace weir::fuzz
