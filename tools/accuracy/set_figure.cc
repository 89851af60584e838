// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/set_figure.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weir {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status NoNumber(const std::string& path, absl::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", path, "\" does not lead to a number, see ", where));
}

}  // namespace

absl::Status SetNumber(const std::string& path, double value,
                       Message* message) {
  const std::vector<std::string> steps = absl::StrSplit(path, '.');
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* reflection = message->GetReflection();
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(steps[i]);
    if (field == nullptr) return NoNumber(path, steps[i]);
    if (field->is_repeated()) {
      int entry = 0;
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
          ++i >= steps.size() || !absl::SimpleAtoi(steps[i], &entry) ||
          entry < 0 || entry >= reflection->FieldSize(*message, field)) {
        return NoNumber(path, field->name());
      }
      message = reflection->MutableRepeatedMessage(message, field, entry);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      message = reflection->MutableMessage(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE &&
               i + 1 == steps.size()) {
      reflection->SetDouble(message, field, value);
      return absl::OkStatus();
    } else {
      return NoNumber(path, steps[i]);
    }
  }
  return NoNumber(path, "the end of the path");
}

}  // namespace weir
