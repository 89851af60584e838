// SPDX-License-Identifier: Apache-2.0
// Reads a PipeDream profile graph (Narayanan et al. 2019;
// github.com/msr-fiddle/pipedream):
//
//   node1 -- Conv2d(...) -- forward_compute_time=3.4, ...
//   <tab>node1 -- node2
//
// The costs of a node are forward_compute_time, backward_compute_time,
// activation_size and parameter_size.
// Times are milliseconds, sizes bytes; activation_size may be a list "[a; b]".
// A node whose description starts with "Input" loads data: its times are read
// as 0, as PipeDream's optimizer does; its activation counts.
#ifndef WEIR_MODELS_PIPEDREAM_GRAPH_H_
#define WEIR_MODELS_PIPEDREAM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir {

// As the file has it.
struct ProfileGraph {
  struct Node {
    uint64_t number = 0;      // K of nodeK
    std::string description;  // "Conv2d(...)", escaped where not plain ASCII
    MeasuredLayer costs;      // named "nodeK description"
  };
  std::vector<Node> nodes;                // in the order of their lines
  std::vector<std::vector<int>> readers;  // [node] in the order of edge lines
  std::vector<std::vector<int>> inputs;   // [node] likewise
};

// All problems come back at once, each with its line: what is no node and no
// edge, nodes that are not defined or defined twice, cycles.
absl::StatusOr<ProfileGraph> ParseProfileGraph(absl::string_view label,
                                               absl::string_view text);

// The same as a chain, a topological order; of several nodes that could come
// next, the one with the smallest number does (numbers follow execution).
// Problems as above.
absl::StatusOr<Model> ParsePipeDreamGraph(absl::string_view label,
                                          absl::string_view text);

}  // namespace weir

#endif  // WEIR_MODELS_PIPEDREAM_GRAPH_H_
