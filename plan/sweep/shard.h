// SPDX-License-Identifier: Apache-2.0
// What one process appends its points to: FOLDER/shard-I-of-N.jsonl, a line
// with the head of the sweep and one for each point, in the order in which they
// ended. A line is one write(2) and counts once its end of line is there: kill
// -9 leaves at most half a line, which is cut off when the file is opened
// again.
#ifndef WEIR_PLAN_SWEEP_SHARD_H_
#define WEIR_PLAN_SWEEP_SHARD_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/sweep/sweep.pb.h"

namespace weir {

struct Shard {
  int index = 0;  // point k belongs to shard k mod num_shards
  int num_shards = 1;
};

// "0/4". Message: "is x, expected y".
absl::StatusOr<Shard> ParseShard(absl::string_view text);

std::string ShardPath(const std::string& folder, const Shard& shard);

// What a file holds, without half a line at its end.
struct ShardContents {
  bool has_head = false;  // false: nothing whole was written
  SweepHead head;
  std::vector<SweepOutcome> outcomes;
  int num_damaged = 0;  // lines that are whole but cannot be read
  off_t num_bytes = 0;  // of whole lines
};

ShardContents ParseShardFile(const std::string& bytes);
absl::StatusOr<ShardContents> ReadShardFile(const std::string& path);

// The shards of a folder, sorted by name. NotFound when there are none.
absl::StatusOr<std::vector<std::string>> ShardPaths(const std::string& folder);

// A shard that this process writes, and no other while this lives.
class ShardWriter {
 public:
  // Makes the folder and the file as needed. FailedPrecondition where another
  // process writes it.
  static absl::StatusOr<ShardWriter> Open(const std::string& path);
  ShardWriter(ShardWriter&& other) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // What was there when it was opened.
  const ShardContents& contents() const { return contents_; }

  absl::Status Append(const SweepHead& head);
  absl::Status Append(const SweepOutcome& outcome);

 private:
  ShardWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status AppendLine(const std::string& line);

  std::string path_;
  int fd_ = -1;
  ShardContents contents_;
};

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_SHARD_H_
