// SPDX-License-Identifier: Apache-2.0
// Dependencies between the actions of a schedule. The replays, the linter and
// the simulator share this definition.
#ifndef WEIR_SCHEDULES_DEPENDENCIES_H_
#define WEIR_SCHEDULES_DEPENDENCIES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// The place of an action.
struct Place {
  int32_t rank = -1;
  int32_t position = -1;

  bool exists() const { return position >= 0; }
  bool operator==(const Place&) const = default;
};

// Every rank executes its compute actions in order. An offload or a reload
// starts when the compute action before it and the previous action on its own
// channel have ended. Additionally, an action waits for
//
//   - F: the forwards of its microbatches in the previous stage;
//   - B, I: their input gradients (B or I) in the next stage, and the reload of
//     their activations;
//   - R: its offload;
//   - F and R under Schedule::resident_activations: the offload that frees
//     memory.
//
// W and O, the first stage's F and the last stage's B have no such
// dependencies.
class Dependencies {
 public:
  // Requires: the schedule outlives this object; its actions are in range and
  // on the rank of their stage and microbatch. The schedule may be incomplete.
  explicit Dependencies(const Schedule& schedule);

  using Places = absl::InlinedVector<Place, 2>;

  // Returns the actions that must have ended, in addition to the rank's own
  // order. Omits those missing in the schedule.
  Places Awaited(const Action& action, Place place) const;

  // Returns the actions of other stages that wait for this one.
  Places Released(const Action& action) const;

  // Returns the place of a microbatch's pass through a stage. kBackward also
  // finds a split backward. Does not find W.
  Place Find(Op op, int stage, int microbatch) const;

  // Returns the position of the last compute action before `place`, -1 if there
  // is none.
  int32_t ComputeBefore(Place place) const;
  // Returns the position of the last action of the same channel before an
  // offload or reload, -1 if there is none.
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
  // Position of each (stage, microbatch) in its rank's order, -1 if it has
  // none. The tables of offloads and reloads are empty if the schedule has
  // none.
  std::array<std::vector<int32_t>, kNumTables> positions_;
  // [rank][position]: the offload that must end first, -1 if there is none;
  // empty without a memory limit or offloads.
  std::vector<std::vector<int32_t>> room_;
};

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_DEPENDENCIES_H_
