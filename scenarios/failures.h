// SPDX-License-Identifier: Apache-2.0
// Errors of several independent steps, which are reported together.
#ifndef WEIR_SCENARIOS_FAILURES_H_
#define WEIR_SCENARIOS_FAILURES_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"

namespace weir::scenarios {

// Returns the value of a result, or appends its status to `failures`. Prefixes
// NotFound with `where`, because its message does not contain the field.
template <typename T>
std::optional<T> KeepValue(absl::string_view where, absl::StatusOr<T> result,
                           std::vector<absl::Status>& failures) {
  if (result.ok()) return *std::move(result);
  const absl::Status& status = result.status();
  failures.push_back(
      absl::IsNotFound(status)
          ? absl::NotFoundError(absl::StrCat(where, " ", status.message()))
          : status);
  return {};
}

// Combines everything into one status: first the problems, then the failures.
absl::Status MergeFailures(const Problems& problems,
                           const std::vector<absl::Status>& failures);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_FAILURES_H_
