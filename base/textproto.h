// SPDX-License-Identifier: Apache-2.0
// Text form of every file that people write.
#ifndef WEIR_BASE_TEXTPROTO_H_
#define WEIR_BASE_TEXTPROTO_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Parses a textproto strictly: an unknown field is an error, and so is text
// that is not UTF-8. All unknown fields come back together with the first error
// of syntax, each as "<label>:<line>:<column>: <what>".
absl::Status ParseTextProto(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message);

// Prints a message as ParseTextProto reads it: same message, same bytes.
std::string PrintTextProto(const google::protobuf::Message& message);

// Keeps libprotobuf from printing messages of its own: our errors say enough,
// and bytes of strangers must not reach a terminal.
void SilenceProtobuf();

}  // namespace weir

#endif  // WEIR_BASE_TEXTPROTO_H_
