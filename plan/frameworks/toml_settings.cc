// SPDX-License-Identifier: Apache-2.0
// Some broken files violate assertions of toml++ 3.3, and with NDEBUG it relies
// on them: make them exceptions.
namespace weir::plan {
struct TomlAssertion {};
[[noreturn]] inline void FailTomlAssertion() { throw TomlAssertion(); }
}  // namespace weir::plan
#ifdef NDEBUG
#undef NDEBUG
#define WEIR_RESTORE_NDEBUG
#endif
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::weir::plan::FailTomlAssertion())
#include <toml++/toml.h>
#ifdef WEIR_RESTORE_NDEBUG
#define NDEBUG
#endif

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {
namespace {

std::string ScalarText(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto truth = node.value_exact<bool>()) {
    return *truth ? "true" : "false";
  }
  if (const auto whole = node.value_exact<int64_t>()) {
    return absl::StrCat(*whole);
  }
  if (const auto real = node.value_exact<double>()) return absl::StrCat(*real);
  return "a date";
}

nlohmann::ordered_json ListOf(const toml::array& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const toml::node& item : list) {
    if (const toml::array* inner = item.as_array()) {
      json.push_back(ListOf(*inner));
    } else if (item.is_table()) {
      json.push_back("{...}");
    } else if (const auto whole = item.value_exact<int64_t>()) {
      json.push_back(*whole);
    } else {
      json.push_back(ScalarText(item));
    }
  }
  return json;
}

// The parser limits the number of levels.
void AddTable(const toml::table& table, const std::string& prefix,
              std::vector<Setting>* settings) {
  for (const auto& [key, node] : table) {
    const std::string name = absl::StrCat(prefix, std::string(key.str()));
    const int line = static_cast<int>(node.source().begin.line);
    if (const toml::table* inner = node.as_table()) {
      AddTable(*inner, name + ".", settings);
    } else if (const toml::array* list = node.as_array()) {
      settings->push_back(
          {name, DumpJson(ListOf(*list)), line, true, Setting::Form::kLiteral});
    } else {
      settings->push_back({name, ScalarText(node), line, true,
                           node.is_string() ? Setting::Form::kString
                                            : Setting::Form::kLiteral});
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadTomlSettings(const std::string& label,
                                                      absl::string_view text) {
  Problems problems(label);
  try {
    const toml::table table =
        toml::parse(std::string_view(text.data(), text.size()), label);
    std::vector<Setting> settings;
    AddTable(table, "", &settings);
    return settings;
  } catch (const toml::parse_error& error) {
    problems.AddAt(
        static_cast<int>(error.source().begin.line), "",
        absl::StrCat("is not TOML: ", std::string(error.description())));
  } catch (const TomlAssertion&) {
    problems.Add("", "is not TOML");
  }
  return problems.ToStatus();
}

}  // namespace weir::plan
