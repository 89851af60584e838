// SPDX-License-Identifier: Apache-2.0
// Input of a replay: a schedule, the stages of a model as operations, the links
// between ranks, and the training parameters.
#ifndef WEIR_CALIBRATE_EXECUTE_EXECUTION_PLAN_H_
#define WEIR_CALIBRATE_EXECUTE_EXECUTION_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/execute/stage/stage_program.h"
#include "models/model.pb.h"
#include "models/training.pb.h"
#include "schedules/schedule.h"

namespace weir::calibrate {

// An uncontended transfer takes latency_seconds + bytes / bytes_per_second.
struct LinkSpec {
  double latency_seconds = 0;
  double bytes_per_second = 0;  // 0: infinite

  double SecondsOf(double bytes) const {
    return latency_seconds +
           (bytes_per_second > 0 ? bytes / bytes_per_second : 0);
  }
};

// Returns the bytes transferred for `elements` elements; bits > 0: compressed
// to that many bits each.
inline double TransferBytes(ElementFormat format, int bits, int64_t elements) {
  const int own = 8 * BytesOf(format);
  return static_cast<double>(elements) * (bits > 0 && bits < own ? bits : own) /
         8;
}

// Optimizer of a stage; the same for all stages except for the adjustments that
// some systems make per stage.
//   SGD_MOMENTUM  v = momentum v + g
//                 w -= rate (velocity_weight v + gradient_weight g)
//   ADAM          stage_op.h
// g is the mean over the microbatches of an update (over all replicas of a
// stage): gradient_scale times the sum that passes accumulate. optimizer_math.h
// implements all of it.
struct StageOptimizer {
  Optimizer kind = SGD_MOMENTUM;
  double learning_rate = 0.05;
  double momentum = 0.9;
  double gradient_scale =
      1;  // MakeExecutionPlan: 1 / microbatches of an update
  // Spike compensation (Kosson et al., Pipelined Backpropagation at Scale,
  // MLSys 2021): velocity_weight m^D, gradient_weight (1 - m^D) / (1 - m).
  double velocity_weight = 1, gradient_weight = 0;
  AdamStep adam = {};  // its learning_rate is the one above
  // Decay of the average of past updates (PipeMare's T2).
  double average_decay = 0.5;
  // PipeMare's T1: the rate of update k, from 0, is learning_rate / delay^(1 -
  // min(k / delay_steps, 1)), delay in updates. 0 steps: learning_rate.
  double delay = 1;
  int delay_steps = 0;
};

// One embedding table in two stages: their gradients are summed before both
// update. Offsets are elements within the stages' weights.
struct TiedTable {
  int64_t num_elements = 0;  // 0: nothing is tied across stages
  int64_t first_offset = 0, last_offset = 0;
};

struct ExecutionPlan {
  // With flush one batch, repeated num_steps times; otherwise all batches.
  schedules::Schedule schedule;
  Model model;
  StageSpec spec;                // for every stage, without its layers
  std::vector<int> first_layer;  // [num_stages + 1], as Partition::first
  std::vector<std::shared_ptr<const StageProgram>> programs;  // [stage]
  std::vector<StageOptimizer> optimizers;                     // [stage]
  TiedTable tied;
  std::vector<LinkSpec> links;  // [from rank x num_ranks + to rank]
  int compressed_bits = 0;      // with compressed_transfers; 0: exact
  int num_steps = 1;
  uint64_t seed = 1;
  double timeout_seconds = 60;  // limit of any wait
  bool returns_weights = true;  // ExecutionRecord::weights, gigabytes on a GPU
  // [rank]: predicted peak of the memory that a rank allocates, which sets the
  // sizes of memory pools (pool_sizes.h); empty: not known.
  std::vector<double> predicted_peak_bytes;

  const LinkSpec& link(int from_rank, int to_rank) const {
    return links[static_cast<size_t>(from_rank) * schedule.num_ranks + to_rank];
  }
  int num_layers() const { return first_layer.back(); }
};

// Inputs of MakeExecutionPlan(), from a scenario or a test.
struct ExecutionRequest {
  schedules::Schedule schedule;
  Model model;
  StageSpec spec;
  std::vector<int> first_layer;  // empty: equal shares (PartitionEvenly)
  StageOptimizer optimizer;      // before adjustments by the schedule's system
  LinkSpec link;                 // between all ranks
  int num_steps = 1;
  uint64_t seed = 1;
};

// Builds the programs of all stages, and the optimizers with the adjustments of
// the schedule's system (PipeMare's learning rates, spike compensation).
// Returns InvalidArgument with everything that stages or replays do not
// support.
absl::StatusOr<ExecutionPlan> MakeExecutionPlan(
    const ExecutionRequest& request);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_EXECUTION_PLAN_H_
