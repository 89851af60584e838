// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_timeline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "results/pipeline_events.h"
#include "schedules/comm/comm_program.h"

namespace weir::results {
namespace {

constexpr int kMaxRanks = 1 << 16;
constexpr size_t kMaxErrors = 20;
constexpr double kMaxTime = 1e18;

// One row of the table.
struct Event {
  int row = 0;
  int rank = 0;
  // For a step, op is not set and microbatch is the update.
  schedules::CommAction action{};
  bool step = false;
  double start = 0, end = 0, ready = 0, bytes = 0;  // seconds
};

struct Unit {
  const char* suffix;
  double seconds;
};
constexpr Unit kUnits[] = {
    {"seconds", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};

// Parses "2 step u3", as ActionText prints it.
bool ParseStep(absl::string_view text, schedules::CommAction* step) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(" step u", 1));
  return absl::SimpleAtoi(parts.first, &step->stage) && step->stage >= 0 &&
         absl::SimpleAtoi(parts.second, &step->microbatch) &&
         step->microbatch >= 0;
}

class MeasuredTimelineReader {
 public:
  explicit MeasuredTimelineReader(const CsvTable& table) : table_(table) {}

  absl::StatusOr<std::vector<Event>> Read() {
    ASSIGN_OR_RETURN(const Unit unit, FindUnit());
    const auto column = [&](absl::string_view name) {
      return table_.Column(absl::StrCat(name, "_", unit.suffix));
    };
    ASSIGN_OR_RETURN(const CsvColumn rank, table_.Column("rank"));
    ASSIGN_OR_RETURN(const CsvColumn action, table_.Column("action"));
    ASSIGN_OR_RETURN(const CsvColumn start, column("start"));
    ASSIGN_OR_RETURN(const CsvColumn end, column("end"));
    std::optional<CsvColumn> ready, bytes;
    if (const auto found = column("ready"); found.ok()) ready = *found;
    if (const auto found = table_.Column("bytes"); found.ok()) bytes = *found;
    RETURN_IF_ERROR(CheckHeader(unit));
    std::vector<Event> events;
    for (int row = 0; row < table_.num_rows(); ++row) {
      Event event;
      event.row = row;
      event.rank = static_cast<int>(Number(rank, row, 0, kMaxRanks - 1));
      event.start = unit.seconds * Number(start, row, -kMaxTime, kMaxTime);
      event.end = unit.seconds * Number(end, row, -kMaxTime, kMaxTime);
      event.ready = event.start;
      if (ready.has_value() && !ready->Text(row).empty()) {
        event.ready = unit.seconds * Number(*ready, row, -kMaxTime, kMaxTime);
      }
      if (bytes.has_value() && !bytes->Text(row).empty()) {
        event.bytes = Number(*bytes, row, 0, kMaxTime);
      }
      if (event.end < event.start) {
        Note(end.Error(row, absl::StrCat("expected at least the start time, ",
                                         start.Text(row))));
      }
      ReadAction(action, &event);
      if (IsMeasured(event)) events.push_back(event);
    }
    if (!errors_.empty()) {
      return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
    }
    return events;
  }

 private:
  // Excludes receives, which are mostly waiting, and reshards, which take no
  // time.
  static bool IsMeasured(const Event& event) {
    return event.step ||
           (event.action.op != schedules::CommOp::kReceiveForward &&
            event.action.op != schedules::CommOp::kReceiveBackward &&
            event.action.op != schedules::CommOp::kReshard);
  }

