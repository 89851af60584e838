// SPDX-License-Identifier: Apache-2.0
// Reads a PipeDream profile graph (Narayanan et al. 2019;
// github.com/msr-fiddle/pipedream):
//
//   node1 -- Conv2d(...) -- forward_compute_time=3.4, ...
//   <tab>node1 -- node2
//
// The costs of a node are forward_compute_time, backward_compute_time,
// activation_size and parameter_size. Times are in milliseconds, sizes in
// bytes; activation_size may be a list "[a; b]". A node whose description
// starts with "Input" loads data: its times are read as 0, as in PipeDream's
// optimizer, but its activation counts. Errors are InvalidArgument.
#ifndef WEIR_MODELS_IMPORT_PIPEDREAM_GRAPH_H_
#define WEIR_MODELS_IMPORT_PIPEDREAM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir::models {

// A graph as in the file.
struct ProfileGraph {
  struct Node {
    uint64_t number = 0;      // K of nodeK
    std::string description;  // "Conv2d(...)", escaped unless plain ASCII
    MeasuredLayer costs;      // named "nodeK description"
  };
  std::vector<Node> nodes;                // in the order of their lines
  std::vector<std::vector<int>> readers;  // [node] in the order of edge lines
  std::vector<std::vector<int>> inputs;   // [node] in the order of edge lines
};

// Returns the graph, or all problems at once, each with its line: lines that
// are neither node nor edge, nodes that are undefined or defined twice, cycles.
absl::StatusOr<ProfileGraph> ParseProfileGraph(absl::string_view label,
                                               absl::string_view text);

// Returns the graph as a chain in topological order. Among several nodes that
// could come next, chooses the smallest number (numbers follow execution).
// Reports problems like ParseProfileGraph.
absl::StatusOr<Model> ParsePipeDreamGraph(absl::string_view label,
                                          absl::string_view text);

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_PIPEDREAM_GRAPH_H_
