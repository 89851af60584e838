// SPDX-License-Identifier: Apache-2.0
#include "base/proto_json.h"

#include <google/protobuf/descriptor.h>
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
#include "base/textproto_hints.h"

namespace weir {
namespace {

// Takes "(costs.stages[0]) " from the beginning of `text` and returns the path.
absl::string_view TakePath(absl::string_view* text) {
  const size_t end = text->find(')');
  if (!absl::StartsWith(*text, "(") || end == absl::string_view::npos) {
    return "";
  }
  const absl::string_view path = text->substr(1, end - 1);
  *text = absl::StripLeadingAsciiWhitespace(text->substr(end + 1));
  return path;
}

// Returns what a value of type "TYPE_UINT32" or "type.googleapis.com/weir.X"
// is, or "" for other types.
std::string ExpectedOf(absl::string_view type) {
  if (absl::ConsumePrefix(&type, "TYPE_")) {
    return absl::StrCat("a value of type ", absl::AsciiStrToLower(type));
  }
  if (!absl::ConsumePrefix(&type, "type.googleapis.com/")) return "";
  const auto* values =
      google::protobuf::DescriptorPool::generated_pool()->FindEnumTypeByName(
          std::string(type));
  return values == nullptr ? "" : absl::StrCat("one of ", ValuesOf(*values));
}

// Returns protobuf's message in the form of weir's. Those that occur are
// "INVALID_ARGUMENT:(costs.stages[0]) no_such: Cannot find field." and
// "INVALID_ARGUMENT:(parallelism.pipeline): invalid value "a" for type
// TYPE_UINT32". Others stay as they are.
std::string WhatProtobufSays(absl::string_view text, absl::string_view type) {
  absl::ConsumePrefix(&text, "INVALID_ARGUMENT:");
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(text);
  const std::string unchanged = EscapeLine(rest);
  const absl::string_view path = TakePath(&rest);
  if (absl::ConsumeSuffix(&rest, ": Cannot find field.")) {
    return EscapeLine(absl::StrCat(path, path.empty() ? "" : ".", rest,
                                   " is unknown, expected a field of ",
                                   path.empty() ? type : path));
  }
  constexpr absl::string_view kType = " for type ";
  const bool is_value = absl::ConsumePrefix(&rest, ": invalid value ");
  const size_t end = rest.rfind(kType);
  if (is_value && end != absl::string_view::npos) {
    const std::string expected = ExpectedOf(rest.substr(end + kType.size()));
    if (!expected.empty()) {
      return EscapeLine(absl::StrCat(path, " is ", rest.substr(0, end),
                                     ", expected ", expected));
    }
  }
  return unchanged;
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
      EscapeLine(label), ": ",
      WhatProtobufSays(status.ToString(), message->GetDescriptor()->name())));
}

absl::Status ParseProtoText(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")
             ? ParseProtoJson(label, text, message)
             : ParseTextProto(label, text, message);
}

}  // namespace weir
