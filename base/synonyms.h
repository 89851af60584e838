// SPDX-License-Identifier: Apache-2.0
// Names that other programs use for weir's flags and columns.
#ifndef WEIR_BASE_SYNONYMS_H_
#define WEIR_BASE_SYNONYMS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// Returns a hint for an unknown name of a flag or column, with or without
// dashes: "; did you mean --mbs?" for --micro-batch if it is among `known`,
// otherwise the known name with the most similar spelling. Empty if there is
// nothing to suggest.
std::string SuggestName(absl::string_view name,
                        const std::vector<std::string>& known);

}  // namespace weir

#endif  // WEIR_BASE_SYNONYMS_H_
