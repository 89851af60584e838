// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over the replicas of a stage and over tied embeddings,
// before optimizer steps. Errors are those of the device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_GRADIENT_SUMS_H_
#define WEIR_CALIBRATE_EXECUTE_GRADIENT_SUMS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/execute/rank_state.h"

namespace weir::calibrate {

class GradientSums {
 public:
  explicit GradientSums(RankState* state) : state_(*state) {}

  // Returns what the item waits for; empty if it can run. Requires: the board's
  // mutex is held.
  std::string Missing(const ExecutionItem& item) const;
  absl::Status Run(const ExecutionItem& item);

 private:
  absl::Status LendRoom(const ExecutionItem& item,
                        const Exchange::Member& member);
  absl::Status GivePart(const ExecutionItem& item,
                        const Exchange::Member& member);
  absl::Status AddPart(const ExecutionItem& item,
                       const Exchange::Member& member);
  absl::Status ReturnSum(const ExecutionItem& item);
  absl::StatusOr<CopyEvents> SendPart(const Exchange::Member& member,
                                      int to_rank, const CopyPiece& piece,
                                      const RankEventPtr& ready);
  Board::Part ReadPart(int exchange, int member) const;
  template <typename Change>
  void PostPart(int exchange, int member, const Change& change);
  void* PartOf(const Exchange::Member& member);

  RankState& state_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GRADIENT_SUMS_H_
