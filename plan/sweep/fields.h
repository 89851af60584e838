// SPDX-License-Identifier: Apache-2.0
// Fields of a message by their paths: "parallelism.pipeline",
// "textbook.stages[0].forward_seconds" (without an index: of all entries).
#ifndef WEIR_PLAN_SWEEP_FIELDS_H_
#define WEIR_PLAN_SWEEP_FIELDS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Every field that can be set, without indices, in the order of the file.
std::vector<std::string> FieldPaths(const google::protobuf::Descriptor& type);

// The field that a path ends at. InvalidArgument "is not a field ...; did you
// mean X?".
absl::StatusOr<const google::protobuf::FieldDescriptor*> FindField(
    const google::protobuf::Descriptor& type, absl::string_view path);

// Sets it to what the text says: a number, true or false, a name of an enum
// ("full" for RECOMPUTE_FULL), text, or a list of them with '/' between them.
// InvalidArgument "is x, expected y".
absl::Status SetField(absl::string_view path, absl::string_view value,
                      google::protobuf::Message* message);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_FIELDS_H_
