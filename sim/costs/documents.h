// SPDX-License-Identifier: Apache-2.0
// Attention over packed documents (docs/packed-sequences.md).
#ifndef WEIR_SIM_COSTS_DOCUMENTS_H_
#define WEIR_SIM_COSTS_DOCUMENTS_H_

#include "models/layer_work.h"
#include "scenarios/scenario.pb.h"

namespace weir::sim {

// What decides how unequal the microbatches of a batch are.
struct BatchShape {
  double sequence_length = 0;
  double microbatch_size = 1;  // sequences
  int num_microbatches = 1;    // per replica
  int num_replicas = 1;
  int num_ranks = 1;  // of a pipeline
};

// Returns the relative standard deviation of the attention of a microbatch:
// by the central limit theorem for renewal-reward processes, the sum of l^2
// over documents that fill T tokens has the mean T E[l^2] / E[l] and the
// variance T / E[l] Var(l^2 - l E[l^2] / E[l]).
double AttentionDeviation(const SequenceLengths& lengths,
                          const BatchShape& batch);

// Returns the expected keys per token, and how much longer the attention of a
// step takes than with equal microbatches: a 1F1B pipeline takes the sum over
// the microbatches of the busiest replica, and once per further rank the
// largest of them.
models::PackedDocuments DocumentsOf(const SequenceLengths& lengths,
                                    const BatchShape& batch);

// Returns the same of a scenario with packed sequences, whose batch is
// resolved.
models::PackedDocuments DocumentsOfScenario(const Scenario& scenario);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_DOCUMENTS_H_
