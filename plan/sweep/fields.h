// SPDX-License-Identifier: Apache-2.0
// Access to fields of a message by path: "parallelism.pipeline",
// "costs.stages[0].forward_seconds" (without an index: all entries).
#ifndef WEIR_PLAN_SWEEP_FIELDS_H_
#define WEIR_PLAN_SWEEP_FIELDS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

// Returns every settable field, without indices, in the order of the file.
std::vector<std::string> FieldPaths(const google::protobuf::Descriptor& type);

// Returns the path of a short name, which is the name of the field's flag:
// "parallelism.tensor" for "tp". Returns other text unchanged.
std::string LongField(absl::string_view name);
// Returns "tp" for "parallelism.tensor"; other text unchanged.
std::string ShortField(absl::string_view path);

// Returns the field at a path, or InvalidArgument "is not a field ...; did you
// mean X?".
absl::StatusOr<const google::protobuf::FieldDescriptor*> FindField(
    const google::protobuf::Descriptor& type, absl::string_view path);

// Sets the field to the value of the text: a number, true or false, an enum
// name ("full" for RECOMPUTE_FULL), text, or a list of them separated by '/'.
// Returns InvalidArgument ("is x, expected y") for anything else.
absl::Status SetField(absl::string_view path, absl::string_view value,
                      google::protobuf::Message* message);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_FIELDS_H_
