// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explicit_none.h"

namespace weir::scenarios {

void ClearExplicitNone(Scenario* scenario) {
  if (scenario->parallelism().vocabulary_parallel() == VOCABULARY_NOT_SHARDED) {
    scenario->mutable_parallelism()->clear_vocabulary_parallel();
  }
  if (scenario->batch().packed_sequences().one_document()) {
    scenario->mutable_batch()->clear_packed_sequences();
  }
  const Training& training = scenario->training();
  if (training.has_lora() && training.lora().rank() == 0 &&
      training.lora().target_modules().empty()) {
    scenario->mutable_training()->clear_lora();
  }
}

}  // namespace weir::scenarios
