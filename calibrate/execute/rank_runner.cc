// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {

RankRunner::RankRunner(const ExecutionShared& shared, int rank)
    : state_(shared, rank), items_(shared.order.items[rank]) {}

absl::Status RankRunner::Annotate(const absl::Status& status, int item) const {
  if (status.ok()) return status;
  return {status.code(), absl::StrCat("rank ", state_.rank, ", ", TextOf(item),
                                      ": ", status.message())};
}

std::string RankRunner::Missing(int item) const {
  const ExecutionItem& one = items_[item];
  switch (one.kind) {
    case ExecutionItem::Kind::kPasses:
      for (int i = 0; i < one.num_actions; ++i) {
        std::string missing =
            messages_.Missing(state_.actions()[one.position + i]);
        if (!missing.empty()) return missing;
      }
      return "";
    case ExecutionItem::Kind::kAdd:
    case ExecutionItem::Kind::kGive:
    case ExecutionItem::Kind::kReturn:
    case ExecutionItem::Kind::kReceiveSum:
      return sums_.Missing(one);
    default:
      return "";
  }
}

std::string RankRunner::WaitText(int item, const std::string& missing) const {
  return absl::StrCat("rank ", state_.rank, " waits in ", TextOf(item), " for ",
                      missing);
}

absl::Status RankRunner::Do(int item) {
  const ExecutionItem& one = items_[item];
  const auto run = [&]() -> absl::Status {
    switch (one.kind) {
      case ExecutionItem::Kind::kPasses:
        return passes_.Run(one);
      case ExecutionItem::Kind::kOffload:
        return offloads_.Offload(one);
      case ExecutionItem::Kind::kReload:
        return offloads_.Reload(one);
      case ExecutionItem::Kind::kUpdate:
        return updates_.Run(one);
      default:
        return sums_.Run(one);
    }
  };
  RETURN_IF_ERROR(Annotate(run(), item));
  if (one.kind == ExecutionItem::Kind::kPasses) {
    ends_.push_back(state_.events[one.position].end);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(RankEventPtr end, state_.device->Now());
  ends_.push_back(std::move(end));
  return absl::OkStatus();
}

int RankRunner::NumEnded() {
  while (num_ended_ < num_done() &&
         state_.device->HasPassed(ends_[num_ended_])) {
    ++num_ended_;
  }
  return num_ended_;
}

// Frees data and losses of the step.
absl::Status RankRunner::RecordLosses(StepRecord* record) {
  for (const auto& [index, stage] : state_.stages) {
    const StageProgram& program = stage->layout.program();
    for (int k : stage->forwards) {
      for (int i : {program.tokens, program.targets, program.losses}) {
        if (i < 0) continue;
        void*& memory = stage->tables[k][i];
        if (i == program.losses) {
          const StageBuffer& losses = program.buffers[i];
          ASSIGN_OR_RETURN(const std::vector<double> values,
                           state_.device->Download(memory, losses.num_elements,
                                                   losses.format));
          double sum = 0;
          for (double value : values) sum += value;
          record->losses[k] = sum / static_cast<double>(values.size());
        }
        RETURN_IF_ERROR(state_.memory.Free(memory));
        memory = nullptr;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RankRunner::EndStep(StepRecord* record) {
  RankRecord& own = record->ranks[state_.rank];
  const auto resolve = [&](const WorkEvents& events,
                           auto* times) -> absl::Status {
    ASSIGN_OR_RETURN(times->start_seconds,
                     state_.device->SecondsOf(events.start));
    ASSIGN_OR_RETURN(times->end_seconds, state_.device->SecondsOf(events.end));
    record->makespan_seconds =
        std::max(record->makespan_seconds, times->end_seconds);
    return absl::OkStatus();
  };
  for (const WorkEvents& events : state_.events) {
    RETURN_IF_ERROR(resolve(events, &own.actions.emplace_back()));
  }
  for (const auto& [update, events] : updates_.updates()) {
    RETURN_IF_ERROR(resolve(events, &own.updates.emplace_back(update)));
  }
  RETURN_IF_ERROR(offloads_.EndStep());
  RETURN_IF_ERROR(messages_.EndStep(record));
  RETURN_IF_ERROR(state_.log.Resolve(state_.device, &own));
  RETURN_IF_ERROR(RecordLosses(record));
  own.taken_peak_bytes = state_.memory.peak_bytes();
  ASSIGN_OR_RETURN(own.allocator_peak_bytes, state_.device->PeakBytes());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> RankRunner::NewestWeights(int stage) {
  RankStage& of = state_.StageOf(stage);
  const StageBuffer& weights = of.layout.buffer(of.layout.weights);
  // Master weights are at the start of the state.
  if (of.state != nullptr) {
    return state_.device->Download(of.state, weights.num_elements,
                                   ElementFormat::kFp32);
  }
  return state_.device->Download(of.versions->memory(of.versions->newest()),
                                 weights.num_elements, weights.format);
}

}  // namespace weir::calibrate
