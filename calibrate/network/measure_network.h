// SPDX-License-Identifier: Apache-2.0
// What rank 0 has measured, and how.
#ifndef WEIR_CALIBRATE_NETWORK_MEASURE_NETWORK_H_
#define WEIR_CALIBRATE_NETWORK_MEASURE_NETWORK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/collective_seconds.h"
#include "calibrate/network/leader.h"
#include "calibrate/network/plan.h"
#include "calibrate/network/topology.h"

namespace weir {

// Device memory that a communicator took of its first rank.
struct CommunicatorSteps {
  double init_bytes = 0;
  double first_use_bytes = 0;  // by the first collective, or the first pair
  double Sum() const { return init_bytes + first_use_bytes; }
};

struct PairTimes {
  struct Row {
    double bytes = 0;
    double one_way_seconds = 0;    // one after the other, in one direction
    double both_ways_seconds = 0;  // one in each direction at once
    double message_seconds = 0;    // half a ping-pong
  };
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
  int from = 0;
  int to = 0;
  CommunicatorSteps memory;
  double first_seconds = 0;  // of the first transfer: sets the connection up
  std::vector<Row> rows;
};

struct CollectiveTimes {
  struct Row {
    double bytes = 0;
    double seconds = 0;  // mean over the ranks
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  GroupPlan group;
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;  // farthest
  double first_seconds = 0;
  std::vector<Row> rows;
};

struct GroupMemory {
  GroupPlan group;
  bool first = false;  // the first communicator of the processes
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
  CommunicatorSteps collective;
  double first_pair_bytes = 0;  // after it
};

struct NetworkMeasurements {
  std::vector<RankPlace> places;
  std::vector<PairTimes> pairs;
  std::vector<CollectiveTimes> collectives;
  std::vector<GroupMemory> memory;
  std::vector<std::string> remarks;
};

struct MeasureOptions {
  int pairs_per_class = 8;
  double max_bytes = 0;
  double timeout_seconds = 60;
  int num_channels = 16;  // of pairs, where NCCL's knots are
  uint64_t seed = 1;
  std::vector<GroupPlan> groups;
  // After every pair and group: what there is so far can be kept.
  std::function<absl::Status(const NetworkMeasurements& so_far)> keep;
};

// Fills the rest of `measured`, whose places are there. 5 warm-ups, then 20
// repeats, or as many (3 at least) as fit in a quarter of the time-out; sizes
// end where 3 would not. With one rank: its messages to itself. The error of
// Ask, or of keep; what was measured until then stays.
absl::Status MeasureNetwork(Leader* leader, const MeasureOptions& options,
                            NetworkMeasurements* measured);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_MEASURE_NETWORK_H_
