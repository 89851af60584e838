// SPDX-License-Identifier: Apache-2.0
// Orders with offloads to the host, and their timing.
#ifndef WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_
#define WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

// An order with offloads. An offload directly follows its forward, as a later
// one is never better.
struct OffloadRows {
  // [rank]: numbers of passes (PassTable) in execution order; ReloadOf for a
  // reload. A whole backward is represented by its I.
  std::vector<std::vector<int32_t>> ranks;
  int resident_activations = 0;  // see Schedule
};

// Returns the number of the reload for a pass's stage and microbatch.
inline int32_t ReloadOf(const PassTable& table, int32_t number) {
  return table.num_passes() + number / 3;
}
inline bool IsReload(const PassTable& table, int32_t number) {
  return number >= table.num_passes();
}
// Returns the forward whose activation a reload restores.
inline int32_t ForwardOf(const PassTable& table, int32_t reload) {
  return (reload - table.num_passes()) * 3;
}

// Returns std::nullopt if forwards or gradients of a stage are not in the order
// of microbatches. Requires: as PassTable::RowsOf; the schedule may have
// offloads.
std::optional<OffloadRows> OffloadRowsOf(const PassTable& table,
                                         const schedules::Schedule& schedule);
schedules::Schedule ScheduleOf(const PassTable& table, const OffloadRows& rows);

// Computes times like TimedWalk and memory like PeakHeld.
class OffloadClock {
 public:
  explicit OffloadClock(const PassTable& table);

  // Returns false if the order deadlocks, its makespan exceeds `most` seconds,
  // or a rank holds more than `limit` at any time, in the unit of
  // PassTable::held.
  bool Try(const OffloadRows& rows, double limit, double most);
  // Return seconds of the last successful trial. sum_of_ends: of the last
  // passes of all ranks.
  double makespan() const;
  double span() const;
  double sum_of_ends() const;

 private:
  struct Stream {
    double compute = 0, offload = 0, reload = 0;
    double first = 0;
    size_t next = 0;
    int resident = 0;
    std::vector<double> offload_ends;  // in order
    size_t next_leaving = 0;           // first that has not freed its room
    // Changes of the held amount as (time, change): by passes, offloads and
    // reloads, each in order of time.
    std::array<std::vector<std::pair<double, double>>, 3> changes;
  };

  void MarkWhatIsThere(const OffloadRows& rows);
  bool RunRank(const OffloadRows& rows, int rank, double most);
  double WaitForRoom(int most_resident, Stream* stream) const;
  static bool Fits(const Stream& stream, double limit, double tolerance);

  const PassTable& table_;
  std::vector<bool> has_weight_, moved_;  // [stage * m + microbatch]
  std::vector<double> end_;               // [pass], negative: not timed yet
  std::vector<double> reloaded_;          // [stage * m + microbatch]
  std::vector<Stream> streams_;
  std::vector<int> ready_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_
