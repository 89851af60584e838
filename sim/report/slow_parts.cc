// SPDX-License-Identifier: Apache-2.0
#include "sim/report/slow_parts.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sim/report/critical_path.h"

namespace weir::sim {
namespace {

constexpr size_t kMostParts = 10;

// What the tasks of the critical path use.
struct CriticalParts {
  std::set<int> gpus;  // of the cluster
  std::set<std::string> links;
};

// Returns the GPU of the graph that owns the task; `first` are the first tasks
// of each GPU. Requires: one of them owns it.
int OwnerOf(const std::vector<int32_t>& first, int32_t task) {
  return static_cast<int>(std::upper_bound(first.begin(), first.end(), task) -
                          first.begin() - 1);
}

CriticalParts PartsOf(const PipelineInputs& inputs, const PipelineGraph& graph,
                      const std::vector<int32_t>& tasks) {
  CriticalParts parts;
  for (const int32_t task : tasks) {
    if (!graph.tasks.is_timer(task)) {
      const GpuPair& pair = graph.tasks.pairs[graph.tasks.pair(task)];
      for (const int32_t link : pair.route.links) {
        parts.links.insert(inputs.links()[link].name);
      }
    } else if (task < graph.ranges.end_of_actions) {
      const int gpu = OwnerOf(graph.passes.first_action, task);
      parts.gpus.insert(inputs.placement().gpus[gpu]);
    }
  }
  return parts;
}

std::string NameOf(const SlowPart& part) {
  if (part.has_all_gpus()) return "gpus";
  if (part.has_gpu()) return absl::StrCat("gpu", part.gpu());
  return part.has_link() ? part.link() : absl::StrCat("leaf", part.leaf());
}

bool IsCritical(const SlowPart& part, const CriticalParts& critical) {
  if (part.has_all_gpus()) return !critical.gpus.empty();
  if (part.has_gpu()) {
    return critical.gpus.contains(static_cast<int>(part.gpu()));
  }
  // "node3.nic2" is both directions, "node3.nic2.tx" one; "rail0.leaf2.up" is
  // an uplink of "leaf2".
  const std::string name = absl::StrCat(".", NameOf(part), ".");
  return std::any_of(critical.links.begin(), critical.links.end(),
                     [&](const std::string& link) {
                       return absl::StrContains(absl::StrCat(".", link, "."),
                                                name);
                     });
}

}  // namespace

std::string DescribeSlowParts(const Cluster& cluster,
                              const PipelineInputs& inputs,
                              const PipelineGraph& graph,
                              const Recording& recording,
                              const Window& window) {
  if (cluster.slow().empty()) return "";
  const CriticalParts critical =
      PartsOf(inputs, graph, CriticalTasks(graph, recording, window));
  std::vector<std::string> on_path, others;
  for (const SlowPart& part : cluster.slow()) {
    const bool is_critical = IsCritical(part, critical);
    (is_critical ? on_path : others)
        .push_back(absl::StrCat(NameOf(part), " x", part.speed(),
                                is_critical ? " (on the critical path)" : ""));
  }
  on_path.insert(on_path.end(), others.begin(), others.end());
  const size_t num_parts = on_path.size();
  on_path.resize(std::min(num_parts, kMostParts));
  return absl::StrCat(
      "slow: ", absl::StrJoin(on_path, ", "),
      num_parts > kMostParts
          ? absl::StrCat(", and ", num_parts - kMostParts, " more")
          : "");
}

}  // namespace weir::sim
