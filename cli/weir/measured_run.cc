// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/measured_run.h"

#include <google/protobuf/descriptor.h>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "cli/options/options.h"
#include "cli/options/values.h"
#include "models/model.pb.h"

namespace weir::cli {
namespace {

using google::protobuf::FieldDescriptor;

// Converts "--global-batch-size" to "global_batch_size".
std::string ColumnOf(absl::string_view name) {
  while (absl::ConsumePrefix(&name, "-")) continue;
  return absl::StrReplaceAll(name, {{"-", "_"}});
}

const Option* FindOption(const Options& options, absl::string_view column) {
  for (const Option& option : options) {
    for (const std::string& name : AllNames(option)) {
      if (ColumnOf(name) == column) return &option;
    }
  }
  return nullptr;
}

const FieldDescriptor* FindField(const std::string& column) {
  return Transformer::descriptor()->FindFieldByName(column);
}

bool IsNote(absl::string_view column) {
  return absl::StartsWith(column, "note");
}

std::vector<std::string> KnownColumns() {
  ScenarioFlags flags;
  std::vector<std::string> known = {"name", "scenario", "flops_formula",
                                    "note"};
  for (const Option& option : OptionsOfScenario(&flags)) {
    for (const std::string& name : AllNames(option)) {
      known.push_back(ColumnOf(name));
    }
  }
  for (int i = 0; i < Transformer::descriptor()->field_count(); ++i) {
    known.push_back(Transformer::descriptor()->field(i)->name());
  }
  for (const results::Quantity& quantity : results::AllQuantities()) {
    known.emplace_back(quantity.name);
  }
  return known;
}

absl::Status SetField(const FieldDescriptor& field, const std::string& text,
                      Transformer* transformer) {
  const auto* reflection = transformer->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const int value,
                       ParseChoice(text, {{"true", 1}, {"false", 0}}));
      reflection->SetBool(transformer, &field, value != 0);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      ASSIGN_OR_RETURN(const uint32_t value, ParseCount(text));
      reflection->SetUInt32(transformer, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double value, ParsePositive(text));
      reflection->SetDouble(transformer, &field, value);
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError("cannot be a column, expected a model");
  }
}

// Stores a field that is neither an option nor a dimension of the model.
absl::Status TakeMeasurement(const results::MeasuredField& field,
                             MeasuredRun* run) {
  if (field.column == "name") {
    run->name = field.text;
    return absl::OkStatus();
  }
  if (field.column == "scenario") {
    run->flags.scenario = field.text;
    return absl::OkStatus();
  }
  if (field.column == "flops_formula") {
    ASSIGN_OR_RETURN(run->formula, results::ParseFlopsFormula(field.text));
    return absl::OkStatus();
  }
  const results::Quantity* quantity = results::FindQuantity(field.column);
  if (quantity == nullptr) return absl::OkStatus();  // a note
  if (absl::EqualsIgnoreCase(field.text, "oom")) {
    run->out_of_memory = true;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const double value, ParsePositive(field.text));
  run->numbers.push_back({quantity, value});
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckColumns(const results::MeasuredTable& table) {
  ScenarioFlags flags;
  const Options options = OptionsOfScenario(&flags);
  const std::vector<std::string> known = KnownColumns();
  const absl::flat_hash_set<std::string> names(known.begin(), known.end());
  absl::flat_hash_set<std::string> seen;
  Problems problems(table.label);
  bool measured = false;
  for (const results::MeasuredRow& row : table.rows) {
    for (const results::MeasuredField& field : row.fields) {
      measured = measured || results::FindQuantity(field.column) != nullptr;
      if (!seen.insert(field.column).second || names.contains(field.column) ||
          IsNote(field.column)) {
        continue;
      }
      problems.Add(
          absl::StrCat("column ", field.source),
          absl::StrCat("means nothing to weir", DidYouMean(field.column, known),
                       "; expected an option of \"weir simulate\", a field of "
                       "a transformer, a measured quantity, or a map that "
                       "renames or ignores it"));
    }
  }
  if (!measured && !table.rows.empty()) {
    problems.Add("", "has no measured column, such as step_seconds");
  }
  return problems.ToStatus();
}

absl::Status ReadRun(const results::MeasuredTable& table,
                     const results::MeasuredRow& row, const ScenarioFlags& base,
                     MeasuredRun* run) {
  run->line = row.line;
  run->flags = base;
  const Options options = OptionsOfScenario(&run->flags);
  Problems problems(absl::StrCat(table.label, ":", row.line));
  absl::flat_hash_map<const Option*, std::string> given;
  for (const results::MeasuredField& field : row.fields) {
    absl::Status status;
    if (const Option* option = FindOption(options, field.column)) {
      const auto [known, is_new] = given.try_emplace(option, field.source);
      status = is_new ? option->set(field.text)
                      : absl::InvalidArgumentError(
                            absl::StrCat("says the same as ", known->second,
                                         ", expected one of them"));
    } else if (const FieldDescriptor* size = FindField(field.column)) {
      status = SetField(*size, field.text,
                        run->flags.overrides.mutable_transformer());
    } else {
      status = TakeMeasurement(field, run);
    }
    if (!status.ok()) problems.Add(field.source, status.message());
  }
  return problems.ToStatus();
}

}  // namespace weir::cli
