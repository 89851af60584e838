// SPDX-License-Identifier: Apache-2.0
#include "scenarios/failures.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/problems.h"

namespace weir::scenarios {

absl::Status MergeFailures(const Problems& problems,
                           const std::vector<absl::Status>& failures) {
  if (problems.empty() && failures.empty()) return absl::OkStatus();
  if (problems.empty() && failures.size() == 1) return failures[0];
  std::vector<std::string> messages;
  if (!problems.empty()) messages.emplace_back(problems.ToStatus().message());
  for (const absl::Status& failure : failures)
    messages.emplace_back(failure.message());
  return absl::InvalidArgumentError(absl::StrJoin(messages, "\n"));
}

}  // namespace weir::scenarios
