// SPDX-License-Identifier: Apache-2.0
// Suggests known names for misspelled ones.
#ifndef WEIR_BASE_SPELLING_H_
#define WEIR_BASE_SPELLING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// Returns the number of letters to insert, remove, replace or swap with a
// neighbor to turn one word into the other. Ignores case and treats '-' and '_'
// as equal.
int EditDistance(absl::string_view a, absl::string_view b);

// Returns the known word nearest to `word`, or "" if none is within a third of
// its length (one letter for short words).
std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& known);

// Returns "; did you mean X?", or "" if no known word is near.
std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known);

}  // namespace weir

#endif  // WEIR_BASE_SPELLING_H_
