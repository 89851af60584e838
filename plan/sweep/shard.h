// SPDX-License-Identifier: Apache-2.0
// The file to which one process appends its points: FOLDER/shard-I-of-N.jsonl,
// with a line for the head of the sweep and a line for each point, in the order
// in which they ended. Each line is a record with a checksum
// (base/record_log.h).
//
// A record is valid once its line end is written: a process that is killed
// loses at most a partial line, which is removed when the file is opened again.
// Records are synced to disk at most a second after they were appended, and all
// of them before the sweep reports how many points are done: a power failure
// loses only points that no report has counted, and --resume runs them again. A
// record that does not match its checksum is skipped and reported, and its
// point runs again.
#ifndef WEIR_PLAN_SWEEP_SHARD_H_
#define WEIR_PLAN_SWEEP_SHARD_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/sweep/sweep.pb.h"

namespace weir::plan {

struct Shard {
  int index = 0;  // point k belongs to shard k mod num_shards
  int num_shards = 1;
};

// Parses "0/4". Returns InvalidArgument "is x, expected y" otherwise.
absl::StatusOr<Shard> ParseShard(absl::string_view text);

std::string ShardPath(const std::string& folder, const Shard& shard);

// The contents of a file, without a partial line at its end.
struct ShardContents {
  bool has_head = false;  // false: no complete line was written
  SweepHead head;
  std::vector<SweepOutcome> outcomes;
  // A message for each complete record that cannot be used: "PATH: record 3
  // (byte 1042) is damaged: its checksum does not match".
  std::vector<std::string> damage;
  off_t num_bytes = 0;  // in complete lines
};

// Return InvalidArgument if the bytes are not a shard, or their head is
// damaged.
absl::StatusOr<ShardContents> ParseShardFile(const std::string& path,
                                             const std::string& bytes);
// Also returns NotFound if the file does not exist.
absl::StatusOr<ShardContents> ReadShardFile(const std::string& path);

// Returns the shards of a folder, sorted by name. Returns NotFound if there are
// none.
absl::StatusOr<std::vector<std::string>> ShardPaths(const std::string& folder);

// A shard that only this process can write during the lifetime of this object.
// Writing returns InvalidArgument if it fails.
class ShardWriter {
 public:
  // Creates the folder and the file as needed. Returns FailedPrecondition if
  // another process writes the shard. A file that is not a shard is an error
  // and is not changed; with `force` it is emptied.
  static absl::StatusOr<ShardWriter> Open(const std::string& path,
                                          bool force = false);
  ShardWriter(ShardWriter&& other) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // Returns the contents when the file was opened.
  const ShardContents& contents() const { return contents_; }

  absl::Status Append(const SweepHead& head);
  absl::Status Append(const SweepOutcome& outcome);

  // Sync appended records to disk; SyncIfDue only if a second has passed since
  // the last sync.
  absl::Status SyncIfDue();
  absl::Status Sync();

 private:
  ShardWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status AppendLine(const std::string& line);

  std::string path_;
  int fd_ = -1;
  bool is_synced_ = true;
  std::chrono::steady_clock::time_point synced_at_;
  ShardContents contents_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_SHARD_H_
