// SPDX-License-Identifier: Apache-2.0
// Transfers of a rank from and to other ranks and the host.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/rank_runner.h"

namespace weir::calibrate {
namespace {

constexpr ExecutionMemory kBuffers = ExecutionMemory::kCommunicationBuffers;

int SourceOf(const schedules::Action& action) {
  return action.stage + (action.op == schedules::Op::kForward ? -1 : 1);
}

bool Receives(const schedules::Schedule& schedule,
              const schedules::Action& action) {
  if (action.op != schedules::Op::kForward &&
      !schedules::MakesInputGradient(action.op))
    return false;
  return SourceOf(action) >= 0 && SourceOf(action) < schedule.num_stages;
}

}  // namespace

std::string RankRunner::MissingMessage(const schedules::Action& action) const {
  if (!Receives(schedule(), action)) return "";
  const bool gradient = action.op != schedules::Op::kForward;
  const int from = SourceOf(action);
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    if (shared_.board->message({gradient, from, k}).posted) continue;
    const schedules::Place place =
        shared_.dependencies.Find(action.op, from, k);
    return absl::StrCat(
        gradient ? "the gradient of " : "the activations of ",
        schedules::ToString(
            schedule().rank_actions[place.rank][place.position]),
        " from rank ", place.rank);
  }
  return "";
}

// Waits for messages and for this rank's own copies to and from the host.
absl::Status RankRunner::AwaitInputs(int position) {
  const schedules::Action& action = actions()[position];
  if (Receives(schedule(), action)) {
    RankEventPtr last;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      const MessageKey key = {action.op != schedules::Op::kForward,
                              SourceOf(action), k};
      Board::Message message;
      {
        const std::lock_guard lock(shared_.board->mutex);
        message = shared_.board->message(key);
      }
      if (!key.gradient) {
        Stage& stage = StageOf(action.stage);
        stage.admitted[k] = message.version;
        stage.last_of_version[k] = message.last_of_version;
      }
      if (message.copy.end == nullptr || message.copy.end == last) continue;
      last = message.copy.end;
      RETURN_IF_ERROR(device_->WaitForEvent(last));
    }
  }
  for (schedules::Place place :
       shared_.dependencies.Awaited(action, {rank_, position})) {
    if (place.rank != rank_) continue;
    const schedules::Action& awaited = actions()[place.position];
    if (schedules::IsCompute(awaited.op)) continue;
    RETURN_IF_ERROR(device_->WaitForEvent(events_[place.position].end));
    if (awaited.op == schedules::Op::kOffload) {
      RETURN_IF_ERROR(ReleaseOffloaded(place.position));
      continue;
    }
    for (schedules::Place before :
         shared_.dependencies.Awaited(awaited, place)) {
      RETURN_IF_ERROR(ReleaseOffloaded(before.position));
    }
  }
  return absl::OkStatus();
}

absl::Status RankRunner::FreeArrived(const std::vector<MessageKey>& keys) {
  for (const MessageKey& key : keys) {
    const auto sent = sent_.find({key.gradient, {key.stage, key.microbatch}});
    if (sent == sent_.end()) continue;
    RETURN_IF_ERROR(FreeMemory(sent->second));
    sent_.erase(sent);
  }
  return absl::OkStatus();
}

absl::Status RankRunner::Send(const schedules::Action& action,
                              const RankEventPtr& start,
                              const RankEventPtr& end) {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op))
    return absl::OkStatus();
  Stage& stage = StageOf(action.stage);
  // The input message has been consumed: a forward's input counts as
  // activations from the start of the pass.
  if (Receives(schedule(), action)) {
    const StageProgram& program = stage.layout.program();
    const auto bytes = static_cast<double>(
        stage.layout.buffer(forward ? program.input : program.output_gradient)
            .bytes());
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      const MessageKey key = {!forward, SourceOf(action), k};
      CopyEvents copy;
      {
        const std::lock_guard lock(shared_.board->mutex);
        copy = shared_.board->message(key).copy;
      }
      if (!IsMine(SourceOf(action), k)) {
        memory_.Add(copy.begin, kBuffers, bytes);
      }
      memory_.Add(forward ? start : end, kBuffers, -bytes);
    }
  }
  const int to = action.stage + (forward ? 1 : -1);
  if (to < 0 || to >= schedule().num_stages) return absl::OkStatus();
  std::map<int, std::vector<int>> by_rank;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    by_rank[schedule().rank_of(to, k)].push_back(k);
  }
  for (const auto& [rank, microbatches] : by_rank) {
    RETURN_IF_ERROR(SendTo(rank, action, microbatches, end));
  }
  return absl::OkStatus();
}

