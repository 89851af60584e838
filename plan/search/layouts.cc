// SPDX-License-Identifier: Apache-2.0
#include "plan/search/layouts.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "scenarios/cluster/cluster.h"

namespace weir::plan {
namespace {

std::vector<int> UpTo(int number) {
  std::vector<int> all;
  for (int i = 1; i <= number; ++i) all.push_back(i);
  return all;
}

// Returns the GPUs of the smallest node, so that a tensor group fits into any.
int GpusOfNode(const Cluster& cluster) {
  int fewest = scenarios::NumGpus(cluster);
  for (const NodeGroup& group : cluster.groups()) {
    fewest = std::min(fewest, static_cast<int>(group.node().num_gpus()));
  }
  return std::max(fewest, 1);
}

int MostStages(const Model& model) {
  return model.has_transformer()
             ? static_cast<int>(model.transformer().num_layers()) + 2
             : model.measured().layers_size();
}

}  // namespace

std::vector<int> Sorted(const google::protobuf::RepeatedField<uint32_t>& list) {
  const std::set<int> values(list.begin(), list.end());
  return {values.begin(), values.end()};
}

std::vector<Layout> LayoutsOf(const PlanSpace& space,
                              const scenarios::ResolvedScenario& base) {
  const int available = scenarios::NumGpus(base.cluster);
  const std::vector<int> gpus = Sorted(space.gpus());
  const std::vector<int> data = Sorted(space.data());
  const bool any_number = gpus.empty() && !data.empty();
  std::vector<int> tensors = Sorted(space.tensor());
  if (tensors.empty()) {
    tensors = base.model.has_measured() ? std::vector<int>{1}
                                        : UpTo(GpusOfNode(base.cluster));
  }
  std::vector<int> pipelines = Sorted(space.pipeline());
  if (pipelines.empty()) {
    pipelines = UpTo(std::min(available, MostStages(base.model)));
  }
  std::vector<Layout> layouts;
  for (const int tensor : tensors) {
    for (const int pipeline : pipelines) {
      const double group = 1.0 * tensor * pipeline;
      if (group > available) continue;
      const int each = tensor * pipeline;
      if (any_number) {
        for (const int replicas : data) {
          if (group * replicas > available) continue;
          layouts.push_back({tensor, pipeline, replicas});
        }
        continue;
      }
      for (const int number :
           gpus.empty() ? std::vector<int>{available} : gpus) {
        if (number % each != 0) continue;
        const int replicas = number / each;
        if (!data.empty() &&
            std::find(data.begin(), data.end(), replicas) == data.end()) {
          continue;
        }
        layouts.push_back({tensor, pipeline, replicas});
      }
    }
  }
  std::stable_sort(
      layouts.begin(), layouts.end(), [](const Layout& a, const Layout& b) {
        return a.tensor * a.pipeline * a.data < b.tensor * b.pipeline * b.data;
      });
  return layouts;
}

absl::Status CheckGpus(const std::string& label, const PlanSpace& space,
                       const scenarios::ResolvedScenario& base) {
  const int available = scenarios::NumGpus(base.cluster);
  Problems problems(label);
  for (const uint32_t gpus : space.gpus()) {
    if (gpus <= static_cast<uint32_t>(available)) continue;
    problems.Add(
        "space.gpus",
        absl::StrCat("is ", gpus, ", expected at most the cluster's ",
                     available, " GPUs (--nodes sets the number of nodes)"));
  }
  if (!problems.empty()) return problems.ToStatus();
  if (!LayoutsOf(space, base).empty()) return absl::OkStatus();
  std::string numbers = absl::StrCat(available);
  if (!space.gpus().empty()) numbers = absl::StrJoin(space.gpus(), ", ");
  problems.Add(
      "space",
      absl::StrCat("allows no tensor x pipeline x data with ",
                   space.gpus().empty() && !space.data().empty()
                       ? absl::StrCat("at most ", available)
                       : numbers,
                   " GPUs; change --tp, --pp or --dp, or give --gpus"));
  return problems.ToStatus();
}

}  // namespace weir::plan
