// SPDX-License-Identifier: Apache-2.0
#include <csv.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "results/import/bytedance_timeline.h"
#include "results/import/operation_names.h"

namespace weir::results {
namespace {

constexpr size_t kMaxErrors = 20;
constexpr size_t kMaxColumns = 1000;

class Reader {
 public:
  explicit Reader(TraceSource* source) : source_(source) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
  }
  ~Reader() { csv_free(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  absl::StatusOr<RecordedRun> Read() {
    std::vector<char> buffer(size_t{64} << 10);
    while (errors_.size() < kMaxErrors && (row_ == 0 || has_columns_)) {
      const auto count = source_->sgetn(
          buffer.data(), static_cast<std::streamsize>(buffer.size()));
      if (count <= 0) break;
      const auto size = static_cast<size_t>(count);
      ends_with_line_ = buffer[size - 1] == '\n';
      if (csv_parse(&parser_, buffer.data(), size, TakeField, TakeRow, this) !=
          size) {
        Note("a quote inside a field, expected \"...\" around the field");
        break;
      }
    }
    if (!source_->status().ok()) return source_->status();
    if (!errors_.empty()) {
      return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
    }
    return Finish();
  }

 private:
  enum Column {
    kStep,
    kReplica,
    kRank,
    kOptype,
    kStart,
    kDuration,
    kChunk,
    kMicrobatch,
    kWorker,  // of all, also of tensor-parallel ranks
    kNumColumns
  };
  static constexpr const char* kNames[kNumColumns] = {
      "step",     "dp_rank", "stage", "optype", "start_ts",
      "duration", "mc",      "mb_id", "rank"};

  static void TakeField(void* field, size_t size, void* self) {
    auto* reader = static_cast<Reader*>(self);
    if (reader->fields_.size() == kMaxColumns) return;
    reader->fields_.emplace_back(absl::StripAsciiWhitespace(
        absl::string_view(static_cast<char*>(field), size)));
  }
  static void TakeRow(int, void* self) {
    auto* reader = static_cast<Reader*>(self);
    reader->source_->EndItem();
    ++reader->row_;
    if (reader->row_ == 1) {
      reader->Header();
    } else if (reader->has_columns_ && reader->errors_.size() < kMaxErrors) {
      reader->Row();
    }
    reader->fields_.clear();
  }

  void Note(absl::string_view what) {
    if (errors_.size() < kMaxErrors) {
      errors_.push_back(absl::StrCat(source_->label(), ":", row_, ": ", what));
    }
  }

  void Header() {
    for (int c = 0; c < kNumColumns; ++c) {
      const auto found = std::find(fields_.begin(), fields_.end(), kNames[c]);
      columns_[c] = found == fields_.end()
                        ? -1
                        : static_cast<int>(found - fields_.begin());
      if (columns_[c] < 0 && c < kChunk) {
        Note(absl::StrCat("has no column ", kNames[c], "; found columns: ",
                          absl::StrJoin(fields_, ", ").substr(0, 500)));
      }
    }
    num_fields_ = fields_.size();
    has_columns_ = errors_.empty();
  }

  // Returns `otherwise` without such a column.
  int Integer(Column column, int low, int high, int otherwise) {
    if (columns_[column] < 0) return otherwise;
    int value = 0;
    const std::string& text = fields_[columns_[column]];
    if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) {
      return value;
    }
    Note(absl::StrCat(kNames[column], " is \"", text.substr(0, 40),
                      "\", expected an integer from ", low, " to ", high));
    return low;
  }

  double Seconds(Column column, double low) {
    double value = 0;
    const std::string& text = fields_[columns_[column]];
    if (absl::SimpleAtod(text, &value) && value >= low &&
        value <= kMaxRecordedSeconds) {
      return value;
    }
    Note(absl::StrCat(kNames[column], " is \"", text.substr(0, 40),
                      "\", expected seconds from ", low, " to ",
                      kMaxRecordedSeconds));
    return 0;
  }

  void Row() {
    if (fields_.empty() || (fields_.size() == 1 && fields_[0].empty())) return;
    if (fields_.size() != num_fields_) {
      Note(absl::StrCat("has ", fields_.size(), " fields, expected ",
                        num_fields_, " as in the header"));
      return;
    }
    const std::string& name = fields_[columns_[kOptype]];
    const auto kind = ParseTimerName(name);
    if (!kind.has_value()) {
      Note(absl::StrCat("optype is \"", name.substr(0, 40),
                        "\", expected forward-compute, backward-send, "
                        "params-all-gather ... (docs/traces.md)"));
      return;
    }
    RecordedOperation o;
    o.kind = *kind;
    o.step = Integer(kStep, 0, kMaxRecordedNumber, 0);
    o.replica = Integer(kReplica, 0, kMaxRecordedWorkers - 1, 0);
    o.rank = Integer(kRank, 0, kMaxRecordedWorkers - 1, 0);
    o.start_seconds = Seconds(kStart, -kMaxRecordedSeconds);
    o.end_seconds = o.start_seconds + Seconds(kDuration, 0);
    const int chunk = Integer(kChunk, -1, kMaxRecordedChunks - 1, -1);
    const int microbatch = Integer(kMicrobatch, -1, kMaxRecordedNumber, -1);
    if (IsPass(*kind)) {
      o.microbatch = microbatch;
      // The chunk for now: the number of ranks is not known yet.
      o.stage = std::max(chunk, 0);
      if (microbatch < 0) Note("mb_id is -1 or missing, expected at least 0");
    }
    int worker = 0;
    if (columns_[kWorker] >= 0 &&
        absl::SimpleAtoi(fields_[columns_[kWorker]], &worker) && worker >= 0 &&
        worker < kMaxRecordedWorkers) {
      workers_.insert(worker);
    }
    run_.num_replicas = std::max(run_.num_replicas, o.replica + 1);
    run_.num_ranks = std::max(run_.num_ranks, o.rank + 1);
    run_.operations.push_back(o);
  }

  // Returns the distance of the workers' numbers from 0, or 0 if it varies.
  int64_t WorkerStride() const {
    const int64_t stride = *std::next(workers_.begin());
    int64_t expected = 0;
    for (const int64_t worker : workers_) {
      if (worker != expected) return 0;
      expected += stride;
    }
    return stride;
  }

  void NoteMissingWorkers() {
    if (workers_.size() < 2) return;
    const int64_t stride = WorkerStride();
    if (stride == 1) return;
    if (stride > 1) {
      run_.num_tensor_ranks = static_cast<int>(stride);
      run_.notes.push_back(
          absl::StrCat("numbers in column rank are ", stride,
                       " apart: workers are taken to "
                       "have ",
                       stride,
                       " tensor-parallel ranks, of which one is recorded. "
                       "Otherwise workers are missing"));
      return;
    }
    const int64_t last = *workers_.rbegin();
    run_.notes.push_back(absl::StrCat(
        "column rank lacks ", MissingNumbers(workers_, last), " of 0 to ", last,
        ": workers are missing, unless these are tensor-parallel ranks. The "
        "result is of the others"));
  }

  absl::StatusOr<RecordedRun> Finish() {
    if (row_ == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(source_->label(),
                       ": is no trace, expected JSON, or a table with the "
                       "columns ",
                       absl::StrJoin(kNames, ", ")));
    }
    run_.label = source_->label();
    run_.format = "ByteDance table";
    int num_chunks = 1;
    for (RecordedOperation& o : run_.operations) {
      if (!IsPass(o.kind)) continue;
      num_chunks = std::max(num_chunks, o.stage + 1);
      o.stage = o.stage * run_.num_ranks + o.rank;
    }
    run_.num_stages = num_chunks * run_.num_ranks;
    NoteMissingWorkers();
    // The last number of an incomplete row may lack digits.
    if (source_->cut_off() || !ends_with_line_) {
      run_.notes.push_back(
          "the table ends within a row, which is ignored: it may be cut off");
    }
    return std::move(run_);
  }

  TraceSource* source_;
  csv_parser parser_;
  int64_t row_ = 0;
  size_t num_fields_ = 0;
  bool has_columns_ = false, ends_with_line_ = true;
  int columns_[kNumColumns] = {};
  std::set<int64_t> workers_;
  std::vector<std::string> fields_;
  std::vector<std::string> errors_;
  RecordedRun run_;
};

}  // namespace

absl::StatusOr<RecordedRun> ReadByteDanceCsv(TraceSource* source) {
  return Reader(source).Read();
}

}  // namespace weir::results
