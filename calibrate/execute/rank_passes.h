// SPDX-License-Identifier: Apache-2.0
// The passes of a rank: the weights they compute with, and the memory they
// allocate and free. Errors are those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_PASSES_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_PASSES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/rank_messages.h"
#include "calibrate/execute/rank_offloads.h"
#include "calibrate/execute/rank_state.h"

namespace weir::calibrate {

class RankPasses {
 public:
  RankPasses(RankState* state, RankMessages* messages, RankOffloads* offloads)
      : state_(*state), messages_(*messages), offloads_(*offloads) {}

  // Queues a pass or an overlapped pair, and sends what it computes.
  absl::Status Run(const ExecutionItem& item);

 private:
  // Activation bytes before, at the peak of, and after a pass.
  struct PassBytes {
    double before = 0, peak = 0, after = 0;
  };

  void ReadVersions(const schedules::Action& action,
                    std::vector<int>* versions);
  absl::Status RunAction(const schedules::Action& action,
                         const std::vector<int>& versions,
                         const RankEventPtr& start, PassBytes* bytes);
  absl::StatusOr<void*> WeightsFor(RankStage* stage,
                                   const schedules::Action& action,
                                   int microbatch, int version,
                                   const RankEventPtr& start);
  absl::Status EndEstimates(RankStage* stage, const schedules::Action& action,
                            const RankEventPtr& end);
  absl::Status RunPass(RankStage* stage, ProgramPass pass,
                       const schedules::Action& action, PassBytes* bytes);
  absl::Status EndAction(const schedules::Action& action,
                         const PassBytes& bytes, const RankEventPtr& start,
                         const RankEventPtr& end);

  RankState& state_;
  RankMessages& messages_;
  RankOffloads& offloads_;
  std::vector<void*> transient_;  // freed after the pass
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_PASSES_H_
