// SPDX-License-Identifier: Apache-2.0
#include "results/import/messages.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "results/import/clocks.h"

namespace weir::results {
namespace {

bool IsForward(RecordedKind kind) {
  return kind == RecordedKind::kSendForward ||
         kind == RecordedKind::kReceiveForward;
}
// True for messages between a stage and the previous one.
bool IsToPrevious(RecordedKind kind) {
  return kind == RecordedKind::kReceiveForward ||
         kind == RecordedKind::kSendBackward;
}

constexpr int32_t kNoMessage = -2;  // microbatch of what is left out

// The messages of one kind of one worker in one step, and the passes that they
// serve, by start.
class Assignment {
 public:
  Assignment(const RecordedRun& run, RecordedKind kind,
             std::vector<RecordedOperation*> messages,
             std::vector<const RecordedOperation*> passes)
      : run_(run),
        kind_(kind),
        messages_(std::move(messages)),
        passes_(std::move(passes)) {}

  absl::Status Assign() {
    std::vector<const RecordedOperation*> served;
    for (const auto* pass : passes_) {
      if (IsServed(*pass)) served.push_back(pass);
    }
    if (served.empty()) {
      // The end of the model, whatever the runtime records there.
      for (RecordedOperation* message : messages_) {
        message->microbatch = kNoMessage;
      }
      return absl::OkStatus();
    }
    if (Try(served, 0)) return absl::OkStatus();
    if (Try(passes_, 0)) return absl::OkStatus();
    DropOutside();
    if (Try(served, 0) || Try(passes_, 0)) return absl::OkStatus();
    // The receive before the first pass of the model may be missing.
    if (IsReceive(kind_) && Try(passes_, 1)) return absl::OkStatus();
    const RecordedOperation& first = *messages_.front();
    return absl::InvalidArgumentError(
        absl::StrCat(run_.label, ": step ", first.step, ", replica ",
                     first.replica, ", pipeline rank ", first.rank, ": has ",
                     messages_.size(), " ", NameOf(kind_), "s for ",
                     served.size(), " passes, expected one for each"));
  }

 private:
  bool IsServed(const RecordedOperation& pass) const {
    return IsToPrevious(kind_) ? pass.stage > 0
                               : pass.stage + 1 < run_.num_stages;
  }

  bool Try(const std::vector<const RecordedOperation*>& passes, size_t skip) {
    if (messages_.size() + skip != passes.size()) return false;
    for (size_t i = 0; i < messages_.size(); ++i) {
      const RecordedOperation& pass = *passes[i + skip];
      messages_[i]->stage = pass.stage;
      messages_[i]->microbatch = IsServed(pass) ? pass.microbatch : kNoMessage;
    }
    return true;
  }

  // Receives after the start of the last pass and sends before the end of the
  // first have nothing to transfer.
  void DropOutside() {
    if (passes_.empty()) return;
    double first_end = passes_[0]->end_seconds, last_start = 0;
    for (const auto* pass : passes_) {
      first_end = std::min(first_end, pass->end_seconds);
      last_start = std::max(last_start, pass->start_seconds);
    }
    const auto outside = [&](RecordedOperation* message) {
      const bool drop =
          IsReceive(kind_) ? message->start_seconds > last_start + kClockSeconds
                           : message->end_seconds < first_end - kClockSeconds;
      if (drop) message->microbatch = kNoMessage;
      return drop;
    };
    const auto end =
        std::remove_if(messages_.begin(), messages_.end(), outside);
    // Keeps one for the error.
    if (end != messages_.begin()) messages_.erase(end, messages_.end());
  }

