// SPDX-License-Identifier: Apache-2.0
// Adds what protobuf's messages about a textproto do not say.
#ifndef WEIR_BASE_TEXTPROTO_HINTS_H_
#define WEIR_BASE_TEXTPROTO_HINTS_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Returns what is expected instead, or a similar name, for a message of
// protobuf's text parser: "; expected true or false", "; did you mean nodes?".
// Empty for other messages. `root` is the type of the whole file.
std::string TextProtoHint(absl::string_view message,
                          const google::protobuf::Descriptor& root);

}  // namespace weir

#endif  // WEIR_BASE_TEXTPROTO_HINTS_H_