  // A misspelled column would silently be ignored.
  absl::Status CheckHeader(const Unit& unit) const {
    std::vector<std::string> known = {"rank", "action", "bytes"};
    for (const char* name : {"start", "end", "ready"}) {
      known.push_back(absl::StrCat(name, "_", unit.suffix));
    }
    for (const std::string& name : table_.header()) {
      if (absl::StartsWith(name, "note") ||
          std::find(known.begin(), known.end(), name) != known.end()) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          table_.label(), ": has a column ", name, DidYouMean(name, known),
          ", expected ", absl::StrJoin(known, ", "), ", note..."));
    }
    return absl::OkStatus();
  }

  void Note(const absl::Status& status) {
    if (errors_.size() < kMaxErrors) {
      errors_.emplace_back(status.message());
    }
  }

  double Number(const CsvColumn& column, int row, double low, double high) {
    const auto number = column.Number(row, low, high);
    if (!number.ok()) Note(number.status());
    return number.ok() ? *number : 0;
  }

  void ReadAction(const CsvColumn& column, Event* event) {
    const std::string& text = column.Text(event->row);
    event->step = ParseStep(text, &event->action);
    if (event->step) return;
    const auto action = schedules::ParseCommAction(text);
    if (action.ok()) {
      event->action = *action;
    } else {
      Note(column.Error(event->row,
                        "expected 2F0, 2B0, 2I0, 2W0, 2B0-3, 2 step u0, "
                        "2SEND_F0, 2REDUCE_GRAD ..."));
    }
  }

  absl::StatusOr<Unit> FindUnit() const {
    for (const Unit& unit : kUnits) {
      if (table_.HasColumn(absl::StrCat("start_", unit.suffix))) return unit;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(table_.label(),
                     ": has no column start_seconds, start_ms, start_us or "
                     "start_ns; found columns: ",
                     absl::StrJoin(table_.header(), ", ")));
  }

  const CsvTable& table_;
  std::vector<std::string> errors_;
};

class Writer {
 public:
  Writer(const CsvTable& table, const std::vector<Event>& events)
      : table_(table),
        events_(events),
        has_ready_(std::any_of(
            table.header().begin(), table.header().end(),
            [](const auto& n) { return absl::StartsWith(n, "ready_"); })) {}

  absl::StatusOr<Result> Write() {
    result_.set_name(table_.label());
    result_.set_schedule("measured");
    result_.set_method("measured");
    RETURN_IF_ERROR(WriteRanks());
    begin_ = std::numeric_limits<double>::infinity();
    double end = 0;
    for (const Event& event : events_) {
      begin_ = std::min(begin_, event.start);
      if (IsPass(event)) passes_.emplace(KeyOf(event), &event);
    }
    for (const Event& event : events_) {
      end = std::max(end, event.end - begin_);
      RETURN_IF_ERROR(WriteEvent(event));
    }
    result_.set_makespan_seconds(end);
    result_.set_batch_seconds(end);
    return std::move(result_);
  }

 private:
  // (gradient, stage, microbatch) of data that is produced or consumed.
  using Key = std::tuple<bool, int64_t, int32_t>;

  static bool IsPass(const Event& event) {
    return !event.step && event.action.op <= schedules::CommOp::kBackwardInput;
  }
  static Key KeyOf(const Event& event) {
    return {event.action.op != schedules::CommOp::kForward, event.action.stage,
            event.action.microbatch};
  }

  // Returns the pass that consumes the microbatch, alone or among others.
  const Event* TakerOf(const Key& key) const {
    auto after = passes_.upper_bound(key);
    if (after == passes_.begin()) return nullptr;
    const auto& [first, pass] = *std::prev(after);
    const bool takes = std::get<0>(first) == std::get<0>(key) &&
                       std::get<1>(first) == std::get<1>(key) &&
                       pass->action.last_microbatch() >= std::get<2>(key);
    return takes ? pass : nullptr;
  }

