// SPDX-License-Identifier: Apache-2.0
// Names of fields that sweeps share with flags.
#ifndef WEIR_PLAN_SWEEP_SHORT_NAMES_H_
#define WEIR_PLAN_SWEEP_SHORT_NAMES_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace weir::plan {

struct ShortName {
  absl::string_view name;  // "tp"
  absl::string_view path;  // "parallelism.tensor"
};

// Returns all short names. A path may have several; the first is shown.
std::span<const ShortName> ShortNames();

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_SHORT_NAMES_H_
