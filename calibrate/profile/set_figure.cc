// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/set_figure.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "calibrate/profile/figure.pb.h"
#include "calibrate/profile/figures.h"

namespace weir::calibrate {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsFigure(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type() == Figure::descriptor();
}

bool IsSettableScalar(const FieldDescriptor* field, ScalarFields scalars) {
  if (field->is_repeated() || scalars == ScalarFields::kNone) return false;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
    case FieldDescriptor::CPPTYPE_UINT32:
      return scalars == ScalarFields::kAll;
    default:
      return false;
  }
}

void ListPaths(const Message& message, ScalarFields scalars,
               const std::string& prefix, std::vector<std::string>* paths) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated() &&
        (IsFigure(field) || IsSettableScalar(field, scalars))) {
      paths->push_back(path);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (!field->is_repeated()) {
      if (!reflection.HasField(message, field)) continue;
      ListPaths(reflection.GetMessage(message, field), scalars, path + ".",
                paths);
    } else {
      for (int j = 0; j < reflection.FieldSize(message, field); ++j) {
        ListPaths(reflection.GetRepeatedMessage(message, field, j), scalars,
                  absl::StrCat(path, "[", j, "]."), paths);
      }
    }
  }
}

// A field of one message.
struct PlacedField {
  Message* message;
  const FieldDescriptor* field;
};

struct Step {
  std::string name;
  bool indexed = false;
  std::optional<int> index;  // absent: all elements
};

std::optional<Step> ParseStep(absl::string_view text) {
  Step step;
  const size_t bracket = text.find('[');
  step.name = std::string(text.substr(0, bracket));
  if (bracket == absl::string_view::npos) return step;
  step.indexed = true;
  absl::string_view index = text.substr(bracket + 1);
  if (!absl::ConsumeSuffix(&index, "]")) return {};
  if (index.empty()) return step;
  int number = 0;
  if (!absl::SimpleAtoi(index, &number) || number < 0) return {};
  step.index = number;
  return step;
}

// Appends the messages in `field` of `message` that the step names.
void Descend(const Step& step, Message* message, const FieldDescriptor* field,
             std::vector<Message*>* next) {
  const Reflection& reflection = *message->GetReflection();
  if (step.indexed != field->is_repeated()) return;
  if (!step.indexed) {
    if (reflection.HasField(*message, field)) {
      next->push_back(reflection.MutableMessage(message, field));
    }
    return;
  }
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    if (step.index.value_or(i) != i) continue;
    next->push_back(reflection.MutableRepeatedMessage(message, field, i));
  }
}

// Returns the fields that the path names; empty: none.
std::vector<PlacedField> FieldsAt(absl::string_view path, ScalarFields scalars,
                                  Message* message) {
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  std::vector<Message*> at = {message};
  std::vector<PlacedField> found;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::optional<Step> step = ParseStep(names[i]);
    if (!step.has_value()) return {};
    std::vector<Message*> next;
    for (Message* one : at) {
      const FieldDescriptor* field =
          one->GetDescriptor()->FindFieldByName(step->name);
      if (field == nullptr) continue;
      if (i + 1 == names.size()) {
        if (!step->indexed && !field->is_repeated() &&
            (IsFigure(field) || IsSettableScalar(field, scalars))) {
          found.push_back({one, field});
        }
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        Descend(*step, one, field, &next);
      }
    }
    at = std::move(next);
  }
  return found;
}

absl::Status Expected(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what));
}

absl::StatusOr<Figure> ParseFigure(absl::string_view text) {
  constexpr char kForm[] =
      "a number, or with its uncertainty NUMBER+-PERCENT% as in 0.85+-5%";
  Figure figure;
  figure.set_kind(Figure::ASSUMED);
  figure.set_source("--set");
  const size_t sign = text.find("+-");
  double value = 0, percent = 0;
  if (!absl::SimpleAtod(text.substr(0, sign), &value) ||
      !std::isfinite(value)) {
    return Expected(kForm);
  }
  if (sign != absl::string_view::npos) {
    absl::string_view error = text.substr(sign + 2);
    if (!absl::ConsumeSuffix(&error, "%") ||
        !absl::SimpleAtod(error, &percent) || !(percent >= 0) ||
        !(percent <= 300)) {
      return Expected(kForm);
    }
  }
  figure.set_value(value);
  figure.set_relative_error(percent / 100);
  return figure;
}

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

