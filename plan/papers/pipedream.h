// SPDX-License-Identifier: Apache-2.0
// PipeDream's optimizer: stages and their replicas on a hierarchy of machines,
// level by level, each level within one machine of the next. Minimises the
// slowest stage, which sets the pace of a pipeline without flushes.
//
// Formulas of the published code (github.com/msr-fiddle/pipedream,
// optimizer/optimizer_graph_hierarchical.py), which differ from the paper's
// (Narayanan et al. 2019, section 3.1): with C the seconds of states (i, j] on
// one machine (at level 1 computation, above that the best of the level below),
// w their parameters, a_i the bytes that state i puts out, B the level's bytes
// per second and r replicas,
//
//   stage(i, j, r)      = (C(i, j) + 4 (r - 1) w(i, j) / (r B)) / r
//   best(i, j, m)       = min over s before j, r < m of
//                         max(best(i, s, m - r), stage(s, j, r),
//                             2 a_s / (r B), 2 a_j / (r B))
//                         and stage(i, j, m), its communication divided by the
//                         machines of the level below
//
// The transfers count only where a compression ratio is given, which divides
// them; 2 a_j not where j is the end. The paper has
// max(C(i, j), 2 (r - 1) w / B) / r, and transfers 2 a_s / B.
#ifndef WEIR_PLAN_PAPERS_PIPEDREAM_H_
#define WEIR_PLAN_PAPERS_PIPEDREAM_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/papers/antichain_dag.h"
#include "plan/planner_work.h"

namespace weir {

struct PipeDreamOptions {
  // [level], innermost first: machines in one of the next level's.
  std::vector<int> num_machines;
  std::vector<double> bytes_per_second;  // [level] between them
  bool straight = false;                 // no replication
  bool fewer_machines = false;           // takes fewer where that is no slower
  std::optional<double> activation_compression_ratio;
  // A machine holds the activations and parameters of its stage for each of
  // ceil((N - m) / r) minibatches, m machines being in use up to it, and for
  // one at least; absent: memory is not looked at.
  std::optional<double> memory_limit_bytes;
  // The published code's count, which is none where no machine is behind a
  // stage: data parallelism then fits every limit.
  bool published_memory = false;
  bool paper_formula = false;
  // Called now and then with the part of a level that is solved, 0 to 1.
  std::function<void(double)> progress = {};
  // Called often. Once it returns true, the best plan so far is returned.
  std::function<bool()> stop = {};
};

// States [first_state, end_state).
struct PipeDreamStage {
  int first_state = 0, end_state = 0;
  double compute_seconds = 0;  // on one machine
  int replicas = 1;
};

struct PipeDreamPlan {
  double pipeline_seconds = 0;      // per minibatch
  double single_stage_seconds = 0;  // on one machine
  double data_parallel_seconds = 0;
  int num_states = 0;
  // States at which cuts were tried: fewer than all if it was stopped.
  int num_cut_states = 0;
  // [level] of each stage of the next level one after the other, with what they
  // have in one machine of it.
  std::vector<std::vector<PipeDreamStage>> levels;
  // Level 0's, with replicas on all levels.
  std::vector<PipeDreamStage> stages;
};

// Each problem names `label` or the option. FailedPrecondition where nothing
// fits the memory, with what the smallest plan needs; NotFound where there are
// fewer states than a straight pipeline needs; Cancelled where it was stopped
// before it had a plan. Large problems are solved with cuts at a few of the
// states first, so that a stopped one soon has a plan.
absl::StatusOr<PipeDreamPlan> OptimizePipeDream(
    absl::string_view label, const AntichainDag& dag,
    const PipeDreamOptions& options);

// Activations of one minibatch, and parameters, on one machine.
double BytesOfMinibatch(const AntichainDag& dag, const PipeDreamStage& stage);

// [stage] the nodes that a plan gives it; a node that two stages could have is
// with the first.
std::vector<std::vector<int>> NodesOfStages(const AntichainDag& dag,
                                            const PipeDreamPlan& plan);

// The work's layers as a chain, transfers uncompressed; servers of equal size
// are two levels, unequal ones a single level at the pace of the slowest link.
absl::StatusOr<PlannedPipeline> PlanPipeDream(const PlannerWork& work);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_PIPEDREAM_H_
