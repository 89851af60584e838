// SPDX-License-Identifier: Apache-2.0
// The states of PipeDream's optimizer (Narayanan et al. 2019, "PipeDream:
// Generalized Pipeline Parallelism for DNN Training", section 3.1; rules as in
// github.com/msr-fiddle/pipedream, graph/graph.py and
// optimizer/optimizer_graph_hierarchical.py). All nodes up to an antichain of
// the profile graph form the front part of a cut.
#ifndef WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_
#define WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/import/pipedream_graph.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

// A state, with sums over the antichain and all nodes before it.
struct AntichainState {
  std::vector<int> nodes;      // included in the sums, ascending
  double compute_seconds = 0;  // forward and backward
  double activation_bytes = 0;
  double parameter_bytes = 0;
  double output_bytes = 0;  // the antichain and earlier nodes still read
};

struct AntichainDag {
  // In topological order; the last is the end of the pipeline.
  std::vector<AntichainState> states;
  // All states before each state, ascending: [state].
  std::vector<std::vector<int>> predecessors;
  std::vector<std::string> node_names;  // [node]
  // Inputs: nodes without cost that belong to the first stage.
  std::vector<int> input_nodes;
  // Nodes in no state: not on a path between the first source and the last
  // state.
  std::vector<int> unreached_nodes;
};

// Ignores sources named "Input..." and sinks named "__getitem__...". As in the
// published code, the first source in the file is the start; other sources are
// added together with the nodes that read them. Independent of the order of
// edges, except where states are incomparable. Returns InvalidArgument for a
// graph without nodes, and for one with more than `max_states` states.
absl::StatusOr<AntichainDag> AntichainDagOf(absl::string_view label,
                                            const models::ProfileGraph& graph,
                                            int max_states = 20'000);

// Returns the states of a chain of layers. An embedding and a head stay with
// their neighboring block.
AntichainDag AntichainDagOf(const PlannerWork& work);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_
