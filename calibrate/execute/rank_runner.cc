// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {

RankRunner::RankRunner(const ExecutionShared& shared, int rank)
    : shared_(shared),
      rank_(rank),
      device_(shared.device->rank(rank)),
      items_(shared.order.items[rank]) {}

absl::Status RankRunner::Annotate(const absl::Status& status, int item) const {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("rank ", rank_, ", ", TextOf(item), ": ",
                                      status.message())};
}

absl::StatusOr<void*> RankRunner::AllocateMemory(int64_t num_elements,
                                                 ElementFormat format,
                                                 const std::string& what) {
  ASSIGN_OR_RETURN(void* memory,
                   device_->AllocateMemory(num_elements, format, what));
  const auto bytes = static_cast<double>(num_elements * BytesOf(format));
  taken_[memory] = bytes;
  taken_bytes_ += bytes;
  taken_peak_ = std::max(taken_peak_, taken_bytes_);
  return memory;
}

absl::StatusOr<void*> RankRunner::AllocateBuffer(const Stage& stage,
                                                 int buffer) {
  const StageBuffer& of = stage.layout.buffer(buffer);
  return AllocateMemory(of.num_elements, of.format,
                        absl::StrCat(of.name, " of stage ", stage.stage));
}

absl::Status RankRunner::FreeMemory(void* memory) {
  const auto taken = taken_.find(memory);
  if (taken == taken_.end()) {
    return absl::InternalError("memory is given back twice");
  }
  taken_bytes_ -= taken->second;
  taken_.erase(taken);
  return device_->FreeMemory(memory);
}

std::string RankRunner::Missing(int item) const {
  const ExecutionItem& one = items_[item];
  switch (one.kind) {
    case ExecutionItem::Kind::kPasses:
      for (int i = 0; i < one.num_actions; ++i) {
        std::string missing = MissingMessage(actions()[one.position + i]);
        if (!missing.empty()) return missing;
      }
      return "";
    case ExecutionItem::Kind::kAdd:
    case ExecutionItem::Kind::kGive:
    case ExecutionItem::Kind::kReturn:
    case ExecutionItem::Kind::kReceiveSum:
      return MissingPart(one);
    default:
      return "";
  }
}

std::string RankRunner::WaitText(int item, const std::string& missing) const {
  return absl::StrCat("rank ", rank_, " waits in ", TextOf(item), " for ",
                      missing);
}

absl::Status RankRunner::Do(int item) {
  const ExecutionItem& one = items_[item];
  const auto run = [&]() -> absl::Status {
    switch (one.kind) {
      case ExecutionItem::Kind::kPasses:
        return DoPasses(one);
      case ExecutionItem::Kind::kOffload:
        return Offload(one);
      case ExecutionItem::Kind::kReload:
        return Reload(one);
      case ExecutionItem::Kind::kUpdate:
        return Update(one);
      default:
        return DoExchange(one);
    }
  };
  RETURN_IF_ERROR(Annotate(run(), item));
  if (one.kind == ExecutionItem::Kind::kPasses) {
    ends_.push_back(events_[one.position].end);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(RankEventPtr end, device_->Now());
  ends_.push_back(std::move(end));
  return absl::OkStatus();
}

int RankRunner::NumEnded() {
  while (num_ended_ < num_done() && device_->HasPassed(ends_[num_ended_])) {
    ++num_ended_;
  }
  return num_ended_;
}

absl::Status RankRunner::EndStep(StepRecord* record) {
  RankRecord& own = record->ranks[rank_];
  const auto resolve = [&](const ActionEvents& moments,
                           auto* times) -> absl::Status {
    ASSIGN_OR_RETURN(times->start_seconds, device_->SecondsOf(moments.start));
    ASSIGN_OR_RETURN(times->end_seconds, device_->SecondsOf(moments.end));
    record->makespan_seconds =
        std::max(record->makespan_seconds, times->end_seconds);
    return absl::OkStatus();
  };
  for (const ActionEvents& moments : events_) {
    RETURN_IF_ERROR(resolve(moments, &own.actions.emplace_back()));
  }
  for (const auto& [update, moments] : updates_) {
    RETURN_IF_ERROR(resolve(moments, &own.updates.emplace_back(update)));
  }
  for (const PendingTransfer& pending : transfers_) {
    TransferRecord transfer = pending.record;
    ASSIGN_OR_RETURN(transfer.ready_seconds, device_->SecondsOf(pending.ready));
    ASSIGN_OR_RETURN(transfer.start_seconds,
                     device_->SecondsOf(pending.copy.begin));
    ASSIGN_OR_RETURN(transfer.end_seconds,
                     device_->SecondsOf(pending.copy.end));
    record->transfers.push_back(transfer);
  }
  for (Offloaded& gone : offloaded_) {
    for (void* memory : gone.memory) RETURN_IF_ERROR(FreeMemory(memory));
  }
  offloaded_.clear();
  for (const auto& [key, memory] : sent_) RETURN_IF_ERROR(FreeMemory(memory));
  sent_.clear();
  RETURN_IF_ERROR(memory_.Resolve(device_, &own));
  for (const auto& [index, stage] : stages_) {
    const StageProgram& program = stage->layout.program();
    for (int k : stage->forwards) {
      for (int i : {program.tokens, program.targets, program.losses}) {
        if (i < 0) continue;
        void*& memory = stage->tables[k][i];
        if (i == program.losses) {
          const StageBuffer& losses = program.buffers[i];
          ASSIGN_OR_RETURN(
              const std::vector<double> values,
              device_->Download(memory, losses.num_elements, losses.format));
          double sum = 0;
          for (double value : values) sum += value;
          record->losses[k] = sum / static_cast<double>(values.size());
        }
        RETURN_IF_ERROR(FreeMemory(memory));
        memory = nullptr;
      }
    }
  }
  own.taken_peak_bytes = taken_peak_;
  ASSIGN_OR_RETURN(own.allocator_peak_bytes, device_->PeakBytes());
  return absl::OkStatus();
}

absl::Status RankRunner::FreeAll() {
  while (!taken_.empty()) RETURN_IF_ERROR(FreeMemory(taken_.begin()->first));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> RankRunner::NewestWeights(int stage) {
  Stage& of = StageOf(stage);
  const StageBuffer& weights = of.layout.buffer(of.layout.weights);
  // Master weights are at the start of the state.
  if (of.state != nullptr) {
    return device_->Download(of.state, weights.num_elements,
                             ElementFormat::kFp32);
  }
  return device_->Download(of.versions->memory(of.versions->newest()),
                           weights.num_elements, weights.format);
}

}  // namespace weir::calibrate
