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

std::vector<int> ContextSizes(const scenarios::ResolvedScenario& base) {
  std::vector<int> sizes = {1};
  const uint32_t tokens = base.scenario.batch().sequence_length();
  if (base.model.has_measured()) return sizes;
  for (int size = 2; size <= kMostContext; size *= 2) {
    if (tokens % (2 * size) != 0 || tokens / size < kFewestContextTokens) break;
    sizes.push_back(size);
  }
  return sizes;
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
  std::vector<int> contexts = Sorted(space.context());
  if (contexts.empty()) contexts = ContextSizes(base);
  std::vector<Layout> layouts;
  // Adds the layouts whose groups of replicas have this size.
  const auto add = [&](const Layout& one) {
    const double group = 1.0 * one.tensor * one.pipeline * one.context;
    if (group > available) return;
    const int each = one.tensor * one.pipeline * one.context;
    const auto push = [&](int replicas) {
      layouts.push_back({one.tensor, one.pipeline, replicas, one.context});
    };
    if (any_number) {
      for (const int replicas : data) {
        if (group * replicas <= available) push(replicas);
      }
      return;
    }
    for (const int number : gpus.empty() ? std::vector<int>{available} : gpus) {
      if (number % each != 0) continue;
      const int replicas = number / each;
      if (data.empty() ||
          std::find(data.begin(), data.end(), replicas) != data.end()) {
        push(replicas);
      }
    }
  };
  for (const int tensor : tensors) {
    for (const int pipeline : pipelines) {
      for (const int context : contexts) add({tensor, pipeline, 1, context});
    }
  }
  const auto gpus_of = [](const Layout& layout) {
    return layout.tensor * layout.pipeline * layout.data * layout.context;
  };
  std::stable_sort(layouts.begin(), layouts.end(),
                   [&](const Layout& a, const Layout& b) {
                     return gpus_of(a) < gpus_of(b);
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
      absl::StrCat("allows no tensor x pipeline ",
                   space.context().empty() ? "" : "x context ", "x data with ",
                   space.gpus().empty() && !space.data().empty()
                       ? absl::StrCat("at most ", available)
                       : numbers,
                   " GPUs; change --tp, --pp",
                   space.context().empty() ? "" : ", --cp",
                   " or --dp, or give --gpus"));
  return problems.ToStatus();
}

}  // namespace weir::plan
