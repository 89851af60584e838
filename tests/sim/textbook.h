// SPDX-License-Identifier: Apache-2.0
// Textbook scenarios for tests, given by numbers.
#ifndef WEIR_TESTS_SIM_TEXTBOOK_H_
#define WEIR_TESTS_SIM_TEXTBOOK_H_

#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace weir::sim {

struct Textbook {
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

inline void FillStage(const Textbook& textbook, size_t s,
                      TextbookCosts::Stage* stage) {
  const auto given = [&](const std::vector<double>& seconds) {
    return seconds.empty() ? 0 : seconds[s];
  };
  stage->set_forward_seconds(textbook.forward_seconds[s]);
  if (textbook.weight_gradient_seconds.empty()) {
    stage->set_backward_seconds(textbook.backward_seconds[s]);
  } else {
    stage->set_backward_input_seconds(textbook.backward_seconds[s] -
                                      textbook.weight_gradient_seconds[s]);
    stage->set_backward_weight_seconds(textbook.weight_gradient_seconds[s]);
  }
  if (!textbook.overlapped_seconds.empty()) {
    stage->set_overlapped_seconds(textbook.overlapped_seconds[s]);
  }
  stage->set_offload_seconds(given(textbook.offload_seconds));
  stage->set_prediction_seconds(given(textbook.prediction_seconds));
  stage->set_codec_seconds(given(textbook.codec_seconds));
}

inline scenarios::ResolvedScenario Resolve(const Textbook& textbook) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "test";
  resolved.textbook = true;
  resolved.num_microbatches = textbook.num_microbatches;
  resolved.placement.pipeline = textbook.num_ranks;
  for (int rank = 0; rank < textbook.num_ranks; ++rank) {
    resolved.placement.gpus.push_back(rank);
  }
  Scenario& scenario = resolved.scenario;
  scenario.set_schedule(textbook.schedule);
  scenario.mutable_parallelism()->set_pipeline(textbook.num_ranks);
  scenario.mutable_parallelism()->set_chunks(textbook.num_chunks);
  scenario.set_num_batches(textbook.num_batches);
  scenario.mutable_communication()->set_transfers(
      textbook.blocking ? BLOCKING : OVERLAPPED);
  scenario.mutable_textbook()->set_hop_seconds(textbook.hop_seconds);
  for (size_t s = 0; s < textbook.forward_seconds.size(); ++s) {
    FillStage(textbook, s, scenario.mutable_textbook()->add_stages());
  }
  return resolved;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_TEXTBOOK_H_
