// SPDX-License-Identifier: Apache-2.0
// Every kind of schedule, with different shapes, models and optimizers.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTION_CASES_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTION_CASES_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate {

// Returns every name of the registry with each of its options. A test checks
// that none is missing.
inline std::vector<std::string> ExecutionNames() {
  std::vector<std::string> names;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    names.emplace_back(kind.name);
  }
  for (const char* name : {"gpipe:backward-order=forward",
                           "1f1b:ahead=1",
                           "breadth-first:backward-order=forward",
                           "dapple-pa:memory-limit=2",
                           "chimera:pipelines=4",
                           "chimera:concatenation=forward-doubling",
                           "chimera:concatenation=backward-halving",
                           "2bp-naive:concatenate=yes",
                           "2bp-naive:backward-p2=end",
                           "2bp-gpipe:concatenate=yes",
                           "2bp-1f1b-1:concatenate=yes",
                           "2bp-1f1b-1:backward-p2=end",
                           "2bp-1f1b-2:concatenate=yes",
                           "2bp-1f1b-2:backward-p2=end",
                           "optpipe:memory-limit=2",
                           "optpipe:offload=never",
                           "zb-1p:memory-limit=3",
                           "zb-2p:memory-limit=4",
                           "zb-v:memory-limit=7",
                           "dapple-pb:memory-limit=3",
                           "pipedream:vertical-sync=yes",
                           "pipedream:replicas=2-1",
                           "pipedream:replicas=1-2",
                           "pipedream:replicas=2-2",
                           "pipedream:replicas=2-2:vertical-sync=yes",
                           "pipedream:replicas=3-1",
                           "pipemare:correction=none",
                           "pipemare:order=1f1b",
                           "pipemare:annealing=8",
                           "pipelined-backprop:mitigation=spike-compensation",
                           "pipelined-backprop:mitigation=linear-prediction",
                           "timeprest:ahead=minibatch"}) {
    names.emplace_back(name);
  }
  return names;
}

struct ExecutionCase {
  schedules::Schedule schedule;
  std::string shape = {};  // such as "p 4, m 8, chunks 2"
  bool llama = false, uneven = false, concurrent = true;
  Optimizer optimizer = SGD_MOMENTUM;
  double momentum = 0.9;
};

inline const char* NameOf(const StageOptimizer& optimizer) {
  return optimizer.kind == ADAM    ? "adam"
         : optimizer.momentum == 0 ? "sgd"
                                   : "momentum";
}

// Returns true for schedules whose first and last stages cannot share an
// embedding table.
inline bool NeedsUntied(absl::string_view name) {
  return absl::StrContains(name, "replicas=2-1") ||
         absl::StrContains(name, "replicas=1-2") ||
         absl::StrContains(name, "replicas=3-1") ||
         absl::StrContains(name, "annealing") ||
         absl::StrContains(name, "spike-compensation");
}

// Returns up to six shapes, with all six pairs of model and optimizer if six
// are legal. Without a flush, there are enough batches for 20 updates.
inline std::vector<ExecutionCase> CasesOf(const std::string& name) {
  static constexpr int kShapes[][3] = {
      {4, 8, 1},  {2, 4, 2},  {3, 5, 1}, {4, 8, 2},  {1, 3, 1},  {2, 6, 1},
      {4, 4, 1},  {2, 4, 4},  {3, 6, 2}, {2, 5, 1},  {4, 10, 1}, {3, 3, 1},
      {2, 2, 1},  {4, 4, 2},  {2, 6, 2}, {4, 12, 1}, {2, 8, 1},  {3, 1, 1},
      {3, 7, 1},  {2, 4, 1},  {3, 6, 1}, {1, 1, 1},  {1, 2, 1},  {5, 5, 1},
      {5, 10, 1}, {6, 12, 1}, {6, 6, 1}};
  const schedules::ScheduleKind& kind =
      *schedules::FindScheduleKind(name).value();
  std::vector<ExecutionCase> cases;
  for (const auto& [p, m, chunks] : kShapes) {
    schedules::ScheduleSpec spec{
        .num_ranks = p, .num_microbatches = m, .num_chunks = chunks};
    if (!kind.flush) spec.num_batches = 20;
    auto schedule = schedules::GenerateSchedule(name, spec);
    if (!schedule.ok()) continue;
    const int i = static_cast<int>(cases.size());
    const int per_update =
        std::max(schedule->microbatches_per_update(0),
                 schedule->microbatches_per_update(schedule->num_stages - 1));
    if (!kind.flush && per_update != m) {
      // Stages update after one or a few microbatches. Runs enough batches for
      // 20 updates of the slowest stage, including some that complete no
      // update.
      spec.num_batches = (20 * per_update + 4) / m + 1;
      schedule = schedules::GenerateSchedule(name, spec);
    }
    ExecutionCase replay{.schedule = *std::move(schedule)};
    replay.shape = absl::StrCat("p ", p, ", m ", m, ", chunks ", chunks);
    replay.llama = i % 2 == 1;
    replay.optimizer = i % 3 == 1 ? ADAM : SGD_MOMENTUM;
    if (i % 3 == 2) replay.momentum = 0;
    replay.uneven = i % 3 == 1;
    replay.concurrent = i % 3 != 2;
    cases.push_back(std::move(replay));
    if (cases.size() == 6) break;
  }
  return cases;
}

inline ExecutionRequest RequestOf(const ExecutionCase& replay) {
  ExecutionRequest request = TinyRequest(replay.schedule, replay.llama);
  const int num_stages = replay.schedule.num_stages;
  if (replay.uneven && num_stages > 1) {
    // The first stage has only the embedding, the second most of the blocks.
    request.model =
        replay.llama ? SmallLlama(num_stages + 1) : TinyGpt(num_stages + 1);
    request.first_layer = {0, 1};
    for (int stage = 2; stage < num_stages; ++stage) {
      request.first_layer.push_back(stage + 2);
    }
    request.first_layer.push_back(num_stages + 3);
  }
  if (NeedsUntied(replay.schedule.name)) {
    request.model.mutable_transformer()->set_tied_embeddings(false);
  }
  request.num_steps = replay.schedule.flush ? 20 : 1;
  request.optimizer.kind = replay.optimizer;
  request.optimizer.momentum = replay.momentum;
  // With an epsilon of 1e-8, Adam would take full steps in weights whose
  // gradient is only rounding error (biases of keys).
  request.optimizer.adam.epsilon = 1e-6F;
  request.optimizer.learning_rate = replay.optimizer == ADAM ? 0.01 : 0.05;
  // The gradient of the keys' bias is only rounding error, which Adam divides
  // by epsilon. With 1e-8, sums in another order would differ by 1e-12.
  request.optimizer.adam.epsilon = 1e-6F;
  // Prediction from optimizer state needs an optimizer with state.
  const bool spikes =
      absl::StrContains(replay.schedule.name, "spike-compensation");
  const bool predicts = replay.schedule.weights.prediction !=
                            schedules::WeightPolicy::Prediction::kNone &&
                        replay.schedule.weights.estimate_buffers == 0;
  if (spikes || (predicts && replay.momentum == 0)) {
    request.optimizer.kind = SGD_MOMENTUM;
    request.optimizer.momentum = 0.9;
    request.optimizer.learning_rate = 0.05;
  }
  return request;
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_EXECUTION_CASES_H_
