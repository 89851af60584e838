// SPDX-License-Identifier: Apache-2.0
#include "results/report/document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "results/report/document_kinds.h"

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;

const char* TypeText(JsonType type) {
  switch (type) {
    case JsonType::kNumber:
      return "a number";
    case JsonType::kNumberOrNull:
      return "a number or null";
    case JsonType::kText:
      return "text";
    case JsonType::kArray:
      return "an array";
    case JsonType::kObject:
      return "an object";
    case JsonType::kBoolean:
      break;
  }
  return "true or false";
}

bool Has(const Json& value, JsonType type) {
  switch (type) {
    case JsonType::kNumber:
      return value.is_number();
    case JsonType::kNumberOrNull:
      return value.is_number() || value.is_null();
    case JsonType::kText:
      return value.is_string();
    case JsonType::kArray:
      return value.is_array();
    case JsonType::kObject:
      return value.is_object();
    case JsonType::kBoolean:
      break;
  }
  return value.is_boolean();
}

// Reports values of one field that are missing or have another type. If a
// parent has the wrong type, only the check of the parent reports it.
class FieldCheck {
 public:
  FieldCheck(const DocumentField& field, Problems* problems)
      : field_(field),
        parts_(absl::StrSplit(field.path, '/')),
        problems_(*problems) {}

  void Check(const Json& value, const std::string& path, size_t depth) {
    if (depth == parts_.size()) {
      if (!Has(value, field_.type)) {
        Add(path, absl::StrCat("is ", value.type_name(), ", expected ",
                               TypeText(field_.type)));
      }
      return;
    }
    const std::string part(parts_[depth]);
    if (part == "*") {
      CheckEntries(value, path, depth);
    } else if (value.is_object() && value.contains(part)) {
      Check(value[part], absl::StrCat(path, ".", part), depth + 1);
    } else if (value.is_object() && depth + 1 == parts_.size() &&
               !field_.optional) {
      Add(absl::StrCat(path, ".", part),
          absl::StrCat("is missing, expected ", TypeText(field_.type)));
    }
  }

 private:
  void CheckEntries(const Json& value, const std::string& path, size_t depth) {
    if (!value.is_structured()) return;
    size_t i = 0;
    for (const Json& entry : value) {
      Check(entry, absl::StrCat(path, "[", i++, "]"), depth + 1);
      if (has_problem_) return;  // the others are like it
    }
  }

  void Add(const std::string& path, const std::string& message) {
    has_problem_ = true;
    problems_.Add(path, message);
  }

  const DocumentField& field_;
  const std::vector<absl::string_view> parts_;
  Problems& problems_;
  bool has_problem_ = false;
};

const DocumentKind* FindKind(const Json& result) {
  for (const DocumentKind& kind : DocumentKinds()) {
    const auto has = [&](const char* name) { return result.contains(name); };
    if (std::all_of(kind.marks.begin(), kind.marks.end(), has)) return &kind;
  }
  return nullptr;
}

std::string CommandNames() {
  std::vector<std::string> names;
  for (const DocumentKind& kind : DocumentKinds())
    names.emplace_back(kind.command);
  return absl::StrJoin(names, ", ");
}

std::string TextOf(const Json& envelope, const char* member) {
  const auto at = envelope.find(member);
  return at != envelope.end() && at->is_string() ? at->get<std::string>() : "";
}

std::vector<std::string> WarningsOf(const Json& envelope) {
  std::vector<std::string> warnings;
  const auto at = envelope.find("warnings");
  if (at == envelope.end() || !at->is_array()) return warnings;
  for (const Json& warning : *at) {
    if (warning.is_string()) warnings.push_back(warning.get<std::string>());
  }
  return warnings;
}

// Describes JSON that no report shows.
std::string Describe(const Json& json) {
  const std::string command =
      json.is_object() ? TextOf(json, "command") : std::string();
  if (json.is_object() && TextOf(json, "tool") == "weir") {
    return absl::StrCat(
        "the JSON output of weir ",
        command.empty() ? "" : EscapeLine(command.substr(0, 80)));
  }
  if (json.is_object() && json.contains("traceEvents")) return "a JSON trace";
  return "JSON that is not the output of a command of weir";
}

}  // namespace

absl::StatusOr<Document> ReadDocument(absl::string_view label,
                                      absl::string_view text) {
  Problems problems(label);
  const Json envelope = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (envelope.is_discarded()) {
    problems.Add("", "is not valid JSON");
    return problems.ToStatus();
  }
  // The proof next to a synthesized schedule is the result itself.
  const bool has_result = envelope.is_object() && envelope.contains("result");
  const Json& result = has_result ? envelope["result"] : envelope;
  const DocumentKind* kind = result.is_object() ? FindKind(result) : nullptr;
  if (kind == nullptr) {
    problems.Add("", absl::StrCat("is ", Describe(envelope),
                                  ", expected a file written by --out, or the "
                                  "JSON output of ",
                                  CommandNames()));
    return problems.ToStatus();
  }
  for (const DocumentField& field : kind->fields) {
    FieldCheck(field, &problems).Check(result, "result", 0);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  Document document;
  document.type = kind->type;
  document.title = kind->title;
  document.command = has_result ? TextOf(envelope, "command") : "";
  document.version = has_result ? TextOf(envelope, "version") : "";
  if (has_result) document.warnings = WarningsOf(envelope);
  Json kept = result;
  if (!kind->kept.empty()) {
    kept = Json::object();
    for (const char* name : kind->kept) {
      if (result.contains(name)) kept[name] = result[name];
    }
  }
  document.section = {{"type", document.type},
                      {"title", document.title},
                      {"command", document.command},
                      {"warnings", document.warnings},
                      {"result", std::move(kept)}};
  return document;
}

}  // namespace weir::results
