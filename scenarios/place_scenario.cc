// SPDX-License-Identifier: Apache-2.0
#include "scenarios/place_scenario.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios {

absl::Status CheckNumGpus(const std::string& label,
                          const Parallelism& parallelism,
                          const Cluster& cluster) {
  const double context = Degree(parallelism.context());
  const double needed = context * parallelism.tensor() * parallelism.data() *
                        parallelism.pipeline();
  const int available = NumGpus(cluster);
  if (needed <= available) return absl::OkStatus();
  std::string hint;
  if (cluster.groups_size() == 1) {
    hint = absl::StrFormat(
        "; --nodes %.0f has enough",
        std::ceil(needed / std::max(cluster.groups(0).node().num_gpus(), 1u)));
  }
  const auto group =
      static_cast<int>(context * parallelism.tensor() * parallelism.pipeline());
  if (const int most = available / std::max(group, 1); most > 0) {
    absl::StrAppend(&hint, hint.empty() ? "; " : ", ", "--dp ", most, " uses ",
                    most * group);
  }
  const std::string and_context =
      context > 1 ? absl::StrFormat(" x parallelism.context %.0f", context)
                  : "";
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: parallelism.tensor %d x parallelism.pipeline %d x parallelism.data "
      "%d%s needs %.0f GPUs, but the cluster has %d%s",
      label, parallelism.tensor(), parallelism.pipeline(), parallelism.data(),
      and_context, needed, available, hint));
}

absl::StatusOr<Placement> MakePlacement(const std::string& label,
                                        const Parallelism& parallelism,
                                        int num_gpus_available) {
  const std::string where = absl::StrCat(label, ": parallelism");
  const int tensor = static_cast<int>(parallelism.tensor());
  // The ranks that share a sequence are neighbors among the replicas.
  const double replicas = parallelism.data() * Degree(parallelism.context());
  const int data = static_cast<int>(std::min(replicas, 1.0 * kMaxGpus + 1));
  const int pipeline = static_cast<int>(parallelism.pipeline());
  if (parallelism.gpus().empty()) {
    return PlaceInOrder(where, parallelism.order(), tensor, data, pipeline,
                        num_gpus_available);
  }
  const std::vector<int> gpus(parallelism.gpus().begin(),
                              parallelism.gpus().end());
  return PlaceAsGiven(where, gpus, tensor, data, pipeline, num_gpus_available);
}

}  // namespace weir::scenarios
