// SPDX-License-Identifier: Apache-2.0
// PipeDream-2BW's planner (Narayanan et al., "Memory-Efficient Pipeline-
// Parallel DNN Training", ICML 2021, section 4): tries all widths w (replicas),
// depths d (stages of equally many blocks), microbatch sizes b and executions
// r, and returns the largest throughput that fits. Per microbatch and pipeline,
// over the stages i of one pipeline,
//
//   not pipelined   t = sum_i max(comp_i + transfers_i, reduce_i / m)
//   pipelined       t = max_i max(comp_i + transfers_i, reduce_i / m)
//
//   comp_i       forward and backward of its blocks, x 4/3 if recomputed
//   transfers_i  2 |input and output| / bandwidth(d), none for d = 1
//   reduce_i     2 (w - 1) / w |gradients| / bandwidth(w), a ring's all-reduce
//   bandwidth(x) inside a server if x < its GPUs, else between servers
//   m            microbatches of an update, B / (w b), a multiple of d
//
// and, with |W| and |W2| all states with one and two versions of the weights,
// the memory of the worst stage is
//
//   not pipelined            |W| + |activations|
//   pipelined                |W2| + d |activations| + d |inputs|
//   pipelined, recomputed    |W2| + |activations| + d |inputs|
//
// The paper divides the model's sums by d; we sum each stage, as the embedding
// and the head make stages unequal.
#ifndef WEIR_PLAN_PAPERS_TWO_BW_H_
#define WEIR_PLAN_PAPERS_TWO_BW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

enum class TwoBwExecution { kNotPipelined, kPipelined, kRecomputed };
const char* Name(TwoBwExecution execution);  // such as "pipelined, recomputed"

struct TwoBwProblem {
  // One per microbatch size, priced without recomputation.
  std::vector<PlannerWork> works;
  int num_devices = 1;
  int devices_per_server = 1;
  double server_bytes_per_second = 0, servers_bytes_per_second = 0;
  double memory_bytes = 0;    // per device
  int global_batch_size = 0;  // B: the maximum safe batch size
};

struct TwoBwPlan {
  int width = 0, depth = 0;
  int microbatch_size = 0;
  int num_microbatches = 0;  // m
  TwoBwExecution execution = TwoBwExecution::kPipelined;
  double microbatch_seconds = 0;  // t
  double samples_per_second = 0;  // w b / t
  double memory_bytes = 0;
};

// Returns g of the paper: m / d, the batches that a pipeline coalesces.
int Coalesced(const TwoBwPlan& plan);

// Return t and the memory by the formulas above. Requires: `depth` divides the
// blocks.
double TwoBwMicrobatchSeconds(const TwoBwProblem& request,
                              const PlannerWork& work, int width, int depth,
                              int num_microbatches, TwoBwExecution execution);
double TwoBwMemoryBytes(const PlannerWork& work, int depth,
                        TwoBwExecution execution);

// Runs Algorithm 1. Ties in throughput go to the lowest memory, then to the
// first of width, depth, size and execution. Returns NotFound, with the lowest
// memory of a plan, if nothing fits.
absl::StatusOr<TwoBwPlan> SearchTwoBw(const TwoBwProblem& request);

// Plans for microbatches of 1, 2, 4, ... sequences that divide the batch.
// Excludes unpipelined execution at depths above 1, for which weir has no
// schedule. Returns InvalidArgument for malformed input, NotFound if nothing
// fits.
absl::StatusOr<PlannedPipeline> PlanTwoBw(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_TWO_BW_H_