absl::Status RankRunner::SendTo(int to_rank, const schedules::Action& action,
                                const std::vector<int>& microbatches,
                                const RankEventPtr& end) {
  const bool gradient = action.op != schedules::Op::kForward;
  const bool stays = to_rank == rank_;
  Stage& stage = StageOf(action.stage);
  const StageProgram& program = stage.layout.program();
  const int output = gradient ? program.input_gradient : program.output;
  const StageBuffer& buffer = program.buffers[output];
  const auto bytes = static_cast<double>(buffer.bytes());
  const ExecutionFaults& faults = plan().faults;
  const int to_stage = action.stage + (gradient ? -1 : 1);
  std::vector<CopyPiece> pieces;
  bool lost = false;
  for (int k : microbatches) {
    lost |= !gradient && faults.lost_stage == action.stage &&
            faults.lost_microbatch == k;
    void*& memory = stage.tables[k][output];
    if (!gradient && faults.swapped_stage == action.stage) {
      if (k == faults.swapped_microbatch) {
        ASSIGN_OR_RETURN(
            stage.swapped,
            device_->Download(memory, buffer.num_elements, buffer.format));
      } else if (k == faults.swapped_microbatch + 1) {
        RETURN_IF_ERROR(device_->Upload(stage.swapped, buffer.format, memory));
      }
    }
    CopyPiece piece = {memory, nullptr};
    if (stays) {
      Stage& next = StageOf(to_stage);
      const StageProgram& reader = next.layout.program();
      next.tables[k][gradient ? reader.output_gradient : reader.input] = memory;
    } else {
      sent_[{gradient, {action.stage, k}}] = memory;
      const std::lock_guard lock(shared_.board->mutex);
      piece.into = shared_.board->message({gradient, action.stage, k}).into;
      if (piece.into == nullptr) {
        return absl::InternalError(absl::StrCat(
            "rank ", to_rank, " has no buffer for what it is sent"));
      }
    }
    memory = nullptr;
    pieces.push_back(piece);
    memory_.Add(end, kBuffers, bytes);
  }
  if (lost) return absl::OkStatus();
  CopyEvents copy;
  if (!stays) {
    const int bits =
        schedule().compressed_transfers ? plan().compressed_bits : 0;
    ASSIGN_OR_RETURN(copy,
                     device_->Send(shared_.device->rank(to_rank), pieces,
                                   buffer.num_elements, buffer.format,
                                   plan().link(rank_, to_rank), bits, end));
    const auto count = static_cast<int64_t>(pieces.size());
    memory_.Add(copy.end, kBuffers, -bytes * static_cast<double>(count));
    TransferRecord record;
    record.from_rank = rank_;
    record.to_rank = to_rank;
    record.gradient = gradient;
    record.stage = action.stage;
    record.microbatch = microbatches[0];
    record.bytes =
        TransferBytes(buffer.format, bits, buffer.num_elements * count);
    transfers_.push_back({record, end, copy});
  }
  {
    const std::lock_guard lock(shared_.board->mutex);
    for (int k : microbatches) {
      Board::Message& message =
          shared_.board->message({gradient, action.stage, k});
      message.posted = true;
      message.copy = copy;
      message.version = stage.admitted[k];
      message.last_of_version = stage.last_of_version[k];
    }
  }
  shared_.board->changed.notify_all();
  return absl::OkStatus();
}

