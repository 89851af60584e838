// SPDX-License-Identifier: Apache-2.0
// PipeDream-2BW's planner (Narayanan et al., "Memory-Efficient Pipeline-
// Parallel DNN Training", ICML 2021, section 4): tries all widths w (replicas),
// depths d (stages of equally many blocks), microbatch sizes b and executions
// r, and keeps the largest throughput that fits. Per microbatch and pipeline,
// over the stages i of one pipeline,
//
//   not pipelined   t = sum_i max(comp_i + transfers_i, reduce_i / m)
//   pipelined       t = max_i max(comp_i + transfers_i, reduce_i / m)
//
//   comp_i       forward and backward of its blocks, x 4/3 where recomputed
//   transfers_i  2 |input and output| / bandwidth(d), none for d = 1
//   reduce_i     2 (w - 1) / w |gradients| / bandwidth(w), a ring's all-reduce
//   bandwidth(x) inside a server if x < its GPUs, else between servers
//   m            microbatches of an update, B / (w b), a multiple of d
//
// and memory of the worst stage, |W| with all that is there once or twice,
//
//   not pipelined            |W| + |activations|
//   pipelined                |W2| + d |activations| + d |inputs|
//   pipelined, recomputed    |W2| + |activations| + d |inputs|
//
// where the paper divides the model's sums by d, we sum a stage: embedding and
// head make it unlike the others.
#ifndef WEIR_PLAN_PAPERS_TWO_BW_H_
#define WEIR_PLAN_PAPERS_TWO_BW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

enum class TwoBwExecution { kNotPipelined, kPipelined, kRecomputed };
const char* Name(TwoBwExecution execution);  // "pipelined, recomputed"

struct TwoBwQuestion {
  // One for each microbatch size, priced without recomputation.
  std::vector<PlannerWork> works;
  int num_devices = 1;
  int devices_per_server = 1;
  double server_bytes_per_second = 0, servers_bytes_per_second = 0;
  double memory_bytes = 0;    // of a device
  int global_batch_size = 0;  // B: the largest that is safe
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

// g of the paper: m / d, batches that a pipeline coalesces.
int Coalesced(const TwoBwPlan& plan);

// By the formulas above. REQUIRES: `depth` divides the blocks.
double TwoBwMicrobatchSeconds(const TwoBwQuestion& question,
                              const PlannerWork& work, int width, int depth,
                              int num_microbatches, TwoBwExecution execution);
double TwoBwMemoryBytes(const PlannerWork& work, int depth,
                        TwoBwExecution execution);

// Algorithm 1. Of equal throughput the least memory, then the first of width,
// depth, size and execution. NotFound where nothing fits, with the least memory
// that is asked for.
absl::StatusOr<TwoBwPlan> SearchTwoBw(const TwoBwQuestion& question);

// For microbatches of 1, 2, 4, ... sequences, as far as the batch goes. Not
// pipelined with a depth above 1 is left out: no schedule of weir is that.
absl::StatusOr<PlannedPipeline> PlanTwoBw(const ResolvedScenario& given,
                                          const PlannerLinks& links);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_TWO_BW_H_
