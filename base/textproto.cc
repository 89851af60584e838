// SPDX-License-Identifier: Apache-2.0
#include "base/textproto.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/textproto_hints.h"
#include "base/utf8.h"

namespace weir {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  Collector(absl::string_view label, const google::protobuf::Descriptor& type)
      : label_(label), type_(type) {}

  void AddError(int line, int column, const std::string& message) override {
    if (errors_.size() >= kMaxErrors) {
      ++num_more_;
      return;
    }
    // Protobuf counts from 0 and reports -1 for an unknown position. A message
    // may quote a word of any length from the file.
    std::string text = TextProtoProblem(message, type_);
    // A message may quote a word of any length from the file.
    if (text.size() > kMaxBytes && message.size() > kMaxBytes) {
      text.resize(Utf8PrefixLength(text.substr(0, kMaxBytes)));
      text += "...";
    }
    errors_.push_back(line < 0 ? absl::StrCat(label_, ": ", text)
                               : absl::StrCat(label_, ":", line + 1, ":",
                                              column + 1, ": ", text));
  }

  // Called for unknown fields; a warning does not end the parsing.
  void AddWarning(int line, int column, const std::string& message) override {
    AddError(line, column, message);
  }

  const std::vector<std::string>& errors() const { return errors_; }

  absl::Status ToStatus() const {
    if (errors_.empty()) return absl::OkStatus();
    const std::string more =
        num_more_ > 0
            ? absl::StrCat("\n", label_, ": ", num_more_, " more errors")
            : "";
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(errors_, "\n"), more));
  }

 private:
  static constexpr size_t kMaxErrors = 50;
  static constexpr size_t kMaxBytes = 400;  // maximum length of a message

  std::string label_;
  const google::protobuf::Descriptor& type_;
  std::vector<std::string> errors_;
  size_t num_more_ = 0;
};

void CheckBytes(absl::string_view text, Collector* collector) {
  const size_t end = Utf8PrefixLength(text);
  if (end == text.size()) return;
  const absl::string_view before = text.substr(0, end);
  const size_t line = std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  collector->AddError(
      static_cast<int>(line), static_cast<int>(end - start),
      absl::StrCat("found \"", absl::CHexEscape(text.substr(end, 1)),
                   "\", expected UTF-8"));
}

// Checks the strings of a message, which may contain invalid bytes as escapes.
void CheckStrings(const Message& message, const std::string& path,
                  Problems* problems) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool repeated = field->is_repeated();
    const int size = repeated ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const std::string name =
          absl::StrCat(path, std::string(field->name()),
                       repeated ? absl::StrCat("[", i, "]") : "");
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CheckStrings(repeated
                         ? reflection->GetRepeatedMessage(message, field, i)
                         : reflection->GetMessage(message, field),
                     absl::StrCat(name, "."), problems);
      } else if (field->type() == FieldDescriptor::TYPE_STRING) {
        const std::string text =
            repeated ? reflection->GetRepeatedString(message, field, i)
                     : reflection->GetString(message, field);
        if (IsUtf8(text)) continue;
        problems->Add(name, absl::StrCat("is \"", absl::CHexEscape(text),
                                         "\", expected UTF-8"));
      }
    }
  }
}

}  // namespace

absl::Status ParseTextProto(absl::string_view label, absl::string_view text,
                            Message* message) {
  if (text.size() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has ", text.size(), " bytes, expected at most ",
                     std::numeric_limits<int>::max()));
  }
  Collector collector(label, *message->GetDescriptor());
  CheckBytes(text, &collector);
  if (!collector.errors().empty()) return collector.ToStatus();
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);  // reported by AddWarning
  parser.SetRecursionLimit(100);
  google::protobuf::io::ArrayInputStream stream(text.data(),
                                                static_cast<int>(text.size()));
  const bool parsed = parser.Parse(&stream, message);
  if (!collector.errors().empty()) return collector.ToStatus();
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": is not a textproto of ",
                     std::string(message->GetDescriptor()->full_name())));
  }
  Problems problems(label);
  CheckStrings(*message, "", &problems);
  return problems.ToStatus();
}

std::string PrintTextProto(const Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

void SilenceProtobuf() { google::protobuf::SetLogHandler(nullptr); }

}  // namespace weir
