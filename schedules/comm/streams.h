// SPDX-License-Identifier: Apache-2.0
// Streams of items that wait for each other: the common mechanism that
// determines whether ranks can run together. The meaning of items and waits
// depends on the caller's model: passes that wait for passes, transfers that
// match, batches of transfers (see deadlock.h).
//
// A stream is a queue. Its first item is posted when all its dependencies for
// posting have happened, is done when all its dependencies for ending have
// happened, and is then removed. Streams are deadlocked if items remain and
// none can be posted or done. Linear in items and dependencies.
#ifndef WEIR_SCHEDULES_COMM_STREAMS_H_
#define WEIR_SCHEDULES_COMM_STREAMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weir::schedules {

class Streams {
 public:
  enum class Event : uint8_t { kPosted = 1, kDone = 2 };

  // Items are numbered in the order in which they are added, stream by stream.
  void BeginStream();
  int32_t AddItem(double duration = 0);
  // Add an event that must happen before the item is posted, or before a posted
  // item is done. Requires: the dependencies of an item are added together,
  // items in ascending order.
  void AddPostDependency(int32_t item, int32_t other, Event event);
  void AddEndDependency(int32_t item, int32_t other, Event event);

  int num_streams() const { return static_cast<int>(begin_.size()); }
  int32_t num_items() const { return num_items_; }
  int StreamOf(int32_t item) const;

  struct Outcome {
    std::vector<uint8_t> state;  // [item]: 0, or the last Event that happened
    std::vector<double> posted_at, done_at;  // [item], only with a clock
    double end = 0;  // time at which the last item is done
    bool deadlocked = false;
  };
  // `clock`: also computes times. An item takes its duration after it is posted
  // or its last dependency for ending has happened, whichever is later.
  Outcome Run(bool clock = false) const;

  // An item that waits for another item. Neither is done.
  struct Wait {
    int32_t item;
    int32_t other;
    Event event;
  };
  // Returns the shortest cycle of first items that wait for each other; each
  // waits for an item in the stream of the next. Requires:
  // outcome.deadlocked.
  std::vector<Wait> ShortestCycle(const Outcome& outcome) const;

 private:
  struct Dependency {
    uint32_t other : 30;
    uint32_t event : 1;  // 1: kDone
    uint32_t to_end : 1;
  };
  struct Edge {
    int to;  // stream
    Wait wait;
  };
  void Add(int32_t item, Dependency dependency);
  absl::Span<const Dependency> DependenciesOf(int32_t item) const;
  static bool IsUnmet(int32_t item, Dependency dependency,
                      const Outcome& outcome);
  // Returns every unmet dependency of every first item, by [stream].
  std::vector<std::vector<Edge>> EdgesOf(const Outcome& outcome) const;
  int32_t StreamEnd(int stream) const;

  int32_t num_items_ = 0;
  std::vector<int32_t> begin_;    // [stream]: its first item
  std::vector<double> duration_;  // [item]
  std::vector<uint32_t>
      dependency_end_;  // [item]: index after its last dependency
  std::vector<Dependency> dependencies_;
};

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_COMM_STREAMS_H_
