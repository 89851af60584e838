// SPDX-License-Identifier: Apache-2.0
#include "base/textproto_hints.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

std::string FieldHint(const std::string& type, const std::string& name,
                      const Descriptor& root) {
  const Descriptor* descriptor =
      root.file()->pool()->FindMessageTypeByName(type);
  if (descriptor == nullptr) return "";
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    names.emplace_back(descriptor->field(i)->name());
  }
  std::string similar = DidYouMean(name, names);
  if (!similar.empty()) return similar;
  return absl::StrCat("; expected one of ", absl::StrJoin(names, ", "));
}

// Returns the values of the enum fields with this name.
std::string EnumHint(const std::string& name, const Descriptor& root) {
  std::set<const Descriptor*> seen;
  std::vector<std::string> values;
  VisitFields(root, &seen, [&](const FieldDescriptor& field) {
    const EnumDescriptor* type = field.enum_type();
    if (type == nullptr || field.name() != name || !values.empty()) return;
    for (int i = 0; i < type->value_count(); ++i) {
      if (type->value(i)->number() == 0) continue;  // unspecified
      values.emplace_back(type->value(i)->name());
    }
  });
  if (values.empty()) return "";
  return absl::StrCat("; expected one of ", absl::StrJoin(values, ", "));
}

}  // namespace

std::string TextProtoHint(absl::string_view message, const Descriptor& root) {
  // Quoted words are at odd positions.
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  if (absl::StrContains(message, "alue for boolean field")) {
    return "; expected true or false";
  }
  if (absl::StrContains(message, "has no field named") && parts.size() > 3) {
    return FieldHint(parts[1], parts[3], root);
  }
  if (absl::StartsWith(message, "Unknown enumeration value") &&
      parts.size() > 3) {
    return EnumHint(parts[3], root);
  }
  return "";
}

}  // namespace weir
