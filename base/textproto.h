// SPDX-License-Identifier: Apache-2.0
// Reads and prints protocol buffers in text format.
#ifndef WEIR_BASE_TEXTPROTO_H_
#define WEIR_BASE_TEXTPROTO_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Parses a textproto strictly: unknown fields and text that is not UTF-8 are
// errors. Reports all unknown fields together with the first syntax error, each
// as "<label>:<line>:<column>: <what>". Returns them as InvalidArgument.
absl::Status ParseTextProto(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message);

// Prints a message as ParseTextProto reads it. Equal messages give equal bytes.
std::string PrintTextProto(const google::protobuf::Message& message);

// Keeps libprotobuf from printing its own messages: weir's errors suffice, and
// untrusted bytes must not reach a terminal.
void SilenceProtobuf();

}  // namespace weir

#endif  // WEIR_BASE_TEXTPROTO_H_
