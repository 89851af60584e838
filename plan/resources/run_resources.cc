// SPDX-License-Identifier: Apache-2.0
#include "plan/resources/run_resources.h"

#include "base/textproto.h"
#include "results/validate.h"
#include "scenarios/scenario.h"
#include "sim/kernel_list.h"

namespace weir::plan {
namespace {

using results::RunResources;

void AddKernels(const scenarios::ResolvedScenario& scenario,
                RunResources* resources) {
  const auto list = sim::ListKernels(scenario);
  if (!list.ok()) return;  // given or measured times
  resources->device = list->device;
  for (const auto& [format, rate] : list->peak_flops) {
    resources->peaks.push_back({format, rate});
  }
  resources->memory_bytes_per_second = list->memory_bytes_per_second;
  for (const sim::ListedKernel& kernel : list->kernels) {
    resources->kernels.push_back({kernel.part, kernel.flops, kernel.bytes,
                                  kernel.seconds, kernel.count});
  }
}

void AddSharedLinks(const Result& result, RunResources* resources) {
  const LinkUse& shared = result.link_use();
  if (!results::ValidateTimeline("", result).ok()) return;
  for (const LinkUse::Link& link : shared.links()) {
    resources->links.push_back(
        {link.name(),
         link.bytes_per_second(),
         link.num_pairs(),
         link.transfer_bytes(),
         link.collective_bytes(),
         link.host_bytes(),
         {link.utilization().begin(), link.utilization().end()}});
  }
  resources->from_seconds = result.timeline().from_seconds();
  resources->interval_seconds = shared.interval_seconds();
  resources->num_links_left_out = shared.num_left_out();
}

}  // namespace

RunResources ResourcesOf(const Result& result) {
  RunResources resources;
  AddSharedLinks(result, &resources);
  Scenario scenario;
  SilenceProtobuf();
  if (result.provenance().scenario().empty() || result.has_replay() ||
      !ParseTextProto("", result.provenance().scenario(), &scenario).ok()) {
    return resources;
  }
  const auto resolved = scenarios::ResolveScenario("", scenario);
  if (!resolved.ok()) return resources;
  AddKernels(*resolved, &resources);
  return resources;
}

}  // namespace weir::plan
