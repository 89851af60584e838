// SPDX-License-Identifier: Apache-2.0
// Use of the connections between ranks over the run.
#include <map>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "results/report/sections.h"

namespace weir::results {
namespace {

struct Connection {
  int num_transfers = 0;
  double bytes = 0;
  std::vector<Interval> on_wire;
};

Json ConnectionsOf(const PipelineEvents& events) {
  std::map<std::pair<int, int>, Connection> connections;
  for (const TimelineTransfer& transfer : events.transfers) {
    Connection& connection =
        connections[{transfer.from_rank, transfer.to_rank}];
    ++connection.num_transfers;
    connection.bytes += transfer.bytes;
    connection.on_wire.push_back(
        {transfer.start_seconds, transfer.end_seconds});
  }
  Json json = Json::array();
  for (auto& [ranks, connection] : connections) {
    std::vector<Interval> run = {{0, events.makespan_seconds}};
    const double busy = TakeOut(std::move(connection.on_wire), &run);
    json.push_back(
        {{"from_rank", ranks.first},
         {"to_rank", ranks.second},
         {"count", connection.num_transfers},
         {"bytes", connection.bytes},
         {"busy_seconds", busy},
         {"utilization",
          events.makespan_seconds > 0 ? busy / events.makespan_seconds : 0},
         {"bytes_per_second",
          busy > 0 ? Json(connection.bytes / busy) : Json()}});
  }
  return json;
}

}  // namespace

Json LinksSection(std::span<const Result> results,
                  std::span<const ShownPipeline> pipelines) {
  Json runs = Json::array();
  for (size_t run = 0; run < results.size(); ++run) {
    Json connections = Json::array();
    for (const ShownPipeline& pipeline : pipelines) {
      if (pipeline.run != run || !pipeline.events.has_value()) continue;
      connections = ConnectionsOf(*pipeline.events);
      break;
    }
    runs.push_back(std::move(connections));
  }
  return {{"type", "links"}, {"runs", runs}};
}

}  // namespace weir::results
