// SPDX-License-Identifier: Apache-2.0
// A shape assigns the work of a training step to GPUs; a schedule orders it.
#ifndef WEIR_PLAN_SEARCH_SHAPE_H_
#define WEIR_PLAN_SEARCH_SHAPE_H_

#include <string>
#include <vector>

#include "models/model.pb.h"
#include "models/recompute.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// Distributions of blocks over the stages (plan/search/cuts.h).
enum class Cut { kEven, kEndsLighter, kBalanced, kLight, kMtpApart, kSpeeds };
inline constexpr Cut kAllCuts[] = {Cut::kEven,     Cut::kEndsLighter,
                                   Cut::kBalanced, Cut::kLight,
                                   Cut::kMtpApart, Cut::kSpeeds};

// What is sharded across data-parallel ranks: nothing, optimizer states, or
// also weights and gradients.
enum class Sharding { kNone, kOptimizer, kFull };

// Communication.tp_comm_overlap.
enum class TensorOverlap { kOfRuntime, kOff, kOn };

struct Shape {
  int tensor = 1, pipeline = 1, data = 1, expert = 1;
  int context = 1;         // GPUs that share each sequence
  int expert_tensor = 0;   // GPUs that share each expert; 0: `tensor`
  int data_replicate = 1;  // groups of hybrid sharding
  int microbatch_size = 1;
  int chunks = 1;
  models::Recompute recompute;
  int offloaded_blocks = 0;      // of each stage: cpu_offloading_num_layers
  double optimizer_offload = 0;  // Training.optimizer_offload_fraction
  VocabularyParallel vocabulary = VOCABULARY_PARALLEL_UNSPECIFIED;
  bool expert_overlap = false;  // Communication.overlap_expert_exchange
  TensorOverlap tensor_overlap = TensorOverlap::kOfRuntime;
  bool sequence_parallel = false;
  Sharding sharding = Sharding::kNone;
  ReductionMode reduction = REDUCTION_BLOCKING;
  std::string order = "tp-dp-pp";
  Cut cut = Cut::kEven;
  int mtp_modules = 0;  // of the model
  // By stage; empty: an equal share. A stage at an end may have no blocks.
  std::vector<int> blocks;

  int num_gpus() const { return tensor * pipeline * data * context; }
  // Returns true if several GPUs hold the same weights.
  bool replicated() const { return data * context > 1; }
  bool operator==(const Shape&) const = default;
};

// Returns the number of blocks; of a measured model, the number of layers.
int NumBlocks(const Model& model);

Scenario ScenarioOfShape(const Scenario& base, const Shape& shape,
                         const std::string& schedule);

// Returns "none", "optimizer" or "full".
std::string NameOf(Sharding sharding);
// Returns "none", "one-barrier" or "two-barriers".
std::string NameOf(VocabularyParallel vocabulary);

// Returns for example "tp=8 pp=16 dp=8 mbs=1 chunks=2 recompute=full".
std::string DescribeShape(const Shape& shape);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SHAPE_H_
