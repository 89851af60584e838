// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/worker_speeds.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantiles.h"

namespace weir::plan {

std::vector<SlowWorker> SlowWorkersOf(const results::RecordedRun& run) {
  if (run.num_replicas < 2) return {};
  // (kind, stage, replica): the rank and the times.
  using Key = std::tuple<results::RecordedKind, int32_t, int32_t>;
  std::map<Key, std::pair<int32_t, std::vector<double>>> seconds;
  for (const results::RecordedOperation& o : run.operations) {
    if (!results::IsPass(o.kind)) continue;
    auto& [rank, times] = seconds[{o.kind, o.stage, o.replica}];
    rank = o.rank;
    times.push_back(o.seconds());
  }
  std::map<std::pair<results::RecordedKind, int32_t>,
           std::vector<std::tuple<int32_t, int32_t, double>>>
      medians;  // (replica, rank, median) by kind and stage
  for (auto& [key, of] : seconds) {
    const auto& [kind, stage, replica] = key;
    medians[{kind, stage}].push_back(
        {replica, of.first, Median(std::move(of.second))});
  }
  std::map<std::pair<int32_t, int32_t>, std::vector<double>> speeds;
  for (const auto& [key, workers] : medians) {
    for (const auto& [replica, rank, own] : workers) {
      std::vector<double> others;
      for (const auto& [other, other_rank, median] : workers) {
        if (other != replica) others.push_back(median);
      }
      if (others.empty() || !(own > 0)) continue;
      speeds[{replica, rank}].push_back(Median(std::move(others)) / own);
    }
  }
  std::vector<SlowWorker> slow;
  for (auto& [worker, of] : speeds) {
    const double speed = Median(std::move(of));
    if (speed > 0 && speed < kSlowWorkerSpeed) {
      slow.push_back({worker.first, worker.second, speed});
    }
  }
  std::sort(slow.begin(), slow.end(),
            [](const SlowWorker& a, const SlowWorker& b) {
              return std::tie(a.speed, a.rank, a.replica) <
                     std::tie(b.speed, b.rank, b.replica);
            });
  return slow;
}

std::string SlowFlag(const std::vector<SlowWorker>& workers, int num_replicas,
                     int tensor) {
  std::vector<std::string> parts;
  for (const SlowWorker& worker : workers) {
    for (int t = 0; t < tensor; ++t) {
      const int gpu =
          (worker.rank * num_replicas + worker.replica) * tensor + t;
      parts.push_back(absl::StrFormat("gpu%d=%.3g", gpu, worker.speed));
    }
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace weir::plan
