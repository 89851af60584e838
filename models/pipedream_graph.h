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

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/model.pb.h"

namespace weir {

// The chain is a topological order; of several nodes that could come next, the
// one with the smallest number does (numbers follow execution). All problems
// come back at once, each with its line.
absl::StatusOr<Model> ParsePipeDreamGraph(absl::string_view label,
                                          absl::string_view text);

}  // namespace weir

#endif  // WEIR_MODELS_PIPEDREAM_GRAPH_H_
