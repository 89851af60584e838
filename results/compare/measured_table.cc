// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_table.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir::results {
namespace {

// One column of the file and its rule.
struct Source {
  CsvColumn column;
  MeasuredColumns::Column rule;
  std::shared_ptr<const RE2> pattern;  // null: none
};

// Returns null and adds a problem if the expression is invalid. RE2 needs time
// linear in the text, and no stack, for any expression and text.
std::shared_ptr<const RE2> Compile(const std::string& pattern,
                                   Problems* problems) {
  RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<const RE2>(pattern, options);
  if (!compiled->ok()) {
    problems->Add("pattern",
                  absl::StrCat("is \"", pattern, "\": ", compiled->error()));
    return nullptr;
  }
  if (compiled->NumberOfCapturingGroups() > 0) return compiled;
  problems->Add("pattern",
                absl::StrCat("is \"", pattern, "\", expected a (group)"));
  return nullptr;
}

class MeasuredTableReader {
 public:
  MeasuredTableReader(const CsvTable& table, const MeasuredColumns& columns)
      : table_(table), columns_(columns), problems_(table.label()) {}

  absl::StatusOr<MeasuredTable> Read() {
    TakeRules();
    TakeOthers();
    CheckConditions();
    RETURN_IF_ERROR(problems_.ToStatus());
    MeasuredTable measured;
    measured.label = table_.label();
    for (int row = 0; row < table_.num_rows(); ++row) {
      std::optional<MeasuredRow> read = ReadRow(row);
      if (read.has_value()) {
        measured.rows.push_back(*std::move(read));
      } else {
        ++measured.num_left_out;
      }
    }
    RETURN_IF_ERROR(problems_.ToStatus());
    return measured;
  }

 private:
  void TakeRules() {
    for (const MeasuredColumns::Column& rule : columns_.columns()) {
      const auto column = table_.Column(rule.from());
      if (!column.ok()) {
        problems_.Add(rule.from(),
                      "is named by the column map, but does not exist");
        continue;
      }
      Source source{*column, rule, {}};
      if (!rule.pattern().empty()) {
        source.pattern = Compile(rule.pattern(), &problems_);
      }
      taken_.insert(rule.from());
      sources_.push_back(std::move(source));
    }
    for (const std::string& name : columns_.ignore()) {
      if (!table_.HasColumn(name)) {
        problems_.Add(name, "is ignored by the column map, but does not exist");
      }
      taken_.insert(name);
    }
  }

  void TakeOthers() {
    for (const std::string& name : table_.header()) {
      if (taken_.contains(name)) continue;
      MeasuredColumns::Column rule;
      rule.set_from(name);
      rule.set_to(name);
      const auto column = table_.Column(name);
      if (column.ok()) sources_.push_back(Source{*column, rule, {}});
    }
  }

  void CheckConditions() {
    for (const auto& condition : columns_.where()) {
      const auto named = [&](const auto& source) {
        return source.rule.to() == condition.column();
      };
      if (table_.HasColumn(condition.column()) ||
          std::any_of(sources_.begin(), sources_.end(), named)) {
        continue;
      }
      problems_.Add(condition.column(),
                    "is named by --where, but does not exist");
    }
  }

  std::string Value(const Source& source, int row) {
    std::string text = source.column.Text(row);
    if (source.pattern != nullptr) {
      std::string group;
      if (!RE2::PartialMatch(text, *source.pattern, &group)) return "";
      text = std::move(group);
    }
    const auto word = source.rule.values().find(text);
    if (word != source.rule.values().end()) text = word->second;
    if (source.rule.scale() == 0 || text.empty()) return text;
    double number = 0;
    if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
      // Words such as OOM are not numbers and are not scaled.
      return text;
    }
    return ShortestNumber(number * source.rule.scale());
  }

  // Returns std::nullopt for a row that a condition leaves out.
  std::optional<MeasuredRow> ReadRow(int index) {
    MeasuredRow row;
    row.line = table_.rows()[index].line;
    for (const Source& source : sources_) {
      std::string text = Value(source, index);
      if (text.empty()) continue;
      row.fields.push_back({source.rule.to(), source.rule.from(), text});
    }
    for (const auto& constant : columns_.constants()) {
      row.fields.push_back(
          {constant.column(), "the column map", constant.value()});
    }
    for (const auto& condition : columns_.where()) {
      if (!Holds(condition, index, row)) return {};
    }
    absl::flat_hash_set<absl::string_view> seen;
    for (const MeasuredField& field : row.fields) {
      if (seen.insert(field.column).second) continue;
      problems_.Add(absl::StrCat(row.line),
                    absl::StrCat("gives ", field.column, " twice"));
    }
    return row;
  }

  bool Holds(const MeasuredColumns::Condition& condition, int index,
             const MeasuredRow& row) {
    std::string text;
    const auto column = table_.Column(condition.column());
    if (column.ok()) text = column->Text(index);
    if (!column.ok()) {
      for (const MeasuredField& field : row.fields) {
        if (field.column == condition.column()) text = field.text;
      }
    }
    return std::any_of(condition.values().begin(), condition.values().end(),
                       [&](const std::string& value) {
                         return absl::EqualsIgnoreCase(value, text);
                       });
  }

  const CsvTable& table_;
  const MeasuredColumns& columns_;
  Problems problems_;
  std::vector<Source> sources_;
  absl::flat_hash_set<std::string> taken_;
};

}  // namespace

absl::StatusOr<MeasuredTable> ReadMeasuredTable(
    absl::string_view label, absl::string_view text,
    const MeasuredColumns& columns) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  return MeasuredTableReader(table, columns).Read();
}

absl::StatusOr<std::vector<MeasuredColumns::Condition>> ParseConditions(
    absl::string_view text) {
  std::vector<MeasuredColumns::Condition> conditions;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == absl::string_view::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("is \"", part, "\", expected column=value"));
    }
    MeasuredColumns::Condition condition;
    condition.set_column(std::string(part.substr(0, equals)));
    for (absl::string_view value :
         absl::StrSplit(part.substr(equals + 1), '|')) {
      condition.add_values(std::string(value));
    }
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace weir::results
