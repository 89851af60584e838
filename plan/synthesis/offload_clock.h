// SPDX-License-Identifier: Apache-2.0
// Orders whose activations go to the host and come back, and when they run.
#ifndef WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_
#define WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plan/synthesis/pass_rows.h"

namespace weir {

// What goes to the host goes right behind its forward: sooner is never worse.
struct OffloadRows {
  // [rank], in order: PassTable's numbers, and ReloadOf where an activation
  // comes back. A whole backward is its I alone.
  std::vector<std::vector<int32_t>> ranks;
  int resident_activations = 0;  // see Schedule
};

// The number of the reload before this pass's gradient.
inline int32_t ReloadOf(const PassTable& table, int32_t number) {
  return table.num_passes() + number / 3;
}
inline bool IsReload(const PassTable& table, int32_t number) {
  return number >= table.num_passes();
}
// The forward whose activation a reload brings back.
inline int32_t ForwardOf(const PassTable& table, int32_t reload) {
  return (reload - table.num_passes()) * 3;
}

// Nothing where forwards or gradients of a stage are not by microbatch.
// REQUIRES: as PassTable::RowsOf, but for offloads.
std::optional<OffloadRows> OffloadRowsOf(const PassTable& table,
                                         const Schedule& schedule);
Schedule ScheduleOf(const PassTable& table, const OffloadRows& rows);

// Times orders as TimedWalk does, and counts what ranks hold as PeakHeld does.
class OffloadClock {
 public:
  explicit OffloadClock(const PassTable& table);

  // False when the order deadlocks, its makespan is above `most`, or a rank
  // holds more than `limit` at a time.
  bool Try(const OffloadRows& rows, double limit, double most);
  // Of the last trial that was true.
  double makespan() const;
  double span() const;
  double sum_of_ends() const;

 private:
  struct Stream {
    double compute = 0, offload = 0, reload = 0;
    double first = 0;
    size_t next = 0;
    int resident = 0;
    std::vector<double> offload_ends;  // those from `next_leaving` on
    size_t next_leaving = 0;           // have made no room yet
    // When, by how much it holds more: by passes, offloads, reloads, each in
    // the order of time.
    std::array<std::vector<std::pair<double, double>>, 3> changes;
  };

  void MarkWhatIsThere(const OffloadRows& rows);
  bool RunRank(const OffloadRows& rows, int rank, double most);
  double WaitForRoom(int most_resident, Stream* stream) const;
  static bool Fits(const Stream& stream, double limit, double tolerance);

  const PassTable& table_;
  std::vector<bool> has_weight_, moved_;  // [stage * m + microbatch]
  std::vector<double> end_;               // [pass], below 0: not yet
  std::vector<double> reloaded_;          // [stage * m + microbatch]
  std::vector<Stream> streams_;
  std::vector<int> ready_;
};

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_OFFLOAD_CLOCK_H_
