// SPDX-License-Identifier: Apache-2.0
// The space of plans: every layout of a model that the request allows. A shape
// assigns the work to GPUs and a schedule orders it. Each shape with each
// schedule is one candidate.
#ifndef WEIR_PLAN_SEARCH_SPACE_H_
#define WEIR_PLAN_SEARCH_SPACE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/recompute.h"
#include "plan/energy/power.pb.h"
#include "plan/search/plan.pb.h"
#include "plan/search/shape.h"
#include "plan/search/variants.h"
#include "scenarios/scenario.h"

namespace weir::plan {

struct PlannedSchedule {
  std::string name;  // options included
  // The bound key: equal for schedules with the same placement of stages and
  // the same semantics, so that a bound on all orders of one holds for the
  // others. Empty: shared with none.
  std::string bound_key;
  bool flush = true;
  bool forward_only = false;
  bool single_samples = false;  // see ScheduleKind
  // Options make the number of stages differ from ranks x chunks.
  bool own_stages = false;
  // Fewest pipeline ranks on which the scenario's runtime runs several chunks
  // per rank in this order.
  int min_ranks_to_interleave = 1;
  // Stages per rank that the request asks for; 0: any.
  int chunks = 0;
  // A schedule with the same bound key that is quick to generate. Empty:
  // itself.
  std::string bound_proxy;
};

// Returns true if the schedule may have the shape's chunks, and the scenario's
// runtime runs them on its ranks.
inline bool Interleaves(const PlannedSchedule& schedule, const Shape& shape) {
  if (schedule.chunks > 0 && schedule.chunks != shape.chunks) return false;
  return shape.chunks == 1 ||
         shape.pipeline >= schedule.min_ranks_to_interleave;
}

struct Space {
  // The scenario resolved for one GPU, with its files loaded. Plans differ from
  // it in the fields that shapes and schedules set.
  scenarios::ResolvedScenario base;
  std::vector<Shape> shapes;  // without blocks; not all are legal
  // The first is no change. A variant v of shape i has the index
  // v * shapes.size() + i.
  std::vector<Variant> variants = {{}};
  // Candidate schedules, by [pipeline].
  std::vector<std::vector<PlannedSchedule>> schedules;
  // In the order of the shapes.
  std::vector<models::Recompute> recomputes;
  // About the power model and its caps, in addition to those of `base`.
  std::vector<std::string> warnings;

  // Names of the candidate schedules without options, and whether they are
  // those that the scenario's runtime executes.
  std::vector<std::string> schedule_names;
  bool schedules_of_runtime = false;
  // Bytes that a plan may use of the GPU with the largest memory, and the
  // fraction that it may use of the memory of each GPU.
  double memory_limit_bytes = 0;
  double memory_part = 1;
  std::optional<PowerModel> power;  // PlanRequest.power_model

  // Returns the energy of a step, 0 without power model.
  double JoulesOf(double seconds, int num_gpus, double active_joules) const {
    if (!power.has_value()) return 0;
    return (power->waiting_watts().value() + power->node_watts().value()) *
               num_gpus * seconds +
           active_joules;
  }

  int ShapeOf(int index) const {
    return static_cast<int>(index % shapes.size());
  }
  int VariantOf(int index) const {
    return static_cast<int>(index / shapes.size());
  }
  int IndexOf(int shape, int variant) const {
    return variant * static_cast<int>(shapes.size()) + shape;
  }
  // Returns the shape with this index.
  Shape At(int index) const;
  // Returns true if the shape can have the variant.
  bool Has(int shape, int variant) const;

  const std::vector<PlannedSchedule>& schedules_of(const Shape& shape) const {
    return schedules[shape.pipeline];
  }
};

// Returns InvalidArgument for errors in the request, or if its lists allow no
// shape, with values that would.
absl::StatusOr<Space> MakeSpace(const std::string& label,
                                const PlanRequest& request);

// Returns the number of blocks of each stage if the scenario gives them, in
// either form; empty: an even cut.
std::vector<int> GivenBlocks(const Scenario& scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SPACE_H_
