// SPDX-License-Identifier: Apache-2.0
#include "base/proto_json.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/json_syntax.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"

namespace weir {
namespace {

// Returns protobuf's message without its code: "INVALID_ARGUMENT:(scenario)
// no_such: Cannot find field." becomes "no_such: Cannot find field.".
std::string WhatProtobufSays(absl::string_view text) {
  absl::ConsumePrefix(&text, "INVALID_ARGUMENT:");
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(text);
  return EscapeLine(rest);
}

}  // namespace

absl::Status ParseProtoJson(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message) {
  RETURN_IF_ERROR(CheckJsonSyntax(label, text));
  google::protobuf::LogSilencer silencer;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), message);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeLine(label), ": ", WhatProtobufSays(status.ToString())));
}

absl::Status ParseProtoText(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")
             ? ParseProtoJson(label, text, message)
             : ParseTextProto(label, text, message);
}

}  // namespace weir
