// SPDX-License-Identifier: Apache-2.0
// Reads protocol buffers from JSON.
#ifndef WEIR_BASE_PROTO_JSON_H_
#define WEIR_BASE_PROTO_JSON_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Parses the JSON form of a message (proto3's mapping) strictly: unknown fields
// are errors. Names of fields may be those of the .proto file or in
// lowerCamelCase. Returns InvalidArgument "<label>: <what>", with line and
// column if the text is not JSON.
absl::Status ParseProtoJson(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message);

// Parses JSON if the text begins with '{' (after spaces), otherwise a textproto
// (base/textproto.h). Returns InvalidArgument as these parsers do.
absl::Status ParseProtoText(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message);

}  // namespace weir

#endif  // WEIR_BASE_PROTO_JSON_H_
