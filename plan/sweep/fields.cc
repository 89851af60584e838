// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "models/recipe.h"
#include "plan/sweep/short_names.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kAll = -1;

constexpr char kPrecision[] = "training.precision";
constexpr char kPackedSequences[] = "batch.packed_sequences.fixed";

struct Step {
  std::string name;
  int index = kAll;
};

// Parses "stages" or "stages[0]".
absl::StatusOr<Step> ParseStep(absl::string_view text) {
  const size_t open = text.find('[');
  Step step{std::string(text.substr(0, open)), kAll};
  if (open == absl::string_view::npos) return step;
  absl::string_view index = text.substr(open + 1);
  if (!absl::ConsumeSuffix(&index, "]") ||
      !absl::SimpleAtoi(index, &step.index) || step.index < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has \"", text, "\", expected an index as in ", step.name, "[0]"));
  }
  return step;
}

absl::StatusOr<std::vector<Step>> ParsePath(absl::string_view path) {
  std::vector<Step> steps;
  for (absl::string_view text : absl::StrSplit(path, '.')) {
    ASSIGN_OR_RETURN(Step step, ParseStep(text));
    steps.push_back(std::move(step));
  }
  return steps;
}

// `outer`: messages that contain this one. A message inside itself (a block of
// a model is described like a model) is left out.
void AddPaths(const Descriptor& type, const std::string& prefix,
              std::vector<const Descriptor*>* outer,
              std::vector<std::string>* paths) {
  if (std::find(outer->begin(), outer->end(), &type) != outer->end()) return;
  outer->push_back(&type);
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, std::string(field.name()));
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddPaths(*field.message_type(), absl::StrCat(path, "."), outer, paths);
    } else {
      paths->push_back(path);
    }
  }
  outer->pop_back();
}

absl::string_view LastName(absl::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

// Suggests paths that end in the same name, else the nearest one.
absl::Status NoField(const Descriptor& type, absl::string_view path) {
  const std::vector<std::string> paths = FieldPaths(type);
  std::vector<std::string> same, within, last_names;
  for (const std::string& known : paths) {
    if (LastName(known) == LastName(path)) same.push_back(known);
    if (absl::StartsWith(known, absl::StrCat(path, "."))) {
      within.push_back(known);
    }
    last_names.emplace_back(LastName(known));
  }
  if (!within.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is a message, expected one of its fields: ",
                     absl::StrJoin(within, ", ")));
  }
  std::string hint = DidYouMean(path, paths);
  for (const auto& [known, long_path] : ShortNames()) {
    if (hint.empty() && EditDistance(path, known) == 1) {
      hint = absl::StrCat("; did you mean ", known, "?");
    }
  }
  if (!same.empty()) {
    hint = absl::StrCat("; did you mean ", absl::StrJoin(same, " or "), "?");
  } else if (hint.empty()) {
    const std::string near =
        NearestWord(std::string(LastName(path)), last_names);
    for (const std::string& known : paths) {
      if (near.empty() || LastName(known) != near) continue;
      hint = absl::StrCat("; did you mean ", known, "?");
      break;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("is not a field of ", std::string(type.name()), hint));
}

absl::Status Unexpected(absl::string_view value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("is \"", value, "\", expected ", expected));
}

// Values that flags spell in another way than their names.
struct Spelling {
  absl::string_view type;
  absl::string_view text;
  int value;
};
constexpr Spelling kSpellings[] = {
    {"TokenDispatcher", "alltoall", TOKENS_ALL_TO_ALL},
    {"TokenDispatcher", "flex", TOKENS_DEEPEP},
    {"TokenDispatcher", "hybridep", TOKENS_HYBRID_EP},
    {"VocabularyParallel", "none", VOCABULARY_NOT_SHARDED},
    {"Optimizer", "sgd", SGD_MOMENTUM},
};

// Accepts "MIXED_BF16", "mixed-bf16" and, if only one value ends so, "bf16".
absl::StatusOr<int> EnumValue(const EnumDescriptor& type,
                              absl::string_view text) {
  for (const Spelling& spelling : kSpellings) {
    if (std::string(type.name()) == spelling.type &&
        absl::EqualsIgnoreCase(text, spelling.text)) {
      return spelling.value;
    }
  }
  const std::string wanted =
      absl::AsciiStrToUpper(absl::StrReplaceAll(text, {{"-", "_"}}));
  std::vector<int> numbers;
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string name(type.value(i)->name());
    if (name == wanted) return type.value(i)->number();
    if (absl::EndsWith(name, absl::StrCat("_", wanted))) {
      numbers.push_back(type.value(i)->number());
    }
    if (type.value(i)->number() != 0) names.push_back(name);
  }
  if (numbers.size() == 1 && !wanted.empty()) return numbers[0];
  return Unexpected(text, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
}

// A value to set: a singular field, an entry of a list (`index`), or a new
// entry (kAll).
class Target {
 public:
  Target(Message* message, const FieldDescriptor* field, int index)
      : message_(message),
        reflection_(message->GetReflection()),
        field_(field),
        index_(index) {}

