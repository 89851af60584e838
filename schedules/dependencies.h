// SPDX-License-Identifier: Apache-2.0
// What every action of a schedule waits for: the one statement of it that the
// replays, the linter and the simulator share.
#ifndef WEIR_SCHEDULES_DEPENDENCIES_H_
#define WEIR_SCHEDULES_DEPENDENCIES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "schedules/schedule.h"

namespace weir {

// Where an action stands.
struct Place {
  int32_t rank = -1;
  int32_t position = -1;

  bool exists() const { return position >= 0; }
  bool operator==(const Place&) const = default;
};

// Any rank's order is a chain of its compute actions; an offload or a reload
// starts when the compute action before it has ended, and the one before it on
// its own channel. Beyond that an action awaits
//  - F: the forwards of its microbatches in the stage before;
//  - B, I: their input gradients (B or I) in the stage after, and the reload of
//    their activations;
//  - R: its offload;
//  - F and R under Schedule::resident_activations: the offload that makes room.
// W and O, the first stage's F and the last stage's B follow actions of their
// own rank.
class Dependencies {
 public:
  // The schedule must outlive it. REQUIRES: actions are in range and on the
  // rank of their stage and microbatch; incomplete ones are fine.
  explicit Dependencies(const Schedule& schedule);

  using Places = absl::InlinedVector<Place, 2>;

  // Actions that must have ended, beyond the rank's own chain; those that the
  // schedule lacks are left out.
  Places Awaited(const Action& action, Place place) const;

  // The actions of other stages that wait for this one.
  Places Released(const Action& action) const;

  // Where a microbatch's pass through a stage stands; `op` may be kBackward for
  // a split backward too. W is not looked up.
  Place Find(Op op, int stage, int microbatch) const;

  // The last compute action before `position`, -1 if there is none.
  int32_t ComputeBefore(Place place) const;
  // The last action of the same channel before an offload or reload.
  int32_t ChannelBefore(Place place) const;

 private:
  enum Table { kForwards, kGradients, kOffloads, kReloads, kNumTables };

  static Table TableOf(Op op);
  size_t Cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * total_ + microbatch;
  }
  void FindRoom(int rank);

  const Schedule& schedule_;
  int total_;
  // Position on the rank of the stage and microbatch, -1: none. The tables of
  // offloads are empty where there is none.
  std::array<std::vector<int32_t>, kNumTables> positions_;
  // [rank][position]: the offload that must end first, -1: none; empty without.
  std::vector<std::vector<int32_t>> room_;
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_DEPENDENCIES_H_
