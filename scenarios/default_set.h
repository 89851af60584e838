// SPDX-License-Identifier: Apache-2.0
// Sets of defaults: training options of a transformer that a scenario does not
// set.
#ifndef WEIR_SCENARIOS_DEFAULT_SET_H_
#define WEIR_SCENARIOS_DEFAULT_SET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/model.pb.h"
#include "scenarios/default_set.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// The options of a scenario that come from defaults.
struct UsedDefaults {
  std::string set;                // name; empty: none
  std::vector<std::string> used;  // "bf16", "sequence parallelism"
  // Options of the set that this scenario cannot use, with the reason:
  // "distributed optimizer (pipedream-2bw has no flush)".
  std::vector<std::string> not_used;
};

// Loads a preset or a textproto file. Returns InvalidArgument if it has no
// precision or gradient reduction.
absl::StatusOr<DefaultSet> LoadDefaultSet(const std::string& name_or_path);

// Returns the set of the scenario, or the one for its model if it names none.
// A measured model has the empty set. Returns the errors of LoadDefaultSet.
absl::StatusOr<DefaultSet> DefaultSetOf(const Scenario& scenario,
                                        const Model& model);

// Fills in the options that the scenario does not set. Sequence parallelism and
// the distributed optimizer stay absent where a scenario has no use for them,
// so that a scenario derived from this one gets its own defaults.
void FillFrom(const DefaultSet& set, const Model& model, Scenario* scenario,
              UsedDefaults* used);

// Replaces bf16 and fused attention, where the set filled them in, by fp16 and
// unfused attention if the device has no bf16.
void AdaptTo(const DeviceProfile& device, Scenario* scenario,
             UsedDefaults* used);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_DEFAULT_SET_H_
