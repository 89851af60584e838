// SPDX-License-Identifier: Apache-2.0
// Loads, checks and resolves scenarios.
#ifndef WEIR_SCENARIOS_SCENARIO_H_
#define WEIR_SCENARIOS_SCENARIO_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/model.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/cluster/placement.h"
#include "scenarios/default_set.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Loads a preset or a file (textproto or JSON). Checks only the syntax. Returns
// NotFound if there is neither, and InvalidArgument with the place of syntax
// errors and unknown fields.
absl::StatusOr<Scenario> LoadScenario(const std::string& name_or_path);

// The input of the simulator: a scenario with every referenced file loaded,
// every default filled in and every check passed.
struct ResolvedScenario {
  std::string label;  // file or "command line", for messages
  Scenario scenario;  // defaults filled in
  bool given_costs = false;

  // Empty with given costs.
  Model model;
  Cluster cluster;
  DeviceProfile device;
  // For a cluster with different GPUs: the devices besides `device`, and the
  // index of each GPU's device, where 0 is `device`. Empty if all GPUs are
  // equal.
  std::vector<DeviceProfile> other_devices;
  std::vector<int> gpu_device;
  Runtime runtime;
  // As training.recipe names it, with the fields of training that replace its
  // own; and as loaded.
  Recipe recipe, loaded_recipe;
  DefaultSet default_set;
  UsedDefaults used_defaults;

  Placement placement;
  int num_microbatches = 0;  // per batch and pipeline
  // Warnings about the use of the profiles here.
  std::vector<std::string> warnings;
};

// Loads and checks a scenario. Returns InvalidArgument with all problems, each
// with its field: a global batch that the microbatches and replicas do not
// divide, a cluster that is too small, a tensor parallelism that does not
// divide the heads. Returns NotFound if the only problem is a file that does
// not exist. Requirements of a schedule are checked by its generator.
absl::StatusOr<ResolvedScenario> ResolveScenario(absl::string_view label,
                                                 const Scenario& scenario);

// Does the same for a scenario with the same model, cluster, profile and
// runtime as `resolved`, without reading these files again. For planners, which
// make thousands of calls. After an error `resolved` may only be used for
// further calls. Requires: no given costs, no schedule file.
absl::Status ResolveAgain(const Scenario& scenario, ResolvedScenario* resolved);

// Parses --costs "f=1,i=1,w=1,c=0" or "f=1,b=2". Keys in seconds: f forward, b
// backward or its parts i (input) and w (weight), c one hop, o a forward
// overlapped with a backward, h one direction of an offload to the host, p one
// weight prediction, z one compression. Keys in bytes: a activations, g inputs
// of the weight gradient. A value may be a list with one entry per stage:
// "f=1/1/2,b=2". Returns InvalidArgument that names the wrong keys.
absl::StatusOr<GivenCosts> ParseCosts(absl::string_view text);

// Loads a table of costs per stage (weir.GivenCosts as textproto). Returns
// NotFound if the file does not exist, and InvalidArgument with all problems.
absl::StatusOr<GivenCosts> LoadCosts(const std::string& path);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_SCENARIO_H_
