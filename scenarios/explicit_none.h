// SPDX-License-Identifier: Apache-2.0
// Settings that say explicitly that a feature is not used.
#ifndef WEIR_SCENARIOS_EXPLICIT_NONE_H_
#define WEIR_SCENARIOS_EXPLICIT_NONE_H_

#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Clears VOCABULARY_NOT_SHARDED, packed_sequences.one_document and adapters of
// rank 0, which exist so that flags can switch off what a file sets. The result
// equals a scenario without these fields.
void ClearExplicitNone(Scenario* scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_EXPLICIT_NONE_H_