namespace {

int64_t SlotOf(const schedules::Schedule& schedule, int stage, int microbatch,
               size_t buffer) {
  constexpr int64_t kMostBuffers = 1 << 16;
  return (static_cast<int64_t>(stage) * schedule.total_microbatches() +
          microbatch) *
             kMostBuffers +
         static_cast<int64_t>(buffer);
}

}  // namespace

absl::Status RankRunner::Offload(const ExecutionItem& item) {
  const schedules::Action& action = actions()[item.position];
  Stage& stage = StageOf(action.stage);
  ASSIGN_OR_RETURN(const RankEventPtr ready, device_->Now());
  ActionEvents moments = {ready, ready};
  bool first = true;
  Offloaded gone;
  double bytes = 0;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    Buffers& table = stage.tables[k];
    bytes += stage.kept_bytes[k];
    stage.on_host[k].clear();
    for (size_t i = 0; i < table.size(); ++i) {
      const auto index = static_cast<int>(i);
      if (table[i] == nullptr || !stage.layout.OfMicrobatch(index) ||
          stage.layout.IsData(index) ||
          index == stage.layout.program().output_gradient) {
        continue;  // buffers that wait for the gradient stay
      }
      const StageBuffer& buffer = stage.layout.buffer(index);
      ASSIGN_OR_RETURN(
          const CopyEvents copy,
          device_->ToHost(SlotOf(schedule(), action.stage, k, i),
                          buffer.num_elements, buffer.format, ready, table[i]));
      if (std::exchange(first, false)) moments.start = copy.begin;
      moments.end = copy.end;
      gone.memory.push_back(std::exchange(table[i], nullptr));
      stage.on_host[k].push_back(index);
    }
  }
  gone.position = item.position;
  offloaded_.push_back(std::move(gone));
  memory_.Add(moments.end, ExecutionMemory::kActivations, -bytes);
  events_[item.position] = moments;
  return absl::OkStatus();
}

// Reloads into new memory. Offloaded memory is only freed when a pass needs the
// space, so that no pass waits for a channel unnecessarily.
absl::Status RankRunner::Reload(const ExecutionItem& item) {
  const schedules::Action& action = actions()[item.position];
  Stage& stage = StageOf(action.stage);
  std::vector<std::pair<int, int>> buffers;
  double bytes = 0;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    bytes += stage.kept_bytes[k];
    for (int i : std::exchange(stage.on_host[k], {})) {
      ASSIGN_OR_RETURN(stage.tables[k][i], AllocateBuffer(stage, i));
      buffers.push_back({k, i});
    }
  }
  ASSIGN_OR_RETURN(const RankEventPtr now, device_->Now());
  std::vector<RankEventPtr> ready = {now};
  for (schedules::Place place :
       shared_.dependencies.Awaited(action, {rank_, item.position})) {
    ready.push_back(events_[place.position].end);
  }
  ActionEvents moments = {now, now};
  bool first = true;
  for (const auto& [k, i] : buffers) {
    const StageBuffer& buffer = stage.layout.buffer(i);
    ASSIGN_OR_RETURN(const CopyEvents copy,
                     device_->FromHost(SlotOf(schedule(), action.stage, k, i),
                                       buffer.num_elements, buffer.format,
                                       ready, stage.tables[k][i]));
    if (std::exchange(first, false)) moments.start = copy.begin;
    moments.end = copy.end;
  }
  memory_.Add(moments.start, ExecutionMemory::kActivations, bytes);
  events_[item.position] = moments;
  return absl::OkStatus();
}

absl::Status RankRunner::ReleaseOffloaded(int position) {
  const auto gone = std::find_if(
      offloaded_.begin(), offloaded_.end(),
      [&](const Offloaded& one) { return one.position == position; });
  if (gone == offloaded_.end()) return absl::OkStatus();
  for (void* memory : gone->memory) RETURN_IF_ERROR(FreeMemory(memory));
  offloaded_.erase(gone);
  return absl::OkStatus();
}

}  // namespace weir::calibrate
