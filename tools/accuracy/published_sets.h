// SPDX-License-Identifier: Apache-2.0
// The sets of published measurements, read from
// results/published/sets/sets.csv. Errors are NotFound if the file does not
// exist, InvalidArgument if it is malformed.
#ifndef WEIR_TOOLS_ACCURACY_PUBLISHED_SETS_H_
#define WEIR_TOOLS_ACCURACY_PUBLISHED_SETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weir {

struct PublishedSet {
  std::string name, title;
  std::string quantity;              // of "weir validate"; empty: seconds
  std::string target, worst_target;  // errors, as numbers; may be empty
  // Files of runs of whole steps, of their scenario and of their columns,
  // relative to the folder of the sets. Only the first is complete; it starts
  // with "DATA/" if it is in the folder $WEIR_DATA.
  std::string measured;
  std::string scenario;  // empty: the costs of the stages are given
  std::string columns;   // empty: weir's names
  std::string fitted;    // not empty: parameters of profiles were fitted to it
  // The paper, recipe collection or blog, the device and the program of a set
  // of whole steps or memory. Empty: the set is not one of these.
  std::string source, device, program;
  std::string part_of;  // the set that contains these rows, or empty
  // Not empty: nothing is fitted to it, because its steps are bound by causes
  // that weir is known not to model (the comment of its scenario).
  std::string not_fitted;
};

absl::StatusOr<std::vector<PublishedSet>> LoadPublishedSets(
    const std::string& path);

// Loads only the sets whose rows are in FOLDER/SET.csv.
absl::StatusOr<std::vector<PublishedSet>> LoadPublishedSets(
    const std::string& path, const std::string& folder);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_PUBLISHED_SETS_H_
