// SPDX-License-Identifier: Apache-2.0
// Recordings as exports of Nsight Systems.
#include <sqlite3.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/generate_recording.h"

namespace weir::fuzz {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
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

}  // namespace

std::vector<std::string> NsightFiles(const Recording& recording,
                                     const ClockOffsets& offsets,
                                     bool with_kernels) {
  std::vector<std::string> files;
  for (size_t w = 0; w < recording.workers.size(); ++w) {
    const int64_t process = (static_cast<int64_t>(w) + 5) << 24;
    std::string sql = absl::StrCat(kSchema, with_kernels ? kKernelSchema : "");
    int64_t id = 0;
    for (const RecordingRange& range : recording.workers[w]) {
      ++id;
      // Nanoseconds.
      const int64_t start = 1000 * (range.start + offsets[w]);
      const int64_t end = 1000 * (range.end + offsets[w]);
      // Kernels begin long after their launches, which follow each other.
      const int64_t host = with_kernels ? 1000 * (offsets[w] + id) : start;
      const int64_t host_end = with_kernels ? host + 900 : end;
      if (id % 2 == 0) {
        absl::StrAppend(&sql, "INSERT INTO StringIds VALUES (", id, ",'",
                        range.name, "');");
      }
      absl::StrAppend(
          &sql, "INSERT INTO NVTX_EVENTS VALUES (", host, ",", host_end, ",59,",
          id % 2 == 0 ? "NULL" : absl::StrCat("'", range.name, "'"), ",",
          process + 7, ",", id % 2 == 0 ? absl::StrCat(id) : "NULL", ");");
      if (!with_kernels) continue;
      absl::StrAppend(&sql, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (",
                      host + 1, ",", host + 2, ",", process + 7, ",", id,
                      ");INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (",
                      start, ",", end, ",", id, ",", process, ");");
    }
    files.push_back(DatabaseBytes(sql));
  }
  return files;
}

}  // namespace weir::fuzz
