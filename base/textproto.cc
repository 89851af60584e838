// SPDX-License-Identifier: Apache-2.0
#include "base/textproto.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir {
namespace {

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(absl::string_view label) : label_(label) {}

  void AddError(int line, int column, const std::string& message) override {
    // Protobuf counts from 0 and says -1 where it knows no place.
    errors_.push_back(line < 0 ? absl::StrCat(label_, ": ", message)
                               : absl::StrCat(label_, ":", line + 1, ":",
                                              column + 1, ": ", message));
  }

  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::string label_;
  std::vector<std::string> errors_;
};

}  // namespace

absl::Status ParseTextProto(absl::string_view label, absl::string_view text,
                            google::protobuf::Message* message) {
  Collector collector(label);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.SetRecursionLimit(100);
  google::protobuf::io::ArrayInputStream stream(text.data(),
                                                static_cast<int>(text.size()));
  if (parser.Parse(&stream, message)) return absl::OkStatus();
  if (collector.errors().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": is not a textproto of ",
                     std::string(message->GetDescriptor()->full_name())));
  }
  return absl::InvalidArgumentError(absl::StrJoin(collector.errors(), "\n"));
}

std::string PrintTextProto(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace weir
