// SPDX-License-Identifier: Apache-2.0
// The states of PipeDream's optimizer (Narayanan et al. 2019, "PipeDream:
// Generalized Pipeline Parallelism for DNN Training", section 3.1; the rules
// are those of github.com/msr-fiddle/pipedream, graph/graph.py and
// optimizer/optimizer_graph_hierarchical.py): everything up to an antichain of
// the profile graph is the front part of a cut.
#ifndef WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_
#define WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/pipedream_graph.h"
#include "plan/planner_work.h"

namespace weir {

// Sums are over all nodes before the antichain, itself included.
struct AntichainState {
  std::vector<int> nodes;      // that the sums count, ascending
  double compute_seconds = 0;  // forward and backward
  double activation_bytes = 0;
  double parameter_bytes = 0;
  double output_bytes = 0;  // of the antichain and of earlier nodes still read
};

struct AntichainDag {
  // In topological order; the last is where the pipeline ends.
  std::vector<AntichainState> states;
  // [state] all states before it, ascending.
  std::vector<std::vector<int>> predecessors;
  std::vector<std::string> node_names;  // [node]
  // Inputs: nodes of no cost that belong to the first stage.
  std::vector<int> input_nodes;
  // Of no state: no path from the first source, nor to what one leads to.
  std::vector<int> unreached_nodes;
};

// Sources named "Input..." do not count, nor do sinks named "__getitem__...".
// As in the published code the first source in the file begins, whatever other
// sources there are comes with the nodes that read it. Independent of the order
// of edges, except where states are incomparable.
// InvalidArgument for a graph without nodes, and for one that branches into
// more than `max_states` states.
absl::StatusOr<AntichainDag> AntichainDagOf(absl::string_view label,
                                            const ProfileGraph& graph,
                                            int max_states = 20'000);

// A chain of layers. An embedding and a head stay with the block beside them.
AntichainDag AntichainDagOf(const PlannerWork& work);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_ANTICHAIN_DAG_H_
