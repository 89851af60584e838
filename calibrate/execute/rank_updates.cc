// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_updates.h"

#include "base/status_macros.h"

namespace weir::calibrate {

absl::Status RankUpdates::Run(const ExecutionItem& item) {
  RankStage& stage = state_.StageOf(item.stage);
  const StageOptimizer& optimizer = state_.plan().optimizers[item.stage];
  const StageBuffer& weights = stage.layout.buffer(stage.layout.weights);
  const auto bytes = static_cast<double>(weights.bytes());
  void* const old = stage.versions->memory(stage.versions->newest());
  void* fresh = old;
  ASSIGN_OR_RETURN(const RankEventPtr start, state_.device->Now());
  // Averages use differences, so old and new weights are needed at the same
  // time.
  if (stage.versions->MustKeepNewest() || !stage.averages.empty()) {
    ASSIGN_OR_RETURN(fresh,
                     state_.memory.AllocateBuffer(stage, stage.layout.weights));
    state_.log.Add(start, MemoryClass::WEIGHT_STASH, bytes);
  }
  RETURN_IF_ERROR(state_.device->Update(item.stage, optimizer,
                                        ++stage.steps_done, old,
                                        stage.StaticTable(fresh)));
  ++stage.updates_done;
  for (void* average : stage.averages) {
    RETURN_IF_ERROR(state_.device->Average(item.stage, optimizer.average_decay,
                                           old, fresh, average));
  }
  ASSIGN_OR_RETURN(const RankEventPtr end, state_.device->Now());
  stage.versions->Push(fresh);
  UpdateRecord record;
  record.stage = item.stage;
  record.update = item.update;
  updates_.push_back({record, {start, end}});
  return state_.FreeDeadVersions(&stage, end);
}

}  // namespace weir::calibrate
