// SPDX-License-Identifier: Apache-2.0
#include "models/import/json_fields.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/json_syntax.h"
#include "base/json_text.h"
#include "base/spelling.h"
#include "base/status_macros.h"

namespace weir::models {
namespace {

using nlohmann::json;

std::string Show(const json& value) {
  // Printing nested values could exhaust the stack.
  if (value.is_structured()) return absl::StrCat("an ", value.type_name());
  if (value.is_string()) {
    return absl::StrCat("\"", value.get_ref<const std::string&>().substr(0, 40),
                        "\"");
  }
  return DumpJson(value);
}

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view label,
                                     absl::string_view text) {
  RETURN_IF_ERROR(CheckJsonSyntax(label, text));
  json object = json::parse(text.begin(), text.end(), nullptr,
                            /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": is not a JSON object"));
  }
  return object;
}

const json* JsonFields::Find(const char* key) const {
  asked_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::Wrong(const char* key, const json& found,
                       absl::string_view expected) {
  problems_.Add(key, absl::StrCat("is ", Show(found), ", expected ", expected));
}

bool JsonFields::Has(const char* key) const { return Find(key) != nullptr; }

bool JsonFields::Mentions(const char* key) const {
  asked_.insert(key);
  return object_.contains(key);
}

uint32_t JsonFields::Count(const char* key, uint32_t otherwise) {
  const json* found = Find(key);
  if (found == nullptr) return otherwise;
  // The parser returns a number too large for 64 bits as a float.
  if (!found->is_number_unsigned() ||
      found->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    Wrong(key, *found, "a whole number from 0 to 4294967295");
    return otherwise;
  }
  return found->get<uint32_t>();
}

bool JsonFields::Flag(const char* key, bool otherwise) {
  const json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) {
    Wrong(key, *found, "true or false");
    return otherwise;
  }
  return found->get<bool>();
}

std::string JsonFields::Text(const char* key, const std::string& otherwise) {
  const json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) {
    Wrong(key, *found, "a string");
    return otherwise;
  }
  return found->get<std::string>();
}

std::vector<std::string> JsonFields::Texts(const char* key) {
  const json* found = Find(key);
  if (found == nullptr) return {};
  std::vector<std::string> texts;
  const bool all_strings =
      found->is_array() &&
      std::all_of(found->begin(), found->end(),
                  [](const json& entry) { return entry.is_string(); });
  if (!all_strings) {
    Wrong(key, *found, "a list of strings");
    return texts;
  }
  for (const json& entry : *found) texts.push_back(entry.get<std::string>());
  return texts;
}

std::vector<uint32_t> JsonFields::Counts(const char* key) {
  const json* found = Find(key);
  if (found == nullptr) return {};
  std::vector<uint32_t> counts;
  const bool all_counts =
      found->is_array() &&
      std::all_of(found->begin(), found->end(), [](const json& entry) {
        return entry.is_number_unsigned() &&
               entry.get<uint64_t>() <= std::numeric_limits<uint32_t>::max();
      });
  if (!all_counts) {
    Wrong(key, *found, "a list of whole numbers");
    return counts;
  }
  for (const json& entry : *found) counts.push_back(entry.get<uint32_t>());
  return counts;
}

void JsonFields::CheckSpelling() {
  constexpr size_t kLong = 14;
  constexpr size_t kMostKeys = 1000;  // configurations have about 50
  if (object_.size() > kMostKeys) return;
  for (const auto& [key, value] : object_.items()) {
    if (asked_.contains(key) || key.size() > 64) continue;
    for (const std::string& known : asked_) {
      if (object_.contains(known) || known.size() < 6) continue;
      const int most = known.size() >= kLong ? 2 : 1;
      if (EditDistance(key, known) > most) continue;
      problems_.Add(key, absl::StrCat("is unknown; did you mean ", known, "?"));
      break;
    }
  }
}

}  // namespace weir::models
