// SPDX-License-Identifier: Apache-2.0
#include "base/textproto_hints.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"

namespace weir {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// Calls `visit` for each field of the type and of the messages in it, once.
template <typename Visit>
void VisitFields(const Descriptor& type, std::set<const Descriptor*>* seen,
                 const Visit& visit) {
  if (!seen->insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    visit(*type.field(i));
    const Descriptor* inner = type.field(i)->message_type();
    if (inner != nullptr) VisitFields(*inner, seen, visit);
  }
}

std::string UnknownField(const std::string& type, const std::string& name,
                         const Descriptor& root) {
  const Descriptor* descriptor =
      root.file()->pool()->FindMessageTypeByName(type);
  std::vector<std::string> names;
  for (int i = 0; descriptor != nullptr && i < descriptor->field_count(); ++i) {
    names.emplace_back(descriptor->field(i)->name());
  }
  const std::string similar = DidYouMean(name, names);
  const std::string expected =
      similar.empty() && !names.empty()
          ? absl::StrCat("one of ", absl::StrJoin(names, ", "))
          : absl::StrCat("a field of ", absl::StripPrefix(type, "weir."),
                         similar);
  return absl::StrCat(name, " is unknown, expected ", expected);
}

// Returns the values of the first enum field with this name, or "".
std::string ValuesOfField(const std::string& name, const Descriptor& root) {
  std::set<const Descriptor*> seen;
  std::string values;
  VisitFields(root, &seen, [&](const FieldDescriptor& field) {
    const EnumDescriptor* type = field.enum_type();
    if (type == nullptr || field.name() != name || !values.empty()) return;
    values = ValuesOf(*type);
  });
  return values;
}

}  // namespace

std::string ValuesOf(const EnumDescriptor& type) {
  std::vector<std::string> values;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() == 0) continue;  // unspecified
    values.emplace_back(type.value(i)->name());
  }
  return absl::StrJoin(values, ", ");
}

std::string TextProtoProblem(absl::string_view message,
                             const Descriptor& root) {
  absl::ConsumeSuffix(&message, ".");
  // Quoted words are at odd positions.
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  if (absl::StrContains(message, "has no field named") && parts.size() > 3) {
    return UnknownField(parts[1], parts[3], root);
  }
  if (absl::StartsWith(message, "Invalid value for boolean field") &&
      parts.size() > 3) {
    return absl::StrCat(parts[1], " is ", parts[3], ", expected true or false");
  }
  if (absl::StartsWith(message, "Unknown enumeration value") &&
      parts.size() > 3) {
    const std::string values = ValuesOfField(parts[3], root);
    if (!values.empty()) {
      return absl::StrCat(parts[3], " is ", parts[1], ", expected one of ",
                          values);
    }
  }
  // "Expected integer, got: -"
  constexpr absl::string_view kExpected = "Expected ", kGot = ", got: ";
  const size_t got = message.find(kGot);
  if (absl::StartsWith(message, kExpected) && got != absl::string_view::npos) {
    return absl::StrCat(
        "found ", message.substr(got + kGot.size()), ", expected ",
        message.substr(kExpected.size(), got - kExpected.size()));
  }
  return std::string(message);
}

}  // namespace weir
