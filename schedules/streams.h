// SPDX-License-Identifier: Apache-2.0
// Streams of items that wait for one another: the one mechanism behind every
// question whether ranks can run together. What an item is, and what it waits
// for, is the caller's model: passes that await passes, transfers that meet,
// batches of transfers (see deadlock.h).
//
// A stream is a queue. Its first item is posted once everything that it needs
// before has happened, is done once everything that it needs to end has
// happened, and then makes way for the next. Streams stand still when no item
// can be posted or done any more. Linear in items and needs.
#ifndef WEIR_SCHEDULES_STREAMS_H_
#define WEIR_SCHEDULES_STREAMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace weir {

class Streams {
 public:
  enum class Event : uint8_t { kPosted = 1, kDone = 2 };

  // Items are numbered in the order in which they are added, stream by stream.
  void BeginStream();
  int32_t AddItem(double duration = 0);
  // What the item needs to be posted, or to be done once it is posted. Needs of
  // an item must be added together, items in ascending order.
  void NeedToPost(int32_t item, int32_t other, Event event);
  void NeedToEnd(int32_t item, int32_t other, Event event);

  int num_streams() const { return static_cast<int>(begin_.size()); }
  int32_t num_items() const { return num_items_; }
  int StreamOf(int32_t item) const;

  struct Outcome {
    std::vector<uint8_t> state;  // [item]: 0, or the Event that happened last
    std::vector<double> posted_at, done_at;  // [item], with a clock only
    double end = 0;                          // when the last item is done
    bool stands_still = false;
  };
  // `clock`: also tells when, every item taking its duration after it is posted
  // or its last need to end has happened, whichever is later.
  Outcome Run(bool clock = false) const;

  // One item that waits for another, both not done.
  struct Wait {
    int32_t item;
    int32_t other;
    Event event;
  };
  // The shortest cycle of first items that wait for one another; each waits for
  // an item in the stream of the next. REQUIRES: outcome.stands_still.
  std::vector<Wait> ShortestCycle(const Outcome& outcome) const;

 private:
  struct Packed {
    uint32_t other : 30;
    uint32_t event : 1;  // 1: kDone
    uint32_t to_end : 1;
  };
  struct Edge {
    int to;  // stream
    Wait wait;
  };
  void Add(int32_t item, Packed need);
  absl::Span<const Packed> NeedsOf(int32_t item) const;
  static bool IsUnmet(int32_t item, Packed need, const Outcome& outcome);
  // Every unmet need of every first item. [stream]
  std::vector<std::vector<Edge>> EdgesOf(const Outcome& outcome) const;
  int32_t StreamEnd(int stream) const;

  int32_t num_items_ = 0;
  std::vector<int32_t> begin_;      // [stream]: its first item
  std::vector<double> duration_;    // [item]
  std::vector<uint32_t> need_end_;  // [item]: behind its last need
  std::vector<Packed> needs_;
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_STREAMS_H_
