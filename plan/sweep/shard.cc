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
#include "base/status_macros.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
namespace json = google::protobuf::util;
using google::protobuf::Message;

// Ten million points take 3 GB.
constexpr size_t kMaxShardBytes = size_t{4} << 30;

absl::StatusOr<std::string> ToLine(const Message& message) {
  std::string line;
  json::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!json::MessageToJsonString(message, &line, options).ok()) {
    return absl::InternalError("a point cannot be written as JSON");
  }
  return line + "\n";
}

bool FromLine(absl::string_view line, Message* message) {
  json::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a later version
  return json::JsonStringToMessage(std::string(line), message, options).ok();
}

absl::Status CannotWrite(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

// Locks of a process: its children have no part in them, so that nothing holds
// them once it is killed; and Linux has them over NFS.
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

absl::StatusOr<std::string> ReadAll(const std::string& path, int fd) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotWrite(path);
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
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

ShardContents ParseShardFile(const std::string& bytes) {
  ShardContents contents;
  contents.num_bytes = static_cast<off_t>(bytes.rfind('\n') + 1);  // npos: 0
  absl::string_view rest(bytes.data(), contents.num_bytes);
  if (rest.empty()) return contents;
  size_t end = rest.find('\n');
  contents.has_head = FromLine(rest.substr(0, end), &contents.head);
  if (!contents.has_head) {  // whatever it is, it is no shard
    ++contents.num_damaged;
    return contents;
  }
  for (rest.remove_prefix(end + 1); !rest.empty();
       rest.remove_prefix(end + 1)) {
    end = rest.find('\n');
    SweepOutcome outcome;
    if (FromLine(rest.substr(0, end), &outcome) &&
        outcome.kind() != SWEEP_OUTCOME_UNSPECIFIED) {
      contents.outcomes.push_back(std::move(outcome));
    } else {
      ++contents.num_damaged;
    }
  }
  return contents;
}

absl::StatusOr<ShardContents> ReadShardFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxShardBytes));
  ShardContents contents = ParseShardFile(bytes);
  if (contents.has_head || contents.num_damaged == 0) return contents;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": begins with no head of a sweep"));
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
      absl::StrCat(folder, ": has no shards of a sweep",
                   error ? absl::StrCat(": ", error.message()) : ""));
}

absl::StatusOr<ShardWriter> ShardWriter::Open(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(path);
  ShardWriter writer(path, fd);
  RETURN_IF_ERROR(Lock(path, fd));
  ASSIGN_OR_RETURN(const std::string bytes, ReadAll(path, fd));
  writer.contents_ = ParseShardFile(bytes);
  if (!writer.contents_.has_head && writer.contents_.num_damaged > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": begins with no head of a sweep"));
  }
  // What was being written when its process was killed.
  if (ftruncate(fd, writer.contents_.num_bytes) != 0) return CannotWrite(path);
  return writer;
}

ShardWriter::ShardWriter(ShardWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      contents_(std::move(other.contents_)) {}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ShardWriter::Append(const SweepHead& head) {
  ASSIGN_OR_RETURN(const std::string line, ToLine(head));
  return AppendLine(line);
}

absl::Status ShardWriter::Append(const SweepOutcome& outcome) {
  ASSIGN_OR_RETURN(const std::string line, ToLine(outcome));
  return AppendLine(line);
}

absl::Status ShardWriter::AppendLine(const std::string& line) {
  ssize_t written = 0;
  do {
    written = write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
  if (written >= 0) errno = ENOSPC;  // which only the next write would say
  const absl::Status status = CannotWrite(path_);
  // A full disk took a part of it.
  const off_t end = lseek(fd_, 0, SEEK_END);
  if (written > 0 && ftruncate(fd_, end - written) != 0) return status;
  return status;
}

}  // namespace weir
