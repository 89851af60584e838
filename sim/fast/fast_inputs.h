// SPDX-License-Identifier: Apache-2.0
// Inputs of a FastSimulator that are kept from one scenario to the next, since
// many scenarios share them: networks, schedules, prices, symmetry reductions.
#ifndef WEIR_SIM_FAST_FAST_INPUTS_H_
#define WEIR_SIM_FAST_FAST_INPUTS_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/bounded_cache.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"
#include "schedules/semantics.h"
#include "sim/costs/stage_costs.h"
#include "sim/fast/steady.h"
#include "sim/graph/symmetries.h"

namespace weir::sim {

// A schedule and everything that follows from it alone.
struct Program {
  // The full schedule; null if it was shortened.
  std::shared_ptr<const schedules::Schedule> full;
  std::optional<ShortenedSchedule> shortened;
  schedules::Semantics semantics;
  // Largest number of weight versions, by stage.
  std::vector<int> versions;
  // As the schedule determines it, with copies on several ranks only.
  Traffic traffic;

  const schedules::Schedule& schedule() const {
    return shortened.has_value() ? shortened->schedule : *full;
  }
};

// Prices, and the scenario to which they point.
struct Prices {
  scenarios::ResolvedScenario scenario;
  Costs costs;
};

// Keeps inputs of scenarios. All functions return Simulate's errors.
class FastInputs {
 public:
  std::shared_ptr<const scenarios::Network> NetworkOf(
      const scenarios::ResolvedScenario& scenario);

  // Returns the schedule of `num_batches` batches. If it follows from the
  // scenario's shape alone, it is as its generator made it; others are
  // validated.
  absl::StatusOr<std::shared_ptr<const schedules::Schedule>> ScheduleOf(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network, int num_batches);
  absl::StatusOr<std::shared_ptr<const Program>> ProgramOf(
      const scenarios::ResolvedScenario& scenario,
      std::shared_ptr<const schedules::Schedule> schedule);
  // Returns null if the schedule is not to be shortened this way.
  absl::StatusOr<std::shared_ptr<const Program>> ShortProgramOf(
      const scenarios::ResolvedScenario& scenario,
      const schedules::Schedule& full, const ShortenOptions& options);

  // Returns the program of ShortenBatches; null if that returns std::nullopt.
  absl::StatusOr<std::shared_ptr<const Program>> ShortBatchesOf(
      const schedules::Schedule& schedule, int num_microbatches_left_out);

  absl::StatusOr<std::shared_ptr<const Prices>> PricesOf(
      const scenarios::ResolvedScenario& scenario, const Program& program);

  // `costs` are those of the program after ApplySchedule.
  std::shared_ptr<const SymmetryResult> SymmetryOf(
      const scenarios::ResolvedScenario& scenario,
      const scenarios::Network& network, const Program& program,
      const Costs& costs);

 private:
  // Limits in links and GPUs, actions, actions, stages.
  BoundedCache<scenarios::Network> networks_{1 << 20};
  BoundedCache<schedules::Schedule> schedules_{4 << 20};
  BoundedCache<Program> programs_{4 << 20};
  BoundedCache<Prices> prices_{1 << 16};
  SymmetryCache symmetries_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_FAST_INPUTS_H_
