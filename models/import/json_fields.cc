// SPDX-License-Identifier: Apache-2.0
#include "models/import/json_fields.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_syntax.h"
#include "base/json_text.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "models/import/ignored_keys.h"

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

// Replaces the tokens of numbers that JSON does not have by null. They can only
// stand outside of strings, whose quotes may be escaped.
std::string WithoutInfinities(absl::string_view text) {
  static constexpr absl::string_view kTokens[] = {"-Infinity", "Infinity",
                                                  "NaN"};
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    size_t length = 1;
    absl::string_view replacement = text.substr(0, 1);
    if (in_string && text[0] == '\\' && text.size() > 1) {
      replacement = text.substr(0, length = 2);
    } else if (text[0] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const absl::string_view token : kTokens) {
        if (!absl::StartsWith(text, token)) continue;
        length = token.size();
        replacement = "null";
        break;
      }
    }
    absl::StrAppend(&result, replacement);
    text.remove_prefix(length);
  }
  return result;
}

// Returns true for values that turn a feature off.
bool IsOff(const json& value) {
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_boolean()) return !value.get<bool>();
  return value.empty() ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view label,
                                     absl::string_view text) {
  std::string replaced;
  if (absl::StrContains(text, "Infinity") || absl::StrContains(text, "NaN")) {
    replaced = WithoutInfinities(text);
    text = replaced;
  }
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
  Add(key, absl::StrCat("is ", Show(found), ", expected ", expected));
}

void JsonFields::Add(absl::string_view key, absl::string_view what) {
  problems_.Add(absl::StrCat(path_, key), what);
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

double JsonFields::Number(const char* key, double otherwise) {
  const json* found = Find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_number()) {
    Wrong(key, *found, "a number");
    return otherwise;
  }
  return found->get<double>();
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

const json* JsonFields::Object(const char* key) {
  const json* found = Find(key);
  if (found == nullptr || found->is_object()) return found;
  Wrong(key, *found, "an object");
  return nullptr;
}

std::vector<const json*> JsonFields::Objects(const char* key) {
  const json* found = Find(key);
  if (found == nullptr) return {};
  std::vector<const json*> objects;
  const bool all_objects =
      found->is_array() &&
      std::all_of(found->begin(), found->end(),
                  [](const json& entry) { return entry.is_object(); });
  if (!all_objects) {
    Wrong(key, *found, "a list of objects");
    return objects;
  }
  for (const json& entry : *found) objects.push_back(&entry);
  return objects;
}

void JsonFields::CheckUnknown() {
  constexpr size_t kLong = 14;
  constexpr size_t kMostKeys = 1000;  // configurations have about 50
  if (object_.size() > kMostKeys) return;
  for (const auto& item : object_.items()) {
    const std::string& key = item.key();
    const auto& value = item.value();
    if (asked_.contains(key) || key.size() > 64 || IsIgnoredKey(key)) continue;
    const auto near = std::find_if(
        asked_.begin(), asked_.end(), [&](const std::string& known) {
          const int most = known.size() >= kLong ? 2 : 1;
          return !object_.contains(known) && known.size() >= 6 &&
                 EditDistance(key, known) <= most;
        });
    if (near != asked_.end()) {
      Add(key, absl::StrCat("is unknown; did you mean ", *near, "?"));
    } else if (!IsOff(value) && NamesSize(key)) {
      Add(key, absl::StrCat("is ", Show(value),
                            ", expected no such key: weir does not know how it "
                            "changes models of this model_type",
                            DidYouMean(key, {asked_.begin(), asked_.end()})));
    }
  }
}

}  // namespace weir::models
