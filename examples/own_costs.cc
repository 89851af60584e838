// SPDX-License-Identifier: Apache-2.0
// Uses a cost model of its own: a roofline of transformer blocks on an
// accelerator that weir does not know, and compares schedules with it.
#include <weir/weir.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace api = weir::api;

namespace {

struct Accelerator {
  double flops_per_second = 250e12;
  double bytes_per_second = 1.2e12;
};

struct Model {
  int num_blocks = 32;
  double hidden = 4096;
  double tokens = 4096;  // of a microbatch
  double vocabulary = 128e3;
};

// Time of a matrix product of m x k and k x n in 16 bits: limited by FLOP or by
// memory traffic.
double GemmSeconds(const Accelerator& device, double m, double n, double k) {
  return std::max(2 * m * n * k / device.flops_per_second,
                  2 * (m * n + m * k + k * n) / device.bytes_per_second);
}

api::CostModel Roofline(const Accelerator& device, const Model& model) {
  return [device, model](const api::StageOfPipeline& stage) {
    const int blocks = model.num_blocks / stage.num_stages;
    const double t = model.tokens, h = model.hidden;
    // Attention's projections (4 h^2), feed-forward (8 h^2).
    double seconds = blocks * (4 * GemmSeconds(device, t, h, h) +
                               GemmSeconds(device, t, 4 * h, h) +
                               GemmSeconds(device, t, h, 4 * h));
    if (stage.stage == stage.num_stages - 1) {
      seconds += GemmSeconds(device, t, model.vocabulary, h);
    }
    return api::StageCosts{.forward_seconds = seconds,
                           .backward_input_seconds = seconds,
                           .backward_weight_seconds = seconds,
                           .activation_bytes = 34 * t * h * blocks};
  };
}

}  // namespace

int main() {
  try {
    double first_seconds = 0, last_seconds = 0;
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "zb-v"}) {
      const bool two_stages = std::string(schedule) == "zb-v";
      const auto scenario =
          api::Scenario::FromCosts({.num_ranks = 8,
                                    .num_chunks = two_stages ? 2 : 1,
                                    .num_microbatches = 32,
                                    .hop_seconds = 50e-6,
                                    .schedule = schedule},
                                   Roofline({}, {}));
      const api::Result result = api::Simulate(scenario);
      std::printf("%-6s %6.1f ms, idle %4.1f %%\n", schedule,
                  1e3 * result.step_seconds, 100 * result.idle_ratio);
      if (first_seconds == 0) first_seconds = result.step_seconds;
      last_seconds = result.step_seconds;
    }
    return last_seconds < first_seconds ? 0 : 1;
  } catch (const api::Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
