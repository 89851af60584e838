// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_messages.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr MemoryClass::Kind kBuffers = MemoryClass::COMMUNICATION_BUFFERS;

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

std::string RankMessages::Missing(const schedules::Action& action) const {
  if (!Receives(state_.schedule(), action)) return "";
  const bool gradient = action.op != schedules::Op::kForward;
  const int from = SourceOf(action);
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    if (state_.shared.board->message({gradient, from, k}).posted) continue;
    const schedules::Place place =
        state_.shared.dependencies.Find(action.op, from, k);
    return absl::StrCat(
        gradient ? "the gradient of " : "the activations of ",
        schedules::ToString(
            state_.schedule().rank_actions[place.rank][place.position]),
        " from rank ", place.rank);
  }
  return "";
}

absl::Status RankMessages::Await(const schedules::Action& action) {
  if (!Receives(state_.schedule(), action)) return absl::OkStatus();
  RankEventPtr last;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    const MessageKey key = {action.op != schedules::Op::kForward,
                            SourceOf(action), k};
    Board::Message message;
    {
      const std::lock_guard lock(state_.shared.board->mutex);
      message = state_.shared.board->message(key);
    }
    if (!key.gradient) {
      RankStage& stage = state_.StageOf(action.stage);
      stage.admitted[k] = message.version;
      stage.last_of_version[k] = message.last_of_version;
    }
    if (message.copy.end == nullptr || message.copy.end == last) continue;
    last = message.copy.end;
    RETURN_IF_ERROR(state_.device->WaitForEvent(last));
  }
  return absl::OkStatus();
}

absl::Status RankMessages::AllocateReceives(
    const std::vector<MessageKey>& keys) {
  for (const MessageKey& key : keys) {
    const int to = key.stage + (key.gradient ? -1 : 1);
    RankStage& stage = state_.StageOf(to);
    const StageProgram& program = stage.layout.program();
    const int buffer = key.gradient ? program.output_gradient : program.input;
    ASSIGN_OR_RETURN(void* memory, state_.memory.AllocateBuffer(stage, buffer));
    stage.tables[key.microbatch][buffer] = memory;
    const std::lock_guard lock(state_.shared.board->mutex);
    state_.shared.board->message(key).into = memory;
  }
  return absl::OkStatus();
}

absl::Status RankMessages::FreeArrived(const std::vector<MessageKey>& keys) {
  for (const MessageKey& key : keys) {
    const auto sent = sent_.find({key.gradient, {key.stage, key.microbatch}});
    if (sent == sent_.end()) continue;
    RETURN_IF_ERROR(state_.memory.Free(sent->second));
    sent_.erase(sent);
  }
  return absl::OkStatus();
}

absl::Status RankMessages::Send(const schedules::Action& action,
                                const RankEventPtr& start,
                                const RankEventPtr& end) {
  const bool forward = action.op == schedules::Op::kForward;
  if (!forward && !schedules::MakesInputGradient(action.op))
    return absl::OkStatus();
  RankStage& stage = state_.StageOf(action.stage);
  // Ends the log entry of the receive buffer: at the start of a forward, whose
  // input is counted as an activation from then on; at the end of a backward.
  if (Receives(state_.schedule(), action)) {
    const StageProgram& program = stage.layout.program();
    const auto bytes = static_cast<double>(
        stage.layout.buffer(forward ? program.input : program.output_gradient)
            .bytes());
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      const MessageKey key = {!forward, SourceOf(action), k};
      CopyEvents copy;
      {
        const std::lock_guard lock(state_.shared.board->mutex);
        copy = state_.shared.board->message(key).copy;
      }
      if (!state_.IsMine(SourceOf(action), k)) {
        state_.log.Add(copy.begin, kBuffers, bytes);
      }
      state_.log.Add(forward ? start : end, kBuffers, -bytes);
    }
  }
  const int to = action.stage + (forward ? 1 : -1);
  if (to < 0 || to >= state_.schedule().num_stages) return absl::OkStatus();
  std::map<int, std::vector<int>> by_rank;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    by_rank[state_.schedule().rank_of(to, k)].push_back(k);
  }
  for (const auto& [rank, microbatches] : by_rank) {
    RETURN_IF_ERROR(SendTo(rank, action, microbatches, end));
  }
  return absl::OkStatus();
}