  absl::Status Set(const std::string& text) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32: {
        uint32_t number = 0;
        if (!absl::SimpleAtoi(text, &number) || number > INT32_MAX) {
          return Unexpected(text, "a whole number from 0 to 2147483647");
        }
        Put(&Reflection::SetUInt32, &Reflection::SetRepeatedUInt32,
            &Reflection::AddUInt32, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double number = 0;
        if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
          return Unexpected(text, "a finite number");
        }
        Put(&Reflection::SetDouble, &Reflection::SetRepeatedDouble,
            &Reflection::AddDouble, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        if (text != "true" && text != "false") {
          return Unexpected(text, "true or false");
        }
        Put(&Reflection::SetBool, &Reflection::SetRepeatedBool,
            &Reflection::AddBool, text == "true");
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        ASSIGN_OR_RETURN(const int number,
                         EnumValue(*field_->enum_type(), text));
        Put(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue,
            &Reflection::AddEnumValue, number);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_STRING:
        Put(&Reflection::SetString, &Reflection::SetRepeatedString,
            &Reflection::AddString, text);
        return absl::OkStatus();
      default:
        return absl::UnimplementedError("has a type that cannot be set");
    }
  }

 private:
  template <typename Singular, typename Entry, typename Add, typename Value>
  void Put(Singular set, Entry set_entry, Add add, const Value& value) {
    if (!field_->is_repeated()) {
      (reflection_->*set)(message_, field_, value);
    } else if (index_ == kAll) {
      (reflection_->*add)(message_, field_, value);
    } else {
      (reflection_->*set_entry)(message_, field_, index_, value);
    }
  }

  Message* message_;
  const Reflection* reflection_;
  const FieldDescriptor* field_;
  int index_;
};

absl::Status SetLast(Message* message, const FieldDescriptor* field, int index,
                     absl::string_view value) {
  Target target(message, field, index);
  if (!field->is_repeated() || index != kAll) {
    return target.Set(std::string(value));
  }
  message->GetReflection()->ClearField(message, field);
  for (absl::string_view entry : absl::StrSplit(value, '/')) {
    RETURN_IF_ERROR(target.Set(std::string(entry)));
  }
  return absl::OkStatus();
}

// Sets a precision, or the recipe of that name.
absl::Status SetPrecision(absl::string_view value, Scenario* scenario) {
  Training& training = *scenario->mutable_training();
  const auto precision = EnumValue(*Precision_descriptor(), value);
  if (precision.ok()) {
    training.set_precision(static_cast<Precision>(*precision));
    training.clear_recipe();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(models::LoadRecipe(std::string(value)).status());
  training.set_recipe(models::RecipeNamed(value));
  training.clear_precision();
  return absl::OkStatus();
}

// Sets the lengths of documents as --packed-sequences does, also to other
// distributions.
absl::Status SetPackedSequences(absl::string_view value, Scenario* scenario) {
  ASSIGN_OR_RETURN(*scenario->mutable_batch()->mutable_packed_sequences(),
                   scenarios::ParseSequenceLengths(value));
  return absl::OkStatus();
}

absl::Status CheckEntries(const Message& message, const FieldDescriptor* field,
                          int index) {
  const int size = message.GetReflection()->FieldSize(message, field);
  if (index < size && size > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("has no entry ", std::string(field->name()),
                   index == kAll ? "" : absl::StrCat("[", index, "]"),
                   " in the base scenario, which has ", size));
}

absl::Status SetStep(Message* message, const std::vector<Step>& steps,
                     size_t depth, absl::string_view value) {
  const Step& step = steps[depth];
  const FieldDescriptor* field =
      message->GetDescriptor()->FindFieldByName(step.name);
  const Reflection* reflection = message->GetReflection();
  const bool repeated = field->is_repeated();
  if (repeated && step.index != kAll) {
    RETURN_IF_ERROR(CheckEntries(*message, field, step.index));
  }
  if (depth + 1 == steps.size()) {
    return SetLast(message, field, step.index, value);
  }
  if (!repeated) {
    return SetStep(reflection->MutableMessage(message, field), steps, depth + 1,
                   value);
  }
  RETURN_IF_ERROR(CheckEntries(*message, field, step.index));
  const int size = reflection->FieldSize(*message, field);
  for (int i = 0; i < size; ++i) {
    if (step.index != kAll && step.index != i) continue;
    RETURN_IF_ERROR(
        SetStep(reflection->MutableRepeatedMessage(message, field, i), steps,
                depth + 1, value));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FieldPaths(const Descriptor& type) {
  std::vector<std::string> paths;
  std::vector<const Descriptor*> outer;
  AddPaths(type, "", &outer, &paths);
  return paths;
}

absl::StatusOr<const FieldDescriptor*> FindField(const Descriptor& type,
                                                 absl::string_view path) {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, ParsePath(path));
  const Descriptor* at = &type;
  const FieldDescriptor* field = nullptr;
  std::string plain;  // without indices
  for (const Step& step : steps) {
    absl::StrAppend(&plain, plain.empty() ? "" : ".", step.name);
    field = at == nullptr ? nullptr : at->FindFieldByName(step.name);
    if (field == nullptr) break;
    if (step.index != kAll && !field->is_repeated()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has an index, but ", plain, " is not a list"));
    }
    at = field->message_type();
  }
  if (field == nullptr || at != nullptr) {
    std::vector<std::string> names;
    for (const Step& step : steps) names.push_back(step.name);
    return NoField(type, absl::StrJoin(names, "."));
  }
  return field;
}

absl::Status SetField(absl::string_view path, absl::string_view value,
                      Message* message) {
  RETURN_IF_ERROR(FindField(*message->GetDescriptor(), path).status());
  if (path == kPrecision && message->GetDescriptor() == Scenario::descriptor())
    return SetPrecision(value, static_cast<Scenario*>(message));
  if (path == kPackedSequences &&
      message->GetDescriptor() == Scenario::descriptor()) {
    return SetPackedSequences(value, static_cast<Scenario*>(message));
  }
  ASSIGN_OR_RETURN(const std::vector<Step> steps, ParsePath(path));
  return SetStep(message, steps, 0, value);
}

}  // namespace weir::plan
