// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_run.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/synonyms.h"
#include "base/values.h"
#include "results/memory_limits.h"
#include "results/summary.h"

namespace weir::results {
namespace {

using google::protobuf::FieldDescriptor;

bool IsNote(absl::string_view column) {
  return absl::StartsWith(column, "note");
}

const RunSetting* FindSetting(const std::vector<RunSetting>& settings,
                              absl::string_view column) {
  for (const RunSetting& setting : settings) {
    for (const std::string& name : setting.columns) {
      if (name == column) return &setting;
    }
  }
  return nullptr;
}

std::vector<std::string> KnownColumns(const std::vector<RunSetting>& settings) {
  std::vector<std::string> known = {"name", "scenario", "flops_formula",
                                    "note"};
  for (const RunSetting& setting : settings) {
    known.insert(known.end(), setting.columns.begin(), setting.columns.end());
  }
  for (const Quantity& quantity : AllQuantities()) {
    known.emplace_back(quantity.name);
  }
  return known;
}

absl::Status SetField(const FieldDescriptor& field, const std::string& text,
                      google::protobuf::Message* message) {
  const auto* reflection = message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const int value,
                       ParseChoice(text, {{"true", 1}, {"false", 0}}));
      reflection->SetBool(message, &field, value != 0);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      ASSIGN_OR_RETURN(const uint32_t value, ParseCount(text));
      reflection->SetUInt32(message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double value, ParsePositive(text));
      reflection->SetDouble(message, &field, value);
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError(
          "cannot be set by a column, expected it in the model file");
  }
}

// Stores a field that is not a setting.
absl::Status TakeMeasurement(const MeasuredField& field, MeasuredRun* run) {
  if (field.column == "name") {
    run->name = field.text;
    return absl::OkStatus();
  }
  if (field.column == "scenario") {
    run->scenario = field.text;
    return absl::OkStatus();
  }
  if (field.column == "flops_formula") {
    ASSIGN_OR_RETURN(run->formula, ParseFlopsFormula(field.text));
    return absl::OkStatus();
  }
  const Quantity* quantity = FindQuantity(field.column);
  if (quantity == nullptr) return absl::OkStatus();  // a note
  if (absl::EqualsIgnoreCase(field.text, "oom")) {
    run->out_of_memory = true;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const double value, ParsePositive(field.text));
  run->numbers.push_back({quantity, value});
  return absl::OkStatus();
}

void SetMemoryInterval(const Result& result, const Quantity& quantity,
                       ComparedNumber* number) {
  if (!result.has_memory_uncertainty()) return;
  const MemoryUncertainty& error = result.memory_uncertainty();
  const MemoryLimits limits = quantity.memory == MemoryScope::kAllocated
                                  ? AllocatedLimitsOf(error)
                                  : LimitsOf(error);
  number->low =
      std::max(number->predicted - limits.less_bytes / quantity.unit, 0.0);
  number->high = number->predicted + limits.more_bytes / quantity.unit;
}

// Sets the interval of the quantity that follows from the interval of the time:
// a throughput is lowest if the time is highest.
void SetInterval(const Result& result, const FlopsBasis& basis,
                 const Quantity& quantity, ComparedNumber* number) {
  if (quantity.memory != MemoryScope::kNone) {
    return SetMemoryInterval(result, quantity, number);
  }
  if (!result.has_batch_seconds_low()) return;
  const auto at = [&](double batch_seconds) {
    const auto value =
        quantity.predict(AtBatchSeconds(result, batch_seconds), basis);
    return value.ok() ? *value / quantity.unit : number->predicted;
  };
  std::tie(number->low, number->high) = std::minmax(
      {at(result.batch_seconds_low()), at(result.batch_seconds_high())});
}

}  // namespace

std::vector<RunSetting> SettingsOfFields(
    const google::protobuf::Descriptor& descriptor,
    const std::function<google::protobuf::Message*()>& message) {
  std::vector<RunSetting> settings;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* field = descriptor.field(i);
    settings.push_back(
        {{field->name()}, [field, message](const std::string& text) {
           return SetField(*field, text, message());
         }});
  }
  return settings;
}

