// SPDX-License-Identifier: Apache-2.0
#include "sim/report/limit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/units.h"

namespace weir::sim {
namespace {

std::string StagesOf(const schedules::Schedule& schedule, int rank) {
  const std::vector<int> stages = schedule.StagesOf(rank);
  return absl::StrCat(stages.size() == 1 ? "stage " : "stages ",
                      absl::StrJoin(stages, ", "));
}

}  // namespace

int BusiestGpu(const std::vector<GpuTimes>& times) {
  const auto busiest = std::max_element(
      times.begin(), times.end(), [](const GpuTimes& a, const GpuTimes& b) {
        return a.busy_seconds < b.busy_seconds;
      });
  return static_cast<int>(busiest - times.begin());
}

std::string DescribeLimit(const PipelineInputs& inputs,
                          const PipelineGraph& graph, const Window& window,
                          const std::vector<GpuTimes>& times) {
  const double seconds = window.end_seconds - window.begin_seconds;
  if (!(seconds > 0)) return "none: the batch takes no time";
  double mean_busy = 0;
  for (const GpuTimes& one : times)
    mean_busy += one.busy_seconds / times.size();
  const int busiest = BusiestGpu(times);
  const GpuTimes& time = times[busiest];
  const double idle = seconds - time.busy_seconds;
  const double compute = time.busy_seconds - time.tensor_collective_seconds -
                         time.expert_exchange_seconds -
                         time.context_exchange_seconds - time.optimizer_seconds;
  std::array<std::pair<double, std::string>, 9> parts = {{
      {compute, "computing"},
      {time.tensor_collective_seconds, "in tensor-parallel collectives"},
      {time.expert_exchange_seconds, "exchanging tokens between experts"},
      {time.context_exchange_seconds, "exchanging keys and values"},
      {time.optimizer_seconds, "in optimizer steps"},
      {time.exposed_transfer_seconds, "waiting for stage transfers"},
      {time.exposed_reduction_seconds, "waiting for gradient all-reduces"},
      {time.exposed_gather_seconds, "waiting for sharded weights"},
      {idle - time.exposed_transfer_seconds - time.exposed_reduction_seconds -
           time.exposed_gather_seconds,
       "idle in the pipeline bubble"},
  }};
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  const int rank = graph.rank_of(busiest);
  std::string text = absl::StrCat("busiest rank ", rank, " (",
                                  StagesOf(inputs.schedule, rank), ") is ");
  for (size_t i = 0; i < parts.size(); ++i) {
    // Parts below half a percent explain nothing.
    if (i > 0 && parts[i].first < 0.005 * seconds) break;
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    FormatPercent(parts[i].first / seconds), " ",
                    parts[i].second);
  }
  if (mean_busy < 0.95 * time.busy_seconds) {
    absl::StrAppend(&text, "; stages are uneven: ranks are busy ",
                    FormatPercent(mean_busy / seconds),
                    " of the time on average, this one ",
                    FormatPercent(time.busy_seconds / seconds));
  }
  return text;
}

}  // namespace weir::sim