  const RecordedRun& run_;
  RecordedKind kind_;
  std::vector<RecordedOperation*> messages_;
  std::vector<const RecordedOperation*> passes_;
};

// Operations of a worker in a step, by start.
absl::Status AssignOfWorker(const RecordedRun& run, RecordedOperation* begin,
                            RecordedOperation* end) {
  for (const RecordedKind kind :
       {RecordedKind::kSendForward, RecordedKind::kReceiveForward,
        RecordedKind::kSendBackward, RecordedKind::kReceiveBackward}) {
    std::vector<RecordedOperation*> messages;
    std::vector<const RecordedOperation*> passes;
    for (RecordedOperation* o = begin; o != end; ++o) {
      if (o->kind == kind && o->microbatch < 0) messages.push_back(o);
      const bool serves = IsForward(kind)
                              ? o->kind == RecordedKind::kForward
                              : o->kind == RecordedKind::kBackward ||
                                    o->kind == RecordedKind::kBackwardInput;
      if (serves) passes.push_back(o);
    }
    if (messages.empty()) continue;
    RETURN_IF_ERROR(
        Assignment(run, kind, std::move(messages), std::move(passes)).Assign());
  }
  return absl::OkStatus();
}

// Equal for operations of one group; the kind -1 means that there is none.
using GroupKey = std::tuple<int, int, int, int>;

GroupKey KeyOf(const RecordedOperation& o, int number) {
  switch (o.kind) {
    case RecordedKind::kSendForward:
      return {0, o.replica, o.stage, o.microbatch};
    case RecordedKind::kReceiveForward:
      return {0, o.replica, o.stage - 1, o.microbatch};
    case RecordedKind::kSendBackward:
      return {1, o.replica, o.stage, o.microbatch};
    case RecordedKind::kReceiveBackward:
      return {1, o.replica, o.stage + 1, o.microbatch};
    case RecordedKind::kWeightGather:
      return {2, o.rank, number, 0};
    case RecordedKind::kGradientReduction:
      return {3, o.rank, number, 0};
    case RecordedKind::kTiedReduction:
      return {4, o.replica, number, 0};
    case RecordedKind::kGradientClip:
      return {5, number, 0, 0};
    default:
      return {-1, 0, 0, 0};
  }
}

}  // namespace

absl::Status AssignMessages(RecordedRun* run) {
  auto& all = run->operations;
  for (size_t first = 0, last = 0; first < all.size(); first = last) {
    const auto& o = all[first];
    while (last < all.size() && all[last].step == o.step &&
           all[last].replica == o.replica && all[last].rank == o.rank) {
      ++last;
    }
    RETURN_IF_ERROR(
        AssignOfWorker(*run, all.data() + first, all.data() + last));
  }
  int64_t num_removed = 0;
  bool leave_last_stage = true;
  const auto end = std::remove_if(all.begin(), all.end(), [&](const auto& o) {
    if (o.microbatch != kNoMessage) return false;
    ++num_removed;
    leave_last_stage &= o.rank + 1 == run->num_ranks && !IsToPrevious(o.kind);
    return true;
  });
  if (end == all.end()) return absl::OkStatus();
  run->notes.push_back(absl::StrCat(
      num_removed,
      " sends and receives transfer nothing (at the ends of the model, or "
      "outside of the passes); they are left out",
      leave_last_stage
          ? ". All are with a stage after the last one, which may be missing"
          : ""));
  all.erase(end, all.end());
  return absl::OkStatus();
}

void NoteLoneMessages(RecordedRun* run) {
  int64_t num_messages = 0, num_sends = 0, num_receives = 0;
  for (const RecordedStep& step : StepsOf(*run)) {
    const OperationGroups groups = GroupsOf(step);
    for (size_t i = 0; i < step.size(); ++i) {
      const RecordedKind kind = step.begin[i].kind;
      if (!IsMessage(kind)) continue;
      ++num_messages;
      if (groups.group_of[i] >= 0) continue;
      ++(IsReceive(kind) ? num_receives : num_sends);
    }
  }
  if (num_sends + num_receives == 0) return;
  std::vector<std::string> parts;
  if (num_sends > 0) {
    parts.push_back(absl::StrCat(num_sends, " sends have no receive"));
  }
  if (num_receives > 0) {
    parts.push_back(absl::StrCat(num_receives, " receives have no send"));
  }
  run->notes.push_back(absl::StrCat(
      absl::StrJoin(parts, " and "), ", of ", num_messages,
      " sends and receives: these transfers are not part of the result"));
}

OperationGroups GroupsOf(const RecordedStep& step) {
  OperationGroups groups;
  groups.group_of.assign(step.size(), -1);
  std::map<GroupKey, std::vector<int32_t>> found;
  std::map<std::tuple<int, int, RecordedKind>, int> numbers;
  for (size_t i = 0; i < step.size(); ++i) {
    const RecordedOperation& o = step.begin[i];
    const int number =
        IsMessage(o.kind) ? 0 : numbers[{o.replica, o.rank, o.kind}]++;
    const GroupKey key = KeyOf(o, number);
    if (std::get<0>(key) >= 0) found[key].push_back(static_cast<int32_t>(i));
  }
  for (auto& [key, members] : found) {
    if (members.size() < 2) continue;
    for (const int32_t i : members) {
      groups.group_of[i] = static_cast<int32_t>(groups.members.size());
    }
    groups.members.push_back(std::move(members));
  }
  return groups;
}

std::vector<double> TransferSeconds(const RecordedStep& step,
                                    const OperationGroups& groups) {
  std::vector<double> seconds(step.size());
  for (size_t i = 0; i < step.size(); ++i) {
    seconds[i] = step.begin[i].seconds();
  }
  for (const std::vector<int32_t>& members : groups.members) {
    double start = step.begin[members[0]].start_seconds;
    for (const int32_t i : members) {
      start = std::max(start, step.begin[i].start_seconds);
    }
    for (const int32_t i : members) {
      seconds[i] = std::max(step.begin[i].end_seconds - start, 0.0);
    }
  }
  return seconds;
}

}  // namespace weir::results