absl::Status RankMessages::SendTo(int to_rank, const schedules::Action& action,
                                  const std::vector<int>& microbatches,
                                  const RankEventPtr& end) {
  const bool gradient = action.op != schedules::Op::kForward;
  const bool stays = to_rank == state_.rank;
  RankStage& stage = state_.StageOf(action.stage);
  const StageProgram& program = stage.layout.program();
  const int output = gradient ? program.input_gradient : program.output;
  const StageBuffer& buffer = program.buffers[output];
  const auto bytes = static_cast<double>(buffer.bytes());
  const int to_stage = action.stage + (gradient ? -1 : 1);
  std::vector<CopyPiece> pieces;
  for (int k : microbatches) {
    void*& memory = stage.tables[k][output];
    CopyPiece piece = {memory, nullptr};
    if (stays) {
      RankStage& next = state_.StageOf(to_stage);
      const StageProgram& reader = next.layout.program();
      next.tables[k][gradient ? reader.output_gradient : reader.input] = memory;
    } else {
      sent_[{gradient, {action.stage, k}}] = memory;
      const std::lock_guard lock(state_.shared.board->mutex);
      piece.into =
          state_.shared.board->message({gradient, action.stage, k}).into;
      if (piece.into == nullptr) {
        return absl::InternalError(absl::StrCat(
            "rank ", to_rank, " has no buffer for a message sent to it"));
      }
    }
    memory = nullptr;
    pieces.push_back(piece);
    state_.log.Add(end, kBuffers, bytes);
  }
  CopyEvents copy;
  if (!stays) {
    const int bits = state_.schedule().compressed_transfers
                         ? state_.plan().compressed_bits
                         : 0;
    ASSIGN_OR_RETURN(
        copy, state_.device->Send(state_.shared.device->rank(to_rank), pieces,
                                  buffer.num_elements, buffer.format,
                                  state_.plan().link(state_.rank, to_rank),
                                  bits, end));
    const auto count = static_cast<int64_t>(pieces.size());
    state_.log.Add(copy.end, kBuffers, -bytes * static_cast<double>(count));
    TransferRecord record;
    record.from_rank = state_.rank;
    record.to_rank = to_rank;
    record.gradient = gradient;
    record.stage = action.stage;
    record.microbatch = microbatches[0];
    record.bytes =
        TransferBytes(buffer.format, bits, buffer.num_elements * count);
    transfers_.push_back({record, end, copy});
  }
  {
    const std::lock_guard lock(state_.shared.board->mutex);
    for (int k : microbatches) {
      state_.shared.board->Post({gradient, action.stage, k}, copy,
                                stage.admitted[k], stage.last_of_version[k]);
    }
  }
  state_.shared.board->changed.notify_all();
  return absl::OkStatus();
}

absl::Status RankMessages::EndStep(StepRecord* record) {
  for (const PendingTransfer& pending : transfers_) {
    TransferRecord transfer = pending.record;
    ASSIGN_OR_RETURN(transfer.ready_seconds,
                     state_.device->SecondsOf(pending.ready));
    ASSIGN_OR_RETURN(transfer.start_seconds,
                     state_.device->SecondsOf(pending.copy.begin));
    ASSIGN_OR_RETURN(transfer.end_seconds,
                     state_.device->SecondsOf(pending.copy.end));
    record->transfers.push_back(transfer);
  }
  for (const auto& [key, memory] : sent_) {
    RETURN_IF_ERROR(state_.memory.Free(memory));
  }
  sent_.clear();
  return absl::OkStatus();
}

}  // namespace weir::calibrate
