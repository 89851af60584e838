// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_size.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/papers/spp.h"
#include "plan/search/space.h"
#include "scenarios/cluster/cluster.h"

namespace weir::plan {
namespace {

// Per step of a planner's innermost loop, and per state that it stores, rounded
// up.
constexpr double kSecondsPerStep = 1e-8;
constexpr double kBytesPerState = 64;
// Per pair of devices: the route lookup for the bandwidth and copies of the
// result.
constexpr double kSecondsPerPair = 1e-6, kBytesPerPair = 32;

// The most stages that planners for many devices consider (dapple.h, spp.h).
constexpr double kMostStages = 16;

double NumDivisors(double number) {
  const auto n = static_cast<int64_t>(number);
  int count = 0;
  for (int64_t i = 1; i * i <= n; ++i) {
    if (n % i == 0) count += i * i == n ? 1 : 2;
  }
  return count;
}

struct Steps {
  double count = 0, states = 0;
};

Steps StepsOf(absl::string_view planner, const PlannerSize& size) {
  const double layers = size.num_layers, devices = size.num_devices;
  const double stages = std::min(layers, devices);
  const double few = std::min(stages, kMostStages);
  if (planner == "pipedream") {
    // The worst case of two levels: the lower one has all devices.
    const double machines = std::min(devices, 64.0);
    return {machines * machines * layers * layers * layers / 12,
            machines * layers * layers / 8};
  }
  if (planner == "dapple") {
    const double units = std::min(devices, kMostStages);
    return {layers * layers * units * units * few, layers * units * few};
  }
  if (planner == "spp") {
    const double replicas = std::min(devices, std::log2(devices) + 16);
    const double executed =
        std::min<double>(size.num_microbatches, kMostExecuted);
    return {
        layers * layers * few * replicas * replicas + 60 * few * few * executed,
        layers * few * devices + few * executed};
  }
  if (planner == "bapipe") {
    return {NumDivisors(devices) * layers * layers * stages,
            layers * stages + devices};
  }
  if (planner == "dawnpiper") {
    return {layers * layers * layers * few, layers * layers * few};
  }
  // The other planners try every number of stages, or limit their states
  // themselves (device_chain.h).
  return {NumDivisors(devices) * layers * stages, layers * layers};
}

}  // namespace

PlannerSize PlannerSizeOf(const scenarios::ResolvedScenario& given) {
  PlannerSize size;
  size.num_layers = NumBlocks(given.model) + 2.0;
  const int listed = given.scenario.parallelism().gpus_size();
  const double num_gpus =
      listed > 0 ? listed : scenarios::NumGpus(given.cluster);
  size.num_devices = std::max(num_gpus / given.placement.tensor, 1.0);
  const Batch& batch = given.scenario.batch();
  size.num_microbatches =
      std::max(1.0 * batch.global_batch_size() /
                   std::max<double>(batch.microbatch_size(), 1),
               1.0);
  return size;
}

SizeEstimate EstimatePlanner(absl::string_view planner,
                             const PlannerSize& size) {
  const Steps steps = StepsOf(planner, size);
  const double pairs = size.num_devices * size.num_devices;
  return SizeEstimate{steps.states * kBytesPerState,
                      steps.count * kSecondsPerStep} +
         SizeEstimate{pairs * kBytesPerPair, pairs * kSecondsPerPair};
}

absl::Status CheckPlannerSize(absl::string_view planner,
                              const scenarios::ResolvedScenario& given) {
  const PlannerSize size = PlannerSizeOf(given);
  return CheckSize(
      absl::StrCat(given.label, ": ", planner),
      absl::StrFormat("%.0f layers, %.0f devices and %.0f microbatches",
                      size.num_layers, size.num_devices, size.num_microbatches),
      EstimatePlanner(planner, size),
      "fewer devices (--gpus, larger --tp), or fewer microbatches (larger "
      "--mbs)");
}

}  // namespace weir::plan
