// SPDX-License-Identifier: Apache-2.0
// Vocabulary parallelism across pipeline ranks (docs/layouts.md).
#ifndef WEIR_SCENARIOS_VOCABULARY_PARALLEL_H_
#define WEIR_SCENARIOS_VOCABULARY_PARALLEL_H_

#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns the number of barriers between a microbatch's last forward and its
// first backward; 0 without vocabulary parallelism.
int VocabularyBarriers(const Parallelism& parallelism);

// Makes 1F1B run one forward ahead for each barrier.
void FillVocabularySchedule(Scenario* scenario);

// Check the schedule, and that the model has a vocabulary to shard.
void CheckVocabularyParallel(Problems& problems, const Scenario& scenario);
void CheckVocabularyParallel(Problems& problems, const Scenario& scenario,
                             const Model& model);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_VOCABULARY_PARALLEL_H_
