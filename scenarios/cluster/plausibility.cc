// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/plausibility.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir::scenarios {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr double kLeastRate = 1e6, kGreatestRate = 1e14;
constexpr double kGreatestLatency = 0.1;

void CheckValue(const std::string& field, double value,
                std::vector<std::string>* warnings) {
  if (absl::StrContains(field, "bytes_per_second") && value != 0 &&
      (value < kLeastRate || value > kGreatestRate)) {
    warnings->push_back(absl::StrFormat(
        "%s is %g bytes per second, which is implausible%s", field, value,
        value < kLeastRate ? absl::StrFormat("; %g GB/s is %ge9", value, value)
                           : ""));
  } else if (absl::EndsWith(field, "latency_seconds") &&
             value > kGreatestLatency) {
    warnings->push_back(absl::StrFormat(
        "%s is %g seconds, which is implausible; %g us is %ge-6", field, value,
        value, value));
  }
}

void CheckMessage(const std::string& path, const Message& message,
                  std::vector<std::string>* warnings) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name =
        absl::StrCat(path, path.empty() ? "" : ".", field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE &&
        !field->is_repeated()) {
      CheckValue(name, reflection->GetDouble(message, field), warnings);
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CheckMessage(name, reflection->GetMessage(message, field), warnings);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      CheckMessage(absl::StrFormat("%s[%d]", name, i),
                   reflection->GetRepeatedMessage(message, field, i), warnings);
    }
  }
}

}  // namespace

std::vector<std::string> ImplausibleValues(absl::string_view label,
                                           const Cluster& cluster) {
  std::vector<std::string> warnings;
  CheckMessage("", cluster, &warnings);
  for (std::string& warning : warnings) {
    warning = absl::StrCat(label, ": ", warning);
  }
  return warnings;
}

}  // namespace weir::scenarios
