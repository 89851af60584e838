// SPDX-License-Identifier: Apache-2.0
// Ranges of values: "2..64*2" for 2, 4, 8, 16, 32, 64.
#ifndef WEIR_PLAN_SWEEP_RANGES_H_
#define WEIR_PLAN_SWEEP_RANGES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/repeated_field.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weir::plan {

// Expands the ranges "A..B" (by 1), "A..B+STEP" and "A..B*FACTOR" of a numeric
// field. B is included if a step reaches it. Other values are unchanged.
// Returns InvalidArgument for a malformed or too long range.
absl::StatusOr<std::vector<std::string>> ExpandRanges(
    const google::protobuf::FieldDescriptor& field,
    const google::protobuf::RepeatedPtrField<std::string>& values);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_RANGES_H_
