// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_message.h"

#include <google/protobuf/descriptor.h>

#include <limits>
#include <vector>

namespace weir::fuzz {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

double AnyDouble(bool finite, Choices* choices) {
  if (!finite && choices->OneIn(2)) {
    return choices->Of<double>({-1, 1e308, -0.0, 5e-324,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()});
  }
  return choices->OneIn(4) ? choices->Int(0, 100)
                           : choices->LogReal(1e-12, 1e15);
}

template <typename T>
T AnyInteger(Choices* choices) {
  if (choices->OneIn(8)) return std::numeric_limits<T>::max();
  return static_cast<T>(choices->Int(0, choices->OneIn(4) ? 1 << 30 : 8));
}

// Sets or adds one value of a field that holds no messages.
template <typename Put>
void PutValue(const FieldDescriptor& field, bool finite, Choices* choices,
              Put put) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(AnyDouble(finite, choices));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(static_cast<float>(choices->Real(0, 1e9)));
    case FieldDescriptor::CPPTYPE_INT32:
      return put(AnyInteger<int32_t>(choices));
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(AnyInteger<uint32_t>(choices));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(AnyInteger<int64_t>(choices));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(AnyInteger<uint64_t>(choices));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(choices->OneIn(2));
    case FieldDescriptor::CPPTYPE_STRING:
      return put(field.type() == FieldDescriptor::TYPE_BYTES
                     ? choices->Bytes(24)
                     : choices->Text(24));
    default:
      return;
  }
}

// Overloads by type, as protobuf reflection has no templates.
class Setter {
 public:
  Setter(Message* message, const FieldDescriptor* field, int index)
      : message_(message),
        field_(field),
        index_(index),
        reflection_(*message->GetReflection()) {}

#define WEIR_PUT(Type, Name)                                          \
  void operator()(const Type& value) const {                          \
    if (!field_->is_repeated()) {                                     \
      reflection_.Set##Name(message_, field_, value);                 \
    } else if (index_ < 0) {                                          \
      reflection_.Add##Name(message_, field_, value);                 \
    } else {                                                          \
      reflection_.SetRepeated##Name(message_, field_, index_, value); \
    }                                                                 \
  }
  WEIR_PUT(double, Double)
  WEIR_PUT(float, Float)
  WEIR_PUT(int32_t, Int32)
  WEIR_PUT(uint32_t, UInt32)
  WEIR_PUT(int64_t, Int64)
  WEIR_PUT(uint64_t, UInt64)
  WEIR_PUT(bool, Bool)
  WEIR_PUT(std::string, String)
#undef WEIR_PUT

  void PutEnum(int number) const {
    if (!field_->is_repeated()) {
      reflection_.SetEnumValue(message_, field_, number);
    } else if (index_ < 0) {
      reflection_.AddEnumValue(message_, field_, number);
    } else {
      reflection_.SetRepeatedEnumValue(message_, field_, index_, number);
    }
  }

 private:
  Message* message_;
  const FieldDescriptor* field_;
  int index_;  // -1: adds an element
  const Reflection& reflection_;
};

void FillOne(Message* message, const FieldDescriptor* field, Choices* choices,
             int depth) {
  const Reflection& reflection = *message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (depth == 0) return;
    return FillMessage(field->is_repeated()
                           ? reflection.AddMessage(message, field)
                           : reflection.MutableMessage(message, field),
                       choices, depth - 1);
  }
  const Setter set(message, field, -1);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const EnumDescriptor& type = *field->enum_type();
    return set.PutEnum(
        type.value(choices->Int(0, type.value_count() - 1))->number());
  }
  PutValue(*field, true, choices, set);
}

}  // namespace

void FillMessage(Message* message, Choices* choices, int depth) {
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_map() || choices->OneIn(3)) continue;
    const int size = field->is_repeated() ? choices->Int(0, 3) : 1;
    for (int k = 0; k < size; ++k) FillOne(message, field, choices, depth);
  }
}

void SpoilMessage(Message* message, Choices* choices) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  if (fields.empty()) return;
  const FieldDescriptor* field =
      fields[choices->Int(0, static_cast<int>(fields.size()) - 1)];
  const int index =
      field->is_repeated()
          ? choices->Int(0, reflection.FieldSize(*message, field) - 1)
          : -1;
  if (choices->OneIn(8)) return reflection.ClearField(message, field);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return SpoilMessage(
        field->is_repeated()
            ? reflection.MutableRepeatedMessage(message, field, index)
            : reflection.MutableMessage(message, field),
        choices);
  }
  const Setter set(message, field, index);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return set.PutEnum(choices->Int(0, 100));
  }
  PutValue(*field, false, choices, set);
}

}  // namespace weir::fuzz