absl::StatusOr<std::string> SetFigureField(absl::string_view value,
                                           const PlacedField& at) {
  ASSIGN_OR_RETURN(const Figure figure, ParseFigure(value));
  const Reflection& reflection = *at.message->GetReflection();
  std::string old = "unset";
  if (reflection.HasField(*at.message, at.field)) {
    Figure before;
    before.CopyFrom(reflection.GetMessage(*at.message, at.field));
    old =
        absl::StrCat(Number(before.value()), " (", NameOf(before.kind()), ")");
  }
  reflection.MutableMessage(at.message, at.field)->CopyFrom(figure);
  return old;
}

absl::StatusOr<std::string> SetScalar(absl::string_view value,
                                      const PlacedField& at) {
  const Reflection& reflection = *at.message->GetReflection();
  switch (at.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      if (value != "true" && value != "false") {
        return Expected("true or false");
      }
      const bool old = reflection.GetBool(*at.message, at.field);
      reflection.SetBool(at.message, at.field, value == "true");
      return old ? "true" : "false";
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint32_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return Expected("a whole number from 0");
      }
      const uint32_t old = reflection.GetUInt32(*at.message, at.field);
      reflection.SetUInt32(at.message, at.field, number);
      return absl::StrCat(old);
    }
    default: {
      double number = 0;
      if (!absl::SimpleAtod(value, &number) || !(number >= 0) ||
          !std::isfinite(number)) {
        return Expected("a number from 0");
      }
      const double old = reflection.GetDouble(*at.message, at.field);
      reflection.SetDouble(at.message, at.field, number);
      return Number(old);
    }
  }
}

absl::string_view LastName(absl::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

}  // namespace

std::vector<std::string> SettablePaths(const Message& message,
                                       ScalarFields scalars) {
  std::vector<std::string> paths;
  ListPaths(message, scalars, "", &paths);
  return paths;
}

absl::StatusOr<std::string> SetFigure(absl::string_view path,
                                      absl::string_view value,
                                      ScalarFields scalars, Message* message) {
  const std::vector<PlacedField> fields = FieldsAt(path, scalars, message);
  if (fields.empty()) {
    return absl::NotFoundError(
        "expected the name of a parameter (weir profile show)");
  }
  std::vector<std::string> old;
  for (const PlacedField& at : fields) {
    ASSIGN_OR_RETURN(const std::string one, IsFigure(at.field)
                                                ? SetFigureField(value, at)
                                                : SetScalar(value, at));
    if (std::find(old.begin(), old.end(), one) == old.end()) {
      old.push_back(one);
    }
  }
  return absl::StrJoin(old, " and ");
}

std::string DidYouMeanPath(absl::string_view path,
                           const std::vector<std::string>& known) {
  constexpr size_t kMaxNamed = 3;
  std::vector<std::string> same;
  for (const std::string& one : known) {
    if (LastName(one) == LastName(path)) same.push_back(one);
  }
  if (same.empty()) {
    std::string nearest = NearestWord(path, known);
    if (nearest.empty()) {
      std::vector<std::string> names;
      for (const std::string& one : known) names.emplace_back(LastName(one));
      const std::string name = NearestWord(LastName(path), names);
      for (const std::string& one : known) {
        if (!name.empty() && LastName(one) == name) same.push_back(one);
      }
    } else {
      same.push_back(std::move(nearest));
    }
  }
  if (same.empty()) return "";
  if (same.size() > kMaxNamed) same.resize(kMaxNamed);
  return absl::StrCat("; did you mean ", absl::StrJoin(same, " or "), "?");
}

}  // namespace weir::calibrate
