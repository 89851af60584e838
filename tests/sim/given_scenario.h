// SPDX-License-Identifier: Apache-2.0
// Scenarios with given costs for tests.
#ifndef WEIR_TESTS_SIM_GIVEN_SCENARIO_H_
#define WEIR_TESTS_SIM_GIVEN_SCENARIO_H_

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace weir::sim {

struct GivenScenario {
  std::string schedule = "gpipe";
  int num_ranks = 4;
  int num_microbatches = 8;
  int num_chunks = 1;
  int num_batches = 0;  // 0: until steady
  // Seconds. One entry for all stages or one per stage; all non-empty vectors
  // have equal length.
  std::vector<double> forward_seconds = {1};
  std::vector<double> backward_seconds = {2};
  // Part of the backward. If empty, the backward is not split.
  std::vector<double> weight_gradient_seconds = {};
  // If empty: not given.
  std::vector<double> overlapped_seconds = {}, offload_seconds = {},
                      prediction_seconds = {}, codec_seconds = {};
  double hop_seconds = 0;
  bool blocking = false;
};

inline void FillStage(const GivenScenario& given, size_t s,
                      GivenCosts::Stage* stage) {
  const auto value_of = [&](const std::vector<double>& seconds) {
    return seconds.empty() ? 0 : seconds[s];
  };
  stage->set_forward_seconds(given.forward_seconds[s]);
  if (given.weight_gradient_seconds.empty()) {
    stage->set_backward_seconds(given.backward_seconds[s]);
  } else {
    stage->set_backward_input_seconds(given.backward_seconds[s] -
                                      given.weight_gradient_seconds[s]);
    stage->set_backward_weight_seconds(given.weight_gradient_seconds[s]);
  }
  if (!given.overlapped_seconds.empty()) {
    stage->set_overlapped_seconds(given.overlapped_seconds[s]);
  }
  stage->set_offload_seconds(value_of(given.offload_seconds));
  stage->set_prediction_seconds(value_of(given.prediction_seconds));
  stage->set_codec_seconds(value_of(given.codec_seconds));
}

inline scenarios::ResolvedScenario Resolve(const GivenScenario& given) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "test";
  resolved.given_costs = true;
  resolved.num_microbatches = given.num_microbatches;
  resolved.placement.pipeline = given.num_ranks;
  for (int rank = 0; rank < given.num_ranks; ++rank) {
    resolved.placement.gpus.push_back(rank);
  }
  Scenario& scenario = resolved.scenario;
  scenario.set_schedule(given.schedule);
  scenario.mutable_parallelism()->set_pipeline(given.num_ranks);
  scenario.mutable_parallelism()->set_chunks(given.num_chunks);
  scenario.set_num_batches(given.num_batches);
  scenario.mutable_communication()->set_transfers(given.blocking ? BLOCKING
                                                                 : OVERLAPPED);
  scenario.mutable_costs()->set_hop_seconds(given.hop_seconds);
  for (size_t s = 0; s < given.forward_seconds.size(); ++s) {
    FillStage(given, s, scenario.mutable_costs()->add_stages());
  }
  return resolved;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_GIVEN_SCENARIO_H_
