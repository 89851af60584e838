// SPDX-License-Identifier: Apache-2.0
// The state of a rank that its passes, messages and updates share. Errors are
// those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_STATE_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_STATE_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/memory_log.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/rank_memory.h"
#include "calibrate/execute/rank_stage.h"
#include "schedules/dependencies.h"

namespace weir::calibrate {

// State shared by all ranks of a replay.
struct ExecutionShared {
  const ExecutionPlan& plan;
  const schedules::Dependencies& dependencies;
  const ExecutionOrder& order;
  Board* board;             // board of the step
  ExecutionDevice* device;  // whose events are valid on all ranks
};

struct WorkEvents {
  RankEventPtr start, end;
};

struct RankState {
  RankState(const ExecutionShared& all, int own_rank)
      : shared(all),
        rank(own_rank),
        device(all.device->rank(own_rank)),
        memory(device) {}

  const ExecutionPlan& plan() const { return shared.plan; }
  const schedules::Schedule& schedule() const { return shared.plan.schedule; }
  const std::vector<schedules::Action>& actions() const {
    return schedule().rank_actions[rank];
  }
  bool IsMine(int stage, int microbatch) const {
    return schedule().rank_of(stage, microbatch) == rank;
  }
  RankStage& StageOf(int stage) { return *stages.at(stage); }
  // Frees the versions of weights that no pass reads any more.
  absl::Status FreeDeadVersions(RankStage* stage, const RankEventPtr& at);

  const ExecutionShared shared;
  const int rank;
  RankDevice* const device;
  RankMemory memory;
  MemoryLog log;
  std::map<int, std::unique_ptr<RankStage>> stages;

  // State of the current step.
  int step = 0;
  StepRecord* record = nullptr;
  std::vector<WorkEvents> events;  // [position]
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_STATE_H_
