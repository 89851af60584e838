// SPDX-License-Identifier: Apache-2.0
#include "api/status.h"

#include <string>
#include <vector>

#include "base/problem_parts.h"

namespace weir::api {
namespace {

Error::Kind KindOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
      return Error::Kind::kInvalidInput;
    case absl::StatusCode::kFailedPrecondition:
      return Error::Kind::kDeadlock;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return Error::Kind::kResources;
    default:
      return Error::Kind::kInternal;
  }
}

}  // namespace

void ThrowError(const absl::Status& status) {
  std::vector<Problem> problems;
  for (ProblemParts& parts : SplitProblems(status.message())) {
    problems.push_back({std::move(parts.message), std::move(parts.file),
                        parts.line, std::move(parts.field),
                        std::move(parts.found), std::move(parts.expected)});
  }
  throw Error(KindOf(status), std::string(status.message()),
              std::move(problems));
}

}  // namespace weir::api