absl::Status CheckColumns(const MeasuredTable& table,
                          const std::vector<RunSetting>& settings) {
  const std::vector<std::string> known = KnownColumns(settings);
  const absl::flat_hash_set<std::string> names(known.begin(), known.end());
  absl::flat_hash_set<std::string> seen;
  Problems problems(table.label);
  bool measured = false;
  for (const MeasuredRow& row : table.rows) {
    for (const MeasuredField& field : row.fields) {
      measured = measured || FindQuantity(field.column) != nullptr;
      if (!seen.insert(field.column).second || names.contains(field.column) ||
          IsNote(field.column)) {
        continue;
      }
      problems.Add(
          absl::StrCat("column ", field.source),
          absl::StrCat("is unknown", SuggestName(field.column, known),
                       "; expected an option of \"weir simulate\", a field of "
                       "a transformer or a measured quantity; --columns "
                       "renames or ignores columns"));
    }
  }
  if (!measured && !table.rows.empty()) {
    problems.Add("", "has no measured column, such as step_seconds");
  }
  return problems.ToStatus();
}

absl::Status ReadRun(const MeasuredTable& table, const MeasuredRow& row,
                     const std::vector<RunSetting>& settings,
                     MeasuredRun* run) {
  run->line = row.line;
  Problems problems(absl::StrCat(table.label, ":", row.line));
  absl::flat_hash_map<const RunSetting*, std::string> given;
  for (const MeasuredField& field : row.fields) {
    absl::Status status;
    if (const RunSetting* setting = FindSetting(settings, field.column)) {
      const auto [known, is_new] = given.try_emplace(setting, field.source);
      status = is_new ? setting->set(field.text)
                      : absl::InvalidArgumentError(absl::StrCat(
                            "has the same meaning as ", known->second,
                            ", expected one of them"));
    } else {
      status = TakeMeasurement(field, run);
    }
    if (!status.ok()) problems.Add(field.source, status.message());
  }
  return problems.ToStatus();
}

void CompareRun(const MeasuredRun& run, const absl::StatusOr<Result>& result,
                const FlopsBasis& basis, Accuracy* accuracy) {
  const auto skip = [&](const absl::Status& status) {
    accuracy->skipped.push_back(
        {run.line, run.name,
         absl::StrReplaceAll(std::string(status.message()), {{"\n", "; "}})});
  };
  if (absl::IsCancelled(result.status())) {
    ++accuracy->num_not_reached;
    return;
  }
  if (!result.ok()) return skip(result.status());
  const bool fits = FitsMemory(*result);
  const double use = MemoryUse(*result);
  if (run.out_of_memory)
    accuracy->out_of_memory.push_back({run.line, run.name, fits, use});
  if (!run.out_of_memory && run.numbers.empty()) {
    return skip(absl::InvalidArgumentError("the row has no measured value"));
  }
  for (const MeasuredNumber& number : run.numbers) {
    const auto predicted = number.quantity->predict(*result, basis);
    if (!predicted.ok()) {
      skip(predicted.status());
      continue;
    }
    ComparedNumber compared = {run.line,
                               run.name,
                               std::string(number.quantity->name),
                               number.value,
                               *predicted / number.quantity->unit,
                               fits};
    compared.memory_use = use;
    SetInterval(*result, basis, *number.quantity, &compared);
    accuracy->numbers.push_back(std::move(compared));
  }
}

std::optional<double> MeasuredBatchSeconds(const MeasuredRun& run,
                                           const Result& result,
                                           const FlopsBasis& basis) {
  constexpr double kEqual = 1e-9;
  const double seconds = result.batch_seconds();
  for (const MeasuredNumber& number : run.numbers) {
    const auto at = number.quantity->predict(result, basis);
    const auto doubled =
        number.quantity->predict(AtBatchSeconds(result, 2 * seconds), basis);
    if (!at.ok() || !doubled.ok() || !(*at > 0)) continue;
    const double ratio = number.value * number.quantity->unit / *at;
    if (std::abs(*doubled / *at - 2) < kEqual) return seconds * ratio;
    if (std::abs(*doubled / *at - 0.5) < kEqual) return seconds / ratio;
  }
  return {};
}

}  // namespace weir::results
