// SPDX-License-Identifier: Apache-2.0
// Loading, checking and resolving scenarios.
#ifndef WEIR_SCENARIOS_SCENARIO_H_
#define WEIR_SCENARIOS_SCENARIO_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/runtime.pb.h"
#include "models/model.pb.h"
#include "scenarios/cluster.pb.h"
#include "scenarios/placement.h"
#include "scenarios/scenario.pb.h"

namespace weir {

// Loads a preset or a textproto; syntax only, see ResolveScenario.
absl::StatusOr<Scenario> LoadScenario(const std::string& name_or_path);

// A scenario with everything it names loaded, every default filled in and
// every check done: what the simulator takes.
struct ResolvedScenario {
  std::string label;  // file or "command line", for messages
  Scenario scenario;  // defaults filled in
  bool textbook = false;

  // Absent in textbook mode.
  Model model;
  Cluster cluster;
  DeviceProfile device;
  // A cluster of unlike GPUs: the devices beyond `device`, and which of them
  // each GPU of the cluster is, 0 being `device`. Empty where all are alike.
  std::vector<DeviceProfile> other_devices;
  std::vector<int> gpu_device;
  Runtime runtime;

  Placement placement;
  int num_microbatches = 0;  // per batch and pipeline
  // What speaks against the profiles here.
  std::vector<std::string> warnings;
};

// Loads and checks; all problems of the scenario come back together, each with
// its field. A global batch that microbatches x replicas do not divide, a
// cluster that is too small, tensor parallelism that does not divide the heads
// are found here; what a schedule demands is found by its generator.
absl::StatusOr<ResolvedScenario> ResolveScenario(absl::string_view label,
                                                 const Scenario& scenario);

// The same for a scenario that names the same model, cluster, profile and
// runtime as `resolved`, whose files are not read again: for planners, which
// ask thousands of times. After an error `resolved` is good for further calls
// only. REQUIRES: no textbook, no schedule file.
absl::Status ResolveAgain(const Scenario& scenario, ResolvedScenario* resolved);

// Parses --costs "f=1,i=1,w=1,c=0" or "f=1,b=2". Keys: f forward, b backward or
// its parts i (input) and w (weight), c one hop, o a forward beside a backward,
// h one way to the host, p one prediction of weights, z one compression. A
// value may be a list, one entry per stage: "f=1/1/2,b=2".
absl::StatusOr<TextbookCosts> ParseCosts(absl::string_view text);

// Loads a per-stage table (weir.TextbookCosts as textproto).
absl::StatusOr<TextbookCosts> LoadCosts(const std::string& path);

}  // namespace weir

#endif  // WEIR_SCENARIOS_SCENARIO_H_