  absl::Status WriteRanks() {
    std::set<int> ranks;
    for (const Event& event : events_) ranks.insert(event.rank);
    if (ranks.empty() ||
        *ranks.rbegin() + 1 != static_cast<int>(ranks.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          table_.label(), ": has events of ", ranks.size(),
          " ranks, expected events of all ranks 0, 1, 2, ... without gaps"));
    }
    for (const int rank : ranks) {
      result_.add_ranks()->set_rank(rank);
      result_.mutable_ranks(rank)->set_gpu(rank);
    }
    result_.set_tensor_parallel(1);
    result_.set_pipeline_parallel(static_cast<uint32_t>(ranks.size()));
    result_.set_data_parallel(1);
    return absl::OkStatus();
  }

  template <typename Columns>
  void WriteTimes(const Event& event, Columns* columns) const {
    columns->add_start_seconds(event.start - begin_);
    columns->add_end_seconds(event.end - begin_);
  }

  void WriteAction(const Event& event, uint32_t op) {
    auto* actions = result_.mutable_timeline()->mutable_actions();
    actions->add_gpu(event.rank);
    actions->add_op(op);
    actions->add_stage(event.action.stage);
    actions->add_microbatch(event.action.microbatch);
    actions->add_num_microbatches(event.action.num_microbatches);
    WriteTimes(event, actions);
  }

  absl::Status WriteTransfer(const Event& event) {
    const bool gradient = event.action.op == schedules::CommOp::kSendBackward;
    const Event* taker =
        TakerOf({gradient, int64_t{event.action.stage} + (gradient ? -1 : 1),
                 event.action.microbatch});
    if (taker == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(table_.label(), ":", table_.rows()[event.row].line, ": ",
                       schedules::ToString(event.action),
                       " has no matching receive, expected ",
                       ActionText(gradient ? kBackwardOp : kForwardOp,
                                  event.action.stage + (gradient ? -1 : 1),
                                  event.action.microbatch, 1),
                       " on some rank"));
    }
    auto* transfers = result_.mutable_timeline()->mutable_transfers();
    transfers->add_from_gpu(event.rank);
    transfers->add_to_gpu(taker->rank);
    transfers->add_kind(gradient ? 1 : 0);
    transfers->add_stage(event.action.stage);
    transfers->add_microbatch(event.action.microbatch);
    transfers->add_bytes(event.bytes);
    if (has_ready_) {
      transfers->add_ready_seconds(std::max(event.ready - begin_, 0.0));
    }
    WriteTimes(event, transfers);
    return absl::OkStatus();
  }

  void WriteCollective(const Event& event, uint32_t kind) {
    auto* collectives = result_.mutable_timeline()->mutable_collectives();
    collectives->add_gpu(event.rank);
    collectives->add_kind(kind);
    collectives->add_stage(event.action.stage);
    collectives->add_microbatch(
        num_collectives_[{event.rank, kind, event.action.stage}]++);
    collectives->add_bytes(event.bytes);
    WriteTimes(event, collectives);
  }

  absl::Status WriteEvent(const Event& event) {
    if (event.step) {
      WriteAction(event, kStepOp);
      return absl::OkStatus();
    }
    switch (event.action.op) {
      case schedules::CommOp::kForward:
      case schedules::CommOp::kBackward:
      case schedules::CommOp::kBackwardInput:
      case schedules::CommOp::kBackwardWeight:
        WriteAction(event, static_cast<uint32_t>(event.action.op));
        break;
      case schedules::CommOp::kOffload:
        WriteAction(event, kOffloadOp);
        break;
      case schedules::CommOp::kReload:
        WriteAction(event, kReloadOp);
        break;
      case schedules::CommOp::kSendForward:
      case schedules::CommOp::kSendBackward:
        return WriteTransfer(event);
      case schedules::CommOp::kReduceGradient:
        WriteCollective(event, kGradientReduction);
        break;
      case schedules::CommOp::kUnshard:
        WriteCollective(event, kWeightGather);
        break;
      case schedules::CommOp::kReshard:
      case schedules::CommOp::kReceiveForward:
      case schedules::CommOp::kReceiveBackward:
        break;
    }
    return absl::OkStatus();
  }

  const CsvTable& table_;
  const std::vector<Event>& events_;
  const bool has_ready_;
  Result result_;
  double begin_ = 0;
  std::map<Key, const Event*> passes_;  // by their first microbatch
  std::map<std::tuple<int, uint32_t, int32_t>, int> num_collectives_;
};

}  // namespace

absl::StatusOr<Result> ReadMeasuredTimeline(absl::string_view label,
                                            absl::string_view text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const std::vector<Event> events,
                   MeasuredTimelineReader(table).Read());
  return Writer(table, events).Write();
}

}  // namespace weir::results
