// SPDX-License-Identifier: Apache-2.0
// Embeds the simulator: which number of pipeline ranks is fastest for a model,
// among those that fit in memory?
#include <weir/weir.h>

#include <cstdio>
#include <string>

namespace api = weir::api;

int main() {
  try {
    api::Scenario scenario = api::Scenario::Load("llama-3-70b-64-h100");
    int fastest = 0;
    double least_seconds = 0;
    for (int ranks : {4, 8, 16}) {
      scenario.Set("parallelism { pipeline: " + std::to_string(ranks) +
                   " data: " + std::to_string(16 / ranks) + " }");
      const api::FastEstimate estimate = api::Estimate(scenario);
      std::printf("%2d ranks: %5.2f s%s\n", ranks, estimate.step_seconds,
                  estimate.fits_memory ? "" : ", does not fit");
      if (estimate.fits_memory &&
          (fastest == 0 || estimate.step_seconds < least_seconds)) {
        fastest = ranks;
        least_seconds = estimate.step_seconds;
      }
    }
    if (fastest == 0) {
      std::printf("nothing fits\n");
      return 1;
    }
    scenario.Set("parallelism { pipeline: " + std::to_string(fastest) +
                 " data: " + std::to_string(16 / fastest) + " }");
    const api::Result result = api::Simulate(scenario);
    std::printf("%d ranks: %.2f s (%.2f to %.2f s), %.1f GiB of %.1f GiB\n",
                fastest, result.step_seconds, result.step_seconds_low,
                result.step_seconds_high, result.peak_memory_bytes / (1 << 30),
                result.memory_capacity_bytes / (1 << 30));
    std::printf("compute %.2f s, bubble %.2f s\n%s\n",
                result.breakdown.compute_seconds,
                result.breakdown.bubble_seconds, result.limit.c_str());

    scenario.Set("parallelism { tensor: 7 }");
    api::Simulate(scenario);
    std::printf("a tensor parallelism of 7 was accepted\n");
    return 1;
  } catch (const api::Error& error) {
    for (const api::Problem& problem : error.problems()) {
      std::printf(
          "%s: %s\n",
          error.kind() == api::Error::Kind::kInvalidInput ? "input" : "error",
          problem.message.c_str());
    }
    return error.kind() == api::Error::Kind::kInvalidInput ? 0 : 1;
  }
}
