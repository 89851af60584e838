// SPDX-License-Identifier: Apache-2.0
// The space of plans: every way of laying a model out that the request leaves
// open. A shape says who does what; a schedule in what order. Each shape with
// each schedule is one candidate.
#ifndef WEIR_PLAN_SPACE_H_
#define WEIR_PLAN_SPACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.pb.h"
#include "scenarios/scenario.h"

namespace weir {

// How blocks are shared out among the stages (plan/cuts.h).
enum class Cut { kEven, kEndsLighter, kBalanced, kLight };
inline constexpr Cut kAllCuts[] = {Cut::kEven, Cut::kEndsLighter,
                                   Cut::kBalanced, Cut::kLight};

enum class Sharding { kAsGiven, kNone, kOptimizer, kFull };

struct Shape {
  int tensor = 1, pipeline = 1, data = 1, expert = 1;
  int microbatch_size = 1;
  int chunks = 1;
  RecomputeMode recompute = RECOMPUTE_NONE;
  Sharding sharding = Sharding::kAsGiven;
  std::string order = "tp-dp-pp";
  Cut cut = Cut::kEven;
  // Of each stage; empty: an equal share. A stage at an end may have none.
  std::vector<int> blocks;

  int num_gpus() const { return tensor * pipeline * data; }
};

struct PlannedSchedule {
  std::string name;  // options included
  // Equal for schedules whose stages are on the same ranks and which mean the
  // same: what bounds every order of one bounds the others. Empty: unlike all.
  std::string places;
  bool flush = true;
  bool forward_only = false;
  bool single_samples = false;  // see ScheduleKind
  // Options give it other stages than ranks x chunks.
  bool own_stages = false;
  // Fewest pipeline ranks on which the scenario's runtime runs several chunks
  // per rank in this order.
  int min_ranks_to_interleave = 1;
  // Has the same places, and its order is quick to make. Empty: its own is.
  std::string speaker;
};

// Returns whether the scenario's runtime runs so many chunks on so many ranks.
inline bool Interleaves(const PlannedSchedule& schedule, const Shape& shape) {
  return shape.chunks == 1 ||
         shape.pipeline >= schedule.min_ranks_to_interleave;
}

struct Space {
  // The scenario resolved with one GPU, and what it names loaded. Plans differ
  // from it in what shapes and schedules say.
  ResolvedScenario base;
  std::vector<Shape> shapes;  // without blocks; not all are legal
  // [pipeline]: the schedules that are looked at with so many ranks.
  std::vector<std::vector<PlannedSchedule>> schedules;
  // In the order of the shapes.
  std::vector<RecomputeMode> recomputes;
  std::vector<std::string> warnings;

  // Names of the schedules that are looked at, without their options, and
  // whether they are what the scenario's runtime executes.
  std::vector<std::string> schedule_names;
  bool schedules_of_runtime = false;
  // Bytes of a GPU that a plan may use: of the GPU with the most, and at most
  // this part of the memory of each.
  double memory_limit_bytes = 0;
  double memory_part = 1;

  const std::vector<PlannedSchedule>& schedules_of(const Shape& shape) const {
    return schedules[shape.pipeline];
  }
};

// InvalidArgument for what is wrong with the request, or where its lists leave
// no shape: says what would.
absl::StatusOr<Space> MakeSpace(const std::string& label,
                                const PlanRequest& request);

// Of a measured model its layers.
int NumBlocks(const Model& model);

Scenario ScenarioOfShape(const Scenario& base, const Shape& shape,
                         const std::string& schedule);

// "Et*3|t*2|L", as Megatron-LM writes such a cut.
std::string LayoutText(const std::vector<int>& blocks);

// "tp=8 pp=16 dp=8 mbs=1 chunks=2 recompute=full"
std::string DescribeShape(const Shape& shape);

}  // namespace weir

#endif  // WEIR_PLAN_SPACE_H_
