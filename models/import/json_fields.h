// SPDX-License-Identifier: Apache-2.0
// Reads typed fields of a JSON object. Collects problems instead of stopping at
// the first.
#ifndef WEIR_MODELS_IMPORT_JSON_FIELDS_H_
#define WEIR_MODELS_IMPORT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"

namespace weir::models {

// Parses a JSON object. A syntax error contains line and column. The numbers
// Infinity, -Infinity and NaN, which Python writes though JSON does not have
// them, become null. Returns InvalidArgument if it is not a JSON object.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view label,
                                               absl::string_view text);

// Reader of a JSON object. Returns the default for a key that is absent, null
// or has a problem.
class JsonFields {
 public:
  // `path` precedes keys in messages: "text_config.". Requires: the first two
  // arguments outlive this object.
  JsonFields(const nlohmann::json& object, Problems* problems,
             std::string path = "")
      : object_(object), problems_(*problems), path_(std::move(path)) {}

  bool Has(const char* key) const;       // present and not null
  bool Mentions(const char* key) const;  // present, possibly null
  uint32_t Count(const char* key, uint32_t otherwise);
  double Number(const char* key, double otherwise);
  bool Flag(const char* key, bool otherwise);
  std::string Text(const char* key, const std::string& otherwise);
  std::vector<std::string> Texts(const char* key);
  std::vector<uint32_t> Counts(const char* key);
  // Returns an object, or nullptr.
  const nlohmann::json* Object(const char* key);
  // Returns a list of objects; empty if the key has none.
  std::vector<const nlohmann::json*> Objects(const char* key);

  // Returns a reader of an object inside this one. Messages put `path` before
  // its keys.
  JsonFields Inside(const nlohmann::json& object, const std::string& path) {
    return JsonFields(object, &problems_, path_ + path);
  }

  // Adds a problem: "<path><key> <what>".
  void Add(absl::string_view key, absl::string_view what);

  // Adds a problem for every key that nothing above asked for, unless it is
  // IsIgnoredKey: if it has a name like one that is asked for and absent, and
  // if it NamesSize and its value does not turn a feature off (null, false, 0,
  // empty).
  void CheckUnknown();

 private:
  const nlohmann::json* Find(const char* key) const;
  void Wrong(const char* key, const nlohmann::json& found,
             absl::string_view expected);

  const nlohmann::json& object_;
  Problems& problems_;
  std::string path_;
  mutable std::set<std::string> asked_;  // keys
};

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_JSON_FIELDS_H_
