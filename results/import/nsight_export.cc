// SPDX-License-Identifier: Apache-2.0
#include "results/import/nsight_export.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "results/import/operation_names.h"

namespace weir::results {
namespace {

constexpr double kMicrosecondsPerNanosecond = 1e-3;
// The process in globalTid and globalPid: the upper bits. Documentation of
// Nsight Systems, "SQLite schema reference".
constexpr int64_t kThreadsPerProcess = int64_t{1} << 24;
// Nested NVTX ranges are few.
constexpr int kMaxNested = 16;

struct Range {
  std::string name;
  double start = 0, end = 0;  // microseconds of the host
  double first_kernel = kInfinity, last_kernel = -kInfinity;

  bool has_kernel() const { return first_kernel <= last_kernel; }
};
using Ranges = std::map<int64_t, std::vector<Range>>;  // by process

class Database {
 public:
  explicit Database(absl::string_view label) : label_(label) {}
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  absl::Status OpenFile() {
    if (sqlite3_open_v2(label_.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr) !=
        SQLITE_OK) {
      return Error();
    }
    return Protect();
  }

  absl::Status OpenBytes(absl::string_view bytes) {
    if (sqlite3_open(":memory:", &db_) != SQLITE_OK) return Error();
    auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
    if (copy == nullptr) return absl::ResourceExhaustedError(label_);
    std::memcpy(copy, bytes.data(), bytes.size());
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    // Frees the copy, also after an error.
    if (sqlite3_deserialize(db_, "main", copy, size, size,
                            SQLITE_DESERIALIZE_FREEONCLOSE |
                                SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
      return Error();
    }
    return Protect();
  }

  // Calls `row` for each row of the query.
  absl::Status Query(const char* sql,
                     const std::function<void(sqlite3_stmt*)>& row) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK) {
      return Error();
    }
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(
        statement, sqlite3_finalize);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) row(statement);
    return code == SQLITE_DONE ? absl::OkStatus() : Error();
  }

  absl::StatusOr<bool> HasTable(absl::string_view name) {
    bool found = false;
    RETURN_IF_ERROR(Query("SELECT name FROM sqlite_master WHERE type = 'table'",
                          [&](sqlite3_stmt* row) {
                            const auto* text = reinterpret_cast<const char*>(
                                sqlite3_column_text(row, 0));
                            found |= text != nullptr && name == text;
                          }));
    return found;
  }

  absl::Status Error() const {
    return absl::InvalidArgumentError(absl::StrCat(
        label_, ": ", db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_),
        ", expected an SQLite export of Nsight Systems"));
  }

 private:
  // The schema of a foreign file may name functions and views.
  absl::Status Protect() {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    return absl::OkStatus();
  }

  std::string label_;
  sqlite3* db_ = nullptr;
};

double Microseconds(sqlite3_stmt* row, int column) {
  return kMicrosecondsPerNanosecond *
         static_cast<double>(sqlite3_column_int64(row, column));
}

absl::StatusOr<Ranges> ReadRanges(Database* database) {
  Ranges ranges;
  RETURN_IF_ERROR(database->Query(
      "SELECT n.start, n.end, COALESCE(n.text, s.value), n.globalTid "
      "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON n.textId = s.id "
      "WHERE n.end IS NOT NULL",
      [&](sqlite3_stmt* row) {
        const auto* text =
            reinterpret_cast<const char*>(sqlite3_column_text(row, 2));
        if (text == nullptr || !ParseOperationName(text).has_value()) return;
        Range range;
        range.name = text;
        range.start = Microseconds(row, 0);
        range.end = std::max(Microseconds(row, 1), range.start);
        ranges[sqlite3_column_int64(row, 3) / kThreadsPerProcess].push_back(
            std::move(range));
      }));
  for (auto& [process, all] : ranges) {
    std::stable_sort(
        all.begin(), all.end(),
        [](const Range& a, const Range& b) { return a.start < b.start; });
  }
  return ranges;
}

// Gives a kernel to the innermost range in which it was launched.
void AddKernel(double launched, double start, double end,
               std::vector<Range>* ranges) {
  auto after = std::upper_bound(
      ranges->begin(), ranges->end(), launched,
      [](double time, const Range& range) { return time < range.start; });
  for (int i = 0; i < kMaxNested && after != ranges->begin(); ++i) {
    --after;
    if (after->end < launched) continue;
    after->first_kernel = std::min(after->first_kernel, start);
    after->last_kernel = std::max({after->last_kernel, start, end});
    return;
  }
}

absl::Status Read(absl::string_view label, Database* database,
                  const std::function<void(const ChromeEvent&)>& take) {
  ASSIGN_OR_RETURN(const bool has_ranges, database->HasTable("NVTX_EVENTS"));
  if (!has_ranges) {
    return absl::InvalidArgumentError(
        absl::StrCat(label,
                     ": has no table NVTX_EVENTS, expected an SQLite export of "
                     "Nsight Systems with NVTX ranges"));
  }
  ASSIGN_OR_RETURN(Ranges ranges, ReadRanges(database));
  ASSIGN_OR_RETURN(const bool has_kernels,
                   database->HasTable("CUPTI_ACTIVITY_KIND_KERNEL"));
  ASSIGN_OR_RETURN(const bool has_launches,
                   database->HasTable("CUPTI_ACTIVITY_KIND_RUNTIME"));
  if (has_kernels && has_launches) {
    RETURN_IF_ERROR(database->Query(
        "SELECT r.start, r.globalTid, k.start, k.end "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
        "ON r.correlationId = k.correlationId "
        "AND r.globalTid / 16777216 = k.globalPid / 16777216",
        [&](sqlite3_stmt* row) {
          const auto found =
              ranges.find(sqlite3_column_int64(row, 1) / kThreadsPerProcess);
          if (found == ranges.end()) return;
          AddKernel(Microseconds(row, 0), Microseconds(row, 2),
                    Microseconds(row, 3), &found->second);
        }));
  }
  for (const auto& [process, all] : ranges) {
    for (const Range& range : all) {
      ChromeEvent event;
      event.name = range.name;
      event.phase = 'X';
      event.process = absl::StrCat(process);
      event.category = "user_annotation";
      event.start_microseconds = range.start;
      event.microseconds = range.end - range.start;
      take(event);
      if (!range.has_kernel()) continue;
      event.category = "gpu_user_annotation";
      event.start_microseconds = range.first_kernel;
      event.microseconds = range.last_kernel - range.first_kernel;
      take(event);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsSqlite(absl::string_view bytes) {
  return absl::StartsWith(bytes, "SQLite format 3");
}

absl::Status ReadNsightExport(
    const std::string& path,
    const std::function<void(const ChromeEvent&)>& take) {
  Database database(path);
  RETURN_IF_ERROR(database.OpenFile());
  return Read(path, &database, take);
}

absl::Status ReadNsightBytes(
    absl::string_view label, absl::string_view bytes,
    const std::function<void(const ChromeEvent&)>& take) {
  Database database(label);
  RETURN_IF_ERROR(database.OpenBytes(bytes));
  return Read(label, &database, take);
}

}  // namespace weir::results
