// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/shard.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/record_log.h"
#include "base/status_macros.h"
#include "base/temporary_file.h"
#include "base/text.h"

namespace weir::plan {
namespace {

namespace fs = std::filesystem;
namespace json = google::protobuf::util;
using google::protobuf::Message;

constexpr std::chrono::seconds kSyncInterval(1);
// Ten million points take 3 GB.
constexpr size_t kMaxShardBytes = size_t{4} << 30;

absl::StatusOr<std::string> ToLine(const Message& message) {
  std::string line;
  json::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!json::MessageToJsonString(message, &line, options).ok()) {
    return absl::InternalError("a point cannot be written as JSON");
  }
  return SealRecord(line);
}

bool FromLine(absl::string_view line, Message* message) {
  json::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // fields of a later version
  return json::JsonStringToMessage(std::string(line), message, options).ok();
}

absl::Status CannotWrite(const std::string& path) {
  return CannotBeWritten(path, std::strerror(errno));
}

absl::Status NoShard(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

// Reads the first record, which identifies the sweep.
absl::Status ReadHead(const std::string& path, const Record& record,
                      SweepHead* head) {
  const bool is_head = FromLine(record.text, head) && !head->sweep().empty();
  if (record.is_intact && is_head) return absl::OkStatus();
  if (record.is_intact ||
      (!record.text.empty() && IsBeginningOfRecordLog(record.text))) {
    return NoShard(path, record.is_intact
                             ? "record 1 is not the header of a sweep"
                             : DescribeDamage(record));
  }
  if (is_head) {
    return NoShard(path,
                   "its records have no checksums because an older version of "
                   "weir wrote them: run the sweep again with another --out");
  }
  return NoShard(path, "does not start with the header of a sweep");
}

// Uses locks owned by the process: its children do not inherit them, so they
// end when it is killed, and Linux supports them over NFS.
absl::Status Lock(const std::string& path, int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno != EACCES && errno != EAGAIN) return CannotWrite(path);
  const bool known = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_pid > 0;
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is being written by another weir sweep",
                   known ? absl::StrCat(" (process ", lock.l_pid, ")") : ""));
}

}  // namespace

absl::StatusOr<Shard> ParseShard(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  Shard shard;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shard.index) ||
      !absl::SimpleAtoi(parts[1], &shard.num_shards) || shard.index < 0 ||
      shard.index >= shard.num_shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is \"", text, "\", expected I/N with I from 0 to N - 1, as in 0/4"));
  }
  return shard;
}

std::string ShardPath(const std::string& folder, const Shard& shard) {
  return absl::StrCat(folder, "/shard-", shard.index, "-of-", shard.num_shards,
                      ".jsonl");
}

absl::StatusOr<ShardContents> ParseShardFile(const std::string& path,
                                             const std::string& bytes) {
  const RecordLog log = ParseRecordLog(bytes);
  ShardContents contents;
  contents.num_bytes = log.num_bytes;
  if (log.records.empty()) {
    if (IsBeginningOfRecordLog(bytes)) return contents;
    return NoShard(path, "does not start with the header of a sweep");
  }
  RETURN_IF_ERROR(ReadHead(path, log.records[0], &contents.head));
  contents.has_head = true;
  for (size_t i = 1; i < log.records.size(); ++i) {
    const Record& record = log.records[i];
    SweepOutcome outcome;
    if (!record.is_intact) {
      contents.damage.push_back(
          absl::StrCat(path, ": ", DescribeDamage(record)));
    } else if (!FromLine(record.text, &outcome) ||
               outcome.kind() == SWEEP_OUTCOME_UNSPECIFIED) {
      contents.damage.push_back(absl::StrCat(path, ": record ", record.number,
                                             " (byte ", record.offset,
                                             ") is not a point of a sweep"));
    } else {
      contents.outcomes.push_back(std::move(outcome));
    }
  }
  return contents;
}

absl::StatusOr<ShardContents> ReadShardFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxShardBytes));
  return ParseShardFile(path, bytes);
}

absl::StatusOr<std::vector<std::string>> ShardPaths(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, "shard-") && absl::EndsWith(name, ".jsonl")) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  if (!paths.empty()) return paths;
  return absl::NotFoundError(
      absl::StrCat(EscapeLine(folder), ": contains no shards of a sweep",
                   error ? absl::StrCat(": ", error.message()) : ""));
}

absl::StatusOr<ShardWriter> ShardWriter::Open(const std::string& path,
                                              bool force) {
  RETURN_IF_ERROR(MakeFoldersOf(path));
  ASSIGN_OR_RETURN(const int fd,
                   OpenRegularFile(path, O_RDWR | O_CREAT | O_APPEND));
  ShardWriter writer(path, fd);
  RETURN_IF_ERROR(Lock(path, fd));
  ASSIGN_OR_RETURN(const std::string bytes,
                   ReadRegularFile(path, fd, kMaxShardBytes));
  absl::StatusOr<ShardContents> contents = ParseShardFile(path, bytes);
  if (contents.ok()) {
    writer.contents_ = *std::move(contents);
  } else if (!force) {
    return contents.status();
  }
  // Removes the partial line of a process that was killed.
  if (ftruncate(fd, writer.contents_.num_bytes) != 0) return CannotWrite(path);
  return writer;
}

ShardWriter::ShardWriter(ShardWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      is_synced_(other.is_synced_),
      synced_at_(other.synced_at_),
      contents_(std::move(other.contents_)) {}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ShardWriter::Append(const SweepHead& head) {
  ASSIGN_OR_RETURN(const std::string line, ToLine(head));
  RETURN_IF_ERROR(AppendLine(line));
  SyncFolderOf(path_);
  return Sync();
}

absl::Status ShardWriter::Append(const SweepOutcome& outcome) {
  ASSIGN_OR_RETURN(const std::string line, ToLine(outcome));
  RETURN_IF_ERROR(AppendLine(line));
  return SyncIfDue();
}

absl::Status ShardWriter::SyncIfDue() {
  const auto now = std::chrono::steady_clock::now();
  if (is_synced_ || now - synced_at_ < kSyncInterval) return absl::OkStatus();
  return Sync();
}

absl::Status ShardWriter::Sync() {
  if (is_synced_) return absl::OkStatus();
  if (fdatasync(fd_) != 0) return CannotWrite(path_);
  is_synced_ = true;
  synced_at_ = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

absl::Status ShardWriter::AppendLine(const std::string& line) {
  const off_t begin = lseek(fd_, 0, SEEK_END);
  if (begin < 0) return CannotWrite(path_);
  if (WriteAll(fd_, line)) {
    is_synced_ = false;
    return absl::OkStatus();
  }
  absl::Status status = CannotWrite(path_);
  // Removes the partial line that a full disk leaves. If that fails, readers
  // ignore it, as it has no line end.
  (void)!ftruncate(fd_, begin);
  return status;
}

}  // namespace weir::plan
