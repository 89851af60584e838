// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/documents.h"

#include <algorithm>
#include <cmath>

#include "calibrate/pricing/slowest_gpu.h"
#include "scenarios/check_scenario.h"
#include "scenarios/packed_sequences.h"

namespace weir::sim {
namespace {

double KeysPerToken(const SequenceLengths& lengths, double longest) {
  return scenarios::LengthMoment(lengths, 2, longest) /
         scenarios::LengthMoment(lengths, 1, longest);
}

}  // namespace

double AttentionDeviation(const SequenceLengths& lengths,
                          const BatchShape& batch) {
  const double longest = batch.sequence_length;
  const auto moment = [&](int power) {
    return scenarios::LengthMoment(lengths, power, longest);
  };
  const double keys = KeysPerToken(lengths, longest);
  // The mean of l^2 - keys x l is 0.
  const double variance =
      moment(4) - 2 * keys * moment(3) + keys * keys * moment(2);
  const double tokens = batch.microbatch_size * batch.sequence_length;
  return std::sqrt(std::max(variance, 0.0) / (tokens * moment(1))) / keys;
}

models::PackedDocuments DocumentsOf(const SequenceLengths& lengths,
                                    const BatchShape& batch) {
  models::PackedDocuments documents;
  documents.length = KeysPerToken(lengths, batch.sequence_length);
  const double deviation = AttentionDeviation(lengths, batch);
  const double m = batch.num_microbatches;
  const double of_replica =
      deviation / std::sqrt(m) * calibrate::ExpectedMaximum(batch.num_replicas);
  const double of_microbatch =
      std::max(of_replica,
               deviation * calibrate::ExpectedMaximum(batch.num_microbatches));
  const double others = batch.num_ranks - 1;
  const double imbalance =
      1 + (m * of_replica + others * of_microbatch) / (m + others);
  // No microbatch exceeds one with a single document per sequence.
  documents.imbalance =
      std::min(imbalance, batch.sequence_length / documents.length);
  return documents;
}

models::PackedDocuments DocumentsOfScenario(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  return DocumentsOf(
      scenario.batch().packed_sequences(),
      {.sequence_length = 1.0 * scenario.batch().sequence_length(),
       .microbatch_size =
           std::max(1.0 * scenario.batch().microbatch_size(), 1.0),
       .num_microbatches = std::max(scenarios::NumMicrobatches(scenario), 1),
       .num_replicas = std::max(static_cast<int>(parallelism.data()), 1),
       .num_ranks = std::max(static_cast<int>(parallelism.pipeline()), 1)});
}

}  // namespace weir::sim
