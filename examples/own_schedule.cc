// SPDX-License-Identifier: Apache-2.0
// Adds a schedule that weir does not have: GPipe in two halves, each of which
// runs its forwards and then its backwards. It needs half of GPipe's memory for
// activations and has twice its bubble.
#include <weir/weir.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace api = weir::api;

namespace {

api::Schedule GenerateHalves(const api::ScheduleShape& shape) {
  if (shape.num_chunks != 1 || shape.num_microbatches % 2 != 0) {
    throw std::invalid_argument(
        "expected one chunk and an even number of microbatches");
  }
  const int half = shape.num_microbatches / 2;
  api::Schedule schedule;
  for (int rank = 0; rank < shape.num_ranks; ++rank) {
    schedule.stage_ranks.push_back(rank);
    std::vector<api::Pass>& passes = schedule.rank_passes.emplace_back();
    for (int begin : {0, half}) {
      for (int i = begin; i < begin + half; ++i) {
        passes.push_back({api::Op::kForward, rank, i});
      }
      for (int i = begin + half - 1; i >= begin; --i) {
        passes.push_back({api::Op::kBackward, rank, i});
      }
    }
  }
  return schedule;
}

double StepSeconds(const char* schedule, int num_ranks, int num_microbatches) {
  const auto costs = [](const api::StageOfPipeline&) {
    return api::StageCosts{.forward_seconds = 1,
                           .backward_input_seconds = 1,
                           .backward_weight_seconds = 1};
  };
  const auto scenario =
      api::Scenario::FromCosts({.num_ranks = num_ranks,
                                .num_microbatches = num_microbatches,
                                .schedule = schedule},
                               costs);
  const double seconds = api::Simulate(scenario).step_seconds;
  const double estimate = api::Estimate(scenario).step_seconds;
  if (estimate < seconds * (1 - 1e-9) || estimate > seconds * (1 + 1e-9)) {
    throw std::runtime_error("the fast estimate differs");
  }
  return seconds;
}

}  // namespace

int main() {
  try {
    api::RegisterSchedule("halves", "two GPipes of half a batch",
                          /*splits_backward=*/false, GenerateHalves);
    const int ranks = 4, microbatches = 8;
    const double gpipe = StepSeconds("gpipe", ranks, microbatches);
    const double halves = StepSeconds("halves", ranks, microbatches);
    std::printf("gpipe %.0f s, halves %.0f s\n", gpipe, halves);
    // m microbatches of 1 + 2 s, and a bubble of p - 1 of them per batch.
    const double pass = 3;
    const bool expected = gpipe == (microbatches + ranks - 1) * pass &&
                          halves == (microbatches + 2 * (ranks - 1)) * pass;

    // weir checks what a generator returns.
    try {
      StepSeconds("halves", ranks, 7);
      return 1;
    } catch (const api::Error& error) {
      std::printf("%s\n", error.what());
    }
    return expected ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
