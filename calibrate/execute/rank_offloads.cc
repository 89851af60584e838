// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_offloads.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace weir::calibrate {
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

absl::Status RankOffloads::Await(int position) {
  const schedules::Action& action = state_.actions()[position];
  for (schedules::Place place :
       state_.shared.dependencies.Awaited(action, {state_.rank, position})) {
    if (place.rank != state_.rank) continue;
    const schedules::Action& awaited = state_.actions()[place.position];
    if (schedules::IsCompute(awaited.op)) continue;
    RETURN_IF_ERROR(
        state_.device->WaitForEvent(state_.events[place.position].end));
    if (awaited.op == schedules::Op::kOffload) {
      RETURN_IF_ERROR(Release(place.position));
      continue;
    }
    for (schedules::Place before :
         state_.shared.dependencies.Awaited(awaited, place)) {
      RETURN_IF_ERROR(Release(before.position));
    }
  }
  return absl::OkStatus();
}

absl::Status RankOffloads::Offload(const ExecutionItem& item) {
  const schedules::Action& action = state_.actions()[item.position];
  RankStage& stage = state_.StageOf(action.stage);
  ASSIGN_OR_RETURN(const RankEventPtr ready, state_.device->Now());
  WorkEvents events = {ready, ready};
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
          state_.device->ToHost(SlotOf(state_.schedule(), action.stage, k, i),
                                buffer.num_elements, buffer.format, ready,
                                table[i]));
      if (std::exchange(first, false)) events.start = copy.begin;
      events.end = copy.end;
      gone.memory.push_back(std::exchange(table[i], nullptr));
      stage.on_host[k].push_back(index);
    }
  }
  gone.position = item.position;
  offloaded_.push_back(std::move(gone));
  state_.log.Add(events.end, MemoryClass::ACTIVATIONS, -bytes);
  state_.events[item.position] = events;
  return absl::OkStatus();
}

// Reloads into new memory. Offloaded memory is only freed when a pass needs the
// space, so that no pass waits for a channel unnecessarily.
absl::Status RankOffloads::Reload(const ExecutionItem& item) {
  const schedules::Action& action = state_.actions()[item.position];
  RankStage& stage = state_.StageOf(action.stage);
  std::vector<std::pair<int, int>> buffers;
  double bytes = 0;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    bytes += stage.kept_bytes[k];
    for (int i : std::exchange(stage.on_host[k], {})) {
      ASSIGN_OR_RETURN(stage.tables[k][i],
                       state_.memory.AllocateBuffer(stage, i));
      buffers.push_back({k, i});
    }
  }
  ASSIGN_OR_RETURN(const RankEventPtr now, state_.device->Now());
  std::vector<RankEventPtr> ready = {now};
  for (schedules::Place place : state_.shared.dependencies.Awaited(
           action, {state_.rank, item.position})) {
    ready.push_back(state_.events[place.position].end);
  }
  WorkEvents events = {now, now};
  bool first = true;
  for (const auto& [k, i] : buffers) {
    const StageBuffer& buffer = stage.layout.buffer(i);
    ASSIGN_OR_RETURN(
        const CopyEvents copy,
        state_.device->FromHost(SlotOf(state_.schedule(), action.stage, k, i),
                                buffer.num_elements, buffer.format, ready,
                                stage.tables[k][i]));
    if (std::exchange(first, false)) events.start = copy.begin;
    events.end = copy.end;
  }
  state_.log.Add(events.start, MemoryClass::ACTIVATIONS, bytes);
  state_.events[item.position] = events;
  return absl::OkStatus();
}

absl::Status RankOffloads::Release(int position) {
  const auto gone = std::find_if(
      offloaded_.begin(), offloaded_.end(),
      [&](const Offloaded& one) { return one.position == position; });
  if (gone == offloaded_.end()) return absl::OkStatus();
  for (void* memory : gone->memory) RETURN_IF_ERROR(state_.memory.Free(memory));
  offloaded_.erase(gone);
  return absl::OkStatus();
}

absl::Status RankOffloads::EndStep() {
  for (Offloaded& gone : offloaded_) {
    for (void* memory : gone.memory) {
      RETURN_IF_ERROR(state_.memory.Free(memory));
    }
  }
  offloaded_.clear();
  return absl::OkStatus();
}

}  // namespace weir::calibrate
