// SPDX-License-Identifier: Apache-2.0
// What protobuf's parsers report, in the form of weir's messages.
#ifndef WEIR_BASE_TEXTPROTO_HINTS_H_
#define WEIR_BASE_TEXTPROTO_HINTS_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Returns a message of protobuf's text parser in the form of base/problems.h
// where its parts are known: "pipelin is unknown, expected a field of
// Parallelism; did you mean pipeline?". Others are returned without the full
// stop. `root` is the type of the whole file.
std::string TextProtoProblem(absl::string_view message,
                             const google::protobuf::Descriptor& root);

// Returns "a, b, c": the values of an enum but for the unspecified one.
std::string ValuesOf(const google::protobuf::EnumDescriptor& type);

}  // namespace weir

#endif  // WEIR_BASE_TEXTPROTO_HINTS_H_
