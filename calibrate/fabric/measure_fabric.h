// SPDX-License-Identifier: Apache-2.0
// Measurements by rank 0 of messages between GPUs.
#ifndef WEIR_CALIBRATE_FABRIC_MEASURE_FABRIC_H_
#define WEIR_CALIBRATE_FABRIC_MEASURE_FABRIC_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/fabric/fabric_plan.h"
#include "calibrate/fabric/leader.h"
#include "calibrate/fabric/topology.h"
#include "calibrate/pricing/collective_seconds.h"

namespace weir::calibrate {

// Device memory that a communicator took on its first rank.
struct CommunicatorSteps {
  double init_bytes = 0;
  double first_use_bytes = 0;  // by the first collective, or the first pair
  double Sum() const { return init_bytes + first_use_bytes; }
};

struct PairTimes {
  struct Row {
    double bytes = 0;
    double one_way_seconds = 0;    // consecutive messages in one direction
    double both_ways_seconds = 0;  // one in each direction at once
    double message_seconds = 0;    // half a ping-pong
  };
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
  int from = 0;
  int to = 0;
  CommunicatorSteps memory;
  // Seconds of the first transfer, which sets up the connection.
  double first_seconds = 0;
  std::vector<Row> rows;
};

struct CollectiveTimes {
  struct Row {
    double bytes = 0;
    double seconds = 0;  // mean over the ranks
  };
  models::CollectiveKind kind = models::CollectiveKind::kAllReduce;
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
  std::vector<RankPlace> positions;
  std::vector<PairTimes> pairs;
  std::vector<CollectiveTimes> collectives;
  std::vector<GroupMemory> memory;
  std::vector<std::string> remarks;
};

struct MeasureOptions {
  int pairs_per_class = 8;
  double max_bytes = 0;
  double timeout_seconds = 60;
  int num_channels = 16;  // for pairs; determines NCCL's knots
  uint64_t seed = 1;
  std::vector<GroupPlan> groups;
  // Called after every pair and group to save the results so far.
  std::function<absl::Status(const NetworkMeasurements& so_far)> keep;
};

// Fills the rest of `measured`, whose `positions` are set. Each size has 5
// warm-ups, then 20 repeats or as many (at least 3) as fit in a quarter of the
// time-out; sizes end when 3 would not fit. A single rank sends messages to
// itself. Returns the error of SendAndWait() or `keep`; earlier measurements
// stay.
absl::Status MeasureNetwork(Leader* leader, const MeasureOptions& options,
                            NetworkMeasurements* measured);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_MEASURE_FABRIC_H_
