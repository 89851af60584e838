// SPDX-License-Identifier: Apache-2.0
// Conversion of points to rows of a table.
#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/csv.h"
#include "base/text.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/fields.h"

namespace weir::plan {
namespace {

using google::protobuf::FieldDescriptor;
using Kind = SweepTable::Kind;

// Returns the result columns: all fields of an outcome except the point and the
// time limit, which `error` names.
std::vector<const FieldDescriptor*> Figures() {
  std::vector<const FieldDescriptor*> figures;
  const auto& type = *SweepOutcome::descriptor();
  for (int i = 1; i < type.field_count(); ++i) {
    if (type.field(i)->number() == SweepOutcome::kTimeLimitSecondsFieldNumber) {
      continue;
    }
    figures.push_back(type.field(i));
  }
  return figures;
}

Kind KindOf(const FieldDescriptor& field) {
  if (field.is_repeated()) return Kind::kText;  // "7/8/8/7"
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_BOOL:
      return Kind::kInteger;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Kind::kReal;
    default:
      return Kind::kText;
  }
}

// Converts a setting to the kind of its field. Requires: it was parsed before.
SweepCell CellOf(const FieldDescriptor& field, const std::string& value) {
  int64_t whole = 0;
  double number = 0;
  if (field.is_repeated()) return value;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      if (absl::SimpleAtoi(value, &whole)) return whole;
      return value;
    case FieldDescriptor::CPPTYPE_BOOL:
      return value == "true";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (absl::SimpleAtod(value, &number)) return number;
      return value;
    default:
      return value;
  }
}

std::string NameOf(SweepOutcomeKind kind) {
  switch (kind) {
    case SWEEP_DONE:
      return "done";
    case SWEEP_REFUSED:
      return "refused";
    default:
      return "failed";
  }
}

// Returns an empty cell for values of a point that is not done.
SweepCell CellOf(const SweepOutcome& outcome, const FieldDescriptor& field) {
  const auto& reflection = *outcome.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return NameOf(outcome.kind());
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = reflection.GetString(outcome, &field);
      if (text.empty()) return std::monostate();
      // Removes the number of the point, so that equal reasons have equal
      // texts.
      text = absl::StrReplaceAll(
          text, {{absl::StrCat("point ", outcome.point(), ": "), ""}});
      return text;
    }
    default:
      break;
  }
  if (outcome.kind() != SWEEP_DONE ||
      (field.has_presence() && !reflection.HasField(outcome, &field))) {
    return std::monostate();
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return int64_t{reflection.GetUInt32(outcome, &field)};
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(outcome, &field);
    default:
      return reflection.GetDouble(outcome, &field);
  }
}

std::string CsvCell(const SweepCell& cell) {
  if (const auto* whole = std::get_if<int64_t>(&cell)) {
    return absl::StrCat(*whole);
  }
  if (const auto* truth = std::get_if<bool>(&cell)) {
    return *truth ? "true" : "false";
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return ShortestNumber(*number);
  }
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return CsvField(*text);
  }
  return "";
}

}  // namespace

SweepTable TableOf(const ResolvedSweep& sweep) {
  SweepTable table{{"point"}, {Kind::kInteger}};
  for (const std::string& path : sweep.fields) {
    table.names.push_back(ShortField(path));
    table.kinds.push_back(KindOf(**FindField(*Scenario::descriptor(), path)));
  }
  for (const FieldDescriptor* figure : Figures()) {
    const bool kind = figure->cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    table.names.push_back(kind ? "outcome" : std::string(figure->name()));
    table.kinds.push_back(KindOf(*figure));
  }
  return table;
}

std::vector<SweepCell> RowOf(const ResolvedSweep& sweep,
                             const SweepOutcome& outcome) {
  std::vector<SweepCell> row = {int64_t{outcome.point()}};
  row.resize(1 + sweep.fields.size());
  for (const auto& [path, value] : ShownSettingsOf(sweep, outcome.point())) {
    const auto at = std::find(sweep.fields.begin(), sweep.fields.end(), path);
    row[1 + (at - sweep.fields.begin())] =
        CellOf(**FindField(*Scenario::descriptor(), path), value);
  }
  for (const FieldDescriptor* figure : Figures()) {
    row.push_back(CellOf(outcome, *figure));
  }
  return row;
}

bool IsSweepHeader(absl::string_view line) {
  return absl::StartsWith(line, "point,") &&
         absl::StrContains(line, ",outcome,error,");
}

std::string SweepCsv(const CollectedSweep& collected) {
  const auto line = [](const std::vector<std::string>& fields) {
    return absl::StrCat(absl::StrJoin(fields, ","), "\n");
  };
  std::string text = line(TableOf(collected.sweep).names);
  for (const auto& [point, outcome] : collected.outcomes) {
    std::vector<std::string> fields;
    for (const SweepCell& cell : RowOf(collected.sweep, outcome)) {
      fields.push_back(CsvCell(cell));
    }
    absl::StrAppend(&text, line(fields));
  }
  return text;
}

}  // namespace weir::plan
