// SPDX-License-Identifier: Apache-2.0
// Reads typed fields of a JSON object. Collects problems instead of stopping at
// the first.
#ifndef WEIR_MODELS_IMPORT_JSON_FIELDS_H_
#define WEIR_MODELS_IMPORT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"

namespace weir::models {

// Parses a JSON object. A syntax error contains line and column.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view label,
                                               absl::string_view text);

// Reader of a JSON object. Returns the default for a key that is absent, null
// or has a problem.
class JsonFields {
 public:
  // Requires: both arguments outlive this object.
  JsonFields(const nlohmann::json& object, Problems* problems)
      : object_(object), problems_(*problems) {}

  bool Has(const char* key) const;       // present and not null
  bool Mentions(const char* key) const;  // present, possibly null
  uint32_t Count(const char* key, uint32_t otherwise);
  bool Flag(const char* key, bool otherwise);
  std::string Text(const char* key, const std::string& otherwise);
  std::vector<std::string> Texts(const char* key);
  std::vector<uint32_t> Counts(const char* key);

  // Adds a problem for every key that nothing above asked for and that differs
  // in one letter (in two if it is long) from one that is asked for and absent.
  void CheckSpelling();

 private:
  const nlohmann::json* Find(const char* key) const;
  void Wrong(const char* key, const nlohmann::json& found,
             absl::string_view expected);

  const nlohmann::json& object_;
  Problems& problems_;
  mutable std::set<std::string> asked_;  // keys
};

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_JSON_FIELDS_H_
