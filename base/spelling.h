// SPDX-License-Identifier: Apache-2.0
// What a misspelt name may have meant.
#ifndef WEIR_BASE_SPELLING_H_
#define WEIR_BASE_SPELLING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// How many letters must be inserted, left out, replaced or swapped with their
// neighbour to turn one word into the other; case, '-' and '_' do not count.
int EditDistance(absl::string_view a, absl::string_view b);

// The known word nearest to `word`; empty when none is within a third of its
// length (one letter for short ones).
std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& known);

// "; did you mean X?", or nothing when no known word is near.
std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known);

}  // namespace weir

#endif  // WEIR_BASE_SPELLING_H_
