// SPDX-License-Identifier: Apache-2.0
// Writes a collected sweep as an SQLite database. The same points give the same
// bytes: there are no times and no random keys, and a single transaction
// inserts the points in order.
#include <sqlite3.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"
#include "plan/sweep/collect.h"

namespace weir::plan {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

absl::Status Error(sqlite3* database) {
  return absl::InvalidArgumentError(sqlite3_errmsg(database));
}

absl::Status Execute(sqlite3* database, const std::string& sql) {
  return sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) ==
                 SQLITE_OK
             ? absl::OkStatus()
             : Error(database);
}

std::string Quoted(const std::string& name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

std::string CreatePoints(const SweepTable& table) {
  std::vector<std::string> columns;
  for (size_t i = 0; i < table.names.size(); ++i) {
    const char* type = "TEXT";
    if (table.kinds[i] == SweepTable::Kind::kInteger) type = "INTEGER";
    if (table.kinds[i] == SweepTable::Kind::kReal) type = "REAL";
    columns.push_back(absl::StrCat(Quoted(table.names[i]), " ", type,
                                   i == 0 ? " PRIMARY KEY" : ""));
  }
  return absl::StrCat("CREATE TABLE points (", absl::StrJoin(columns, ", "),
                      ")");
}

int Bind(sqlite3_stmt* statement, int index, const SweepCell& cell) {
  if (const auto* whole = std::get_if<int64_t>(&cell)) {
    return sqlite3_bind_int64(statement, index, *whole);
  }
  if (const auto* truth = std::get_if<bool>(&cell)) {
    return sqlite3_bind_int64(statement, index, *truth ? 1 : 0);
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return sqlite3_bind_double(statement, index, *number);
  }
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return sqlite3_bind_text(statement, index, text->data(),
                             static_cast<int>(text->size()), SQLITE_TRANSIENT);
  }
  return sqlite3_bind_null(statement, index);
}

// Inserts rows of one table.
class Insert {
 public:
  static absl::StatusOr<Insert> Into(sqlite3* database,
                                     const std::string& table,
                                     size_t num_columns) {
    const std::string sql = absl::StrCat(
        "INSERT INTO ", table, " VALUES (",
        absl::StrJoin(std::vector<std::string>(num_columns, "?"), ", "), ")");
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) !=
        SQLITE_OK) {
      return Error(database);
    }
    return Insert(database, Statement(statement));
  }

  absl::Status Row(const std::vector<SweepCell>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (Bind(statement_.get(), static_cast<int>(i) + 1, cells[i]) !=
          SQLITE_OK) {
        return Error(database_);
      }
    }
    if (sqlite3_step(statement_.get()) != SQLITE_DONE) return Error(database_);
    sqlite3_reset(statement_.get());
    return absl::OkStatus();
  }

 private:
  Insert(sqlite3* database, Statement statement)
      : database_(database), statement_(std::move(statement)) {}

  sqlite3* database_;
  Statement statement_;
};

absl::Status Fill(sqlite3* database, const CollectedSweep& collected) {
  // No journal is needed: the file has a temporary name until it is complete.
  RETURN_IF_ERROR(Execute(database, "PRAGMA journal_mode = OFF"));
  RETURN_IF_ERROR(Execute(database, "PRAGMA synchronous = OFF"));
  RETURN_IF_ERROR(Execute(database, absl::StrCat("PRAGMA application_id = ",
                                                 kSqliteApplicationId)));
  RETURN_IF_ERROR(Execute(database, "BEGIN"));
  RETURN_IF_ERROR(Execute(database,
                          "CREATE TABLE sweep (name TEXT, num_points INTEGER, "
                          "weir_version TEXT, git_revision TEXT, definition "
                          "TEXT)"));
  ASSIGN_OR_RETURN(Insert sweep, Insert::Into(database, "sweep", 5));
  const SweepHead& head = collected.head;
  RETURN_IF_ERROR(sweep.Row(
      {collected.sweep.sweep.name(), int64_t{collected.sweep.num_points},
       head.weir_version(), head.git_revision(), head.sweep()}));
  const SweepTable table = TableOf(collected.sweep);
  RETURN_IF_ERROR(Execute(database, CreatePoints(table)));
  ASSIGN_OR_RETURN(Insert points,
                   Insert::Into(database, "points", table.names.size()));
  for (const auto& [point, outcome] : collected.outcomes) {
    RETURN_IF_ERROR(points.Row(RowOf(collected.sweep, outcome)));
  }
  return Execute(database, "COMMIT");
}

absl::Status Write(const std::string& path, const CollectedSweep& collected) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(path.c_str(), &opened);
  const Database database(opened);
  if (code != SQLITE_OK) return Error(opened);
  return Fill(opened, collected);
}

}  // namespace

absl::Status WriteSqlite(const std::string& path,
                         const CollectedSweep& collected) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return CannotBeWritten(path, "is not a regular file");
  }
  ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  RETURN_IF_ERROR(MakeFoldersOf(target));
  absl::StatusOr<TemporaryFile> file = TemporaryFile::Create(target);
  if (!file.ok()) return CannotBeWritten(path, file.status().message());
  absl::Status written = Write(file->path(), collected);
  if (written.ok()) written = file->Commit();
  if (written.ok()) return written;
  return CannotBeWritten(path, written.message());
}

}  // namespace weir::plan
