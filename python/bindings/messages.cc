// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/messages.h"

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "plan/sweep/fields.h"
#include "python/bindings/status_error.h"

namespace weir::python {
namespace {

namespace py = pybind11;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Attribute {
  const FieldDescriptor* field;
  PyObject* name;  // interned, never freed
};

// Returns the attributes of a message's class. The GIL protects the cache.
const std::vector<Attribute>& AttributesOf(const Descriptor& type) {
  static auto* const cache =
      new std::unordered_map<const Descriptor*, std::vector<Attribute>>();
  const auto [entry, is_new] = cache->try_emplace(&type);
  if (is_new) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      entry->second.push_back(
          {field, PyUnicode_InternFromString(field->name().c_str())});
    }
  }
  return entry->second;
}

// Where a value is, for messages.
struct Place {
  const std::string& label;
  const Place* outer = nullptr;
  const FieldDescriptor* field = nullptr;
  Py_ssize_t index = -1;

  std::string Path() const {
    std::string path = outer == nullptr ? "" : outer->Path();
    if (field != nullptr) {
      absl::StrAppend(&path, path.empty() ? "" : ".", field->name());
    }
    if (index >= 0) absl::StrAppend(&path, "[", index, "]");
    return path;
  }
};

[[noreturn]] void Refuse(const Place& place, py::handle found,
                         absl::string_view expected) {
  Problems problems(place.label);
  problems.Add(place.Path(), absl::StrCat("is ", std::string(py::repr(found)),
                                          ", expected ", expected));
  throw StatusError(problems.ToStatus());
}

uint32_t CountOf(const Place& place, py::handle value) {
  constexpr char kExpected[] = "a whole number from 0 to 2147483647";
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
    Refuse(place, value, kExpected);
  }
  const auto number =
      py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number) throw py::error_already_set();
  int overflow = 0;
  const int64_t count = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || count < 0 || count > INT32_MAX) {
    Refuse(place, value, kExpected);
  }
  return static_cast<uint32_t>(count);
}

double NumberOf(const Place& place, py::handle value) {
  if (PyFloat_CheckExact(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
  const bool is_number =
      !PyBool_Check(value.ptr()) && PyNumber_Check(value.ptr()) != 0;
  const double number = is_number ? PyFloat_AsDouble(value.ptr()) : 0;
  if (!is_number || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Refuse(place, value, "a number");
  }
  return number;
}

// Returns the text of a str or of an os.PathLike.
std::string TextOf(const Place& place, py::handle value) {
  py::object text = py::reinterpret_borrow<py::object>(value);
  if (!PyUnicode_Check(value.ptr()) && py::hasattr(value, "__fspath__")) {
    text = value.attr("__fspath__")();
  }
  if (!PyUnicode_Check(text.ptr())) Refuse(place, value, "text or a path");
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    Refuse(place, value, "text that is valid UTF-8");
  }
  return {bytes, static_cast<size_t>(size)};
}

bool IsUnspecified(const std::string& name) {
  return absl::EndsWith(name, "UNSPECIFIED");
}

// Returns the number of characters of the words that begin the names of all
// specified values: "RECOMPUTE_".
size_t CommonPrefix(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    if (IsUnspecified(name)) continue;
    if (prefix.empty()) prefix = name;
    while (!absl::StartsWith(name, prefix) || prefix == name) {
      const size_t end = prefix.rfind('_', prefix.size() - 2);
      if (prefix.size() < 2 || end == std::string::npos) return 0;
      prefix.resize(end + 1);
    }
  }
  return prefix.size();
}

// Returns the name of an enum value without what all values begin with.
std::string ShortName(const google::protobuf::EnumValueDescriptor& value) {
  return absl::AsciiStrToLower(
      IsUnspecified(value.name())
          ? value.name()
          : value.name().substr(CommonPrefix(*value.type())));
}

int EnumOf(const Place& place, py::handle value) {
  static auto* const cache =
      new std::map<std::pair<const void*, std::string>, int>();
  const std::string text = TextOf(place, value);
  const auto* type = place.field->enum_type();
  const auto [entry, is_new] = cache->try_emplace({type, text}, 0);
  if (!is_new) return entry->second;
  for (int i = 0; i < type->value_count(); ++i) {
    const auto& known = *type->value(i);
    if (IsUnspecified(known.name()) || ShortName(known) != text) continue;
    return entry->second = known.number();
  }
  const FieldDescriptor& field = *place.field;
  // Also accepts what a sweep accepts.
  const std::unique_ptr<Message> scratch(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(field.containing_type())
          ->New());
  const absl::Status set = plan::SetField(field.name(), text, scratch.get());
  if (!set.ok()) {
    cache->erase(entry);
    Problems problems(place.label);
    problems.Add(place.Path(), set.message());
    throw StatusError(problems.ToStatus());
  }
  const Reflection& reflection = *scratch->GetReflection();
  entry->second = field.is_repeated()
                      ? reflection.GetRepeatedEnumValue(*scratch, &field, 0)
                      : reflection.GetEnumValue(*scratch, &field);
  return entry->second;
}

// Returns the name of a message's class in Python.
std::string ClassName(const Descriptor& type) {
  return type.containing_type() == nullptr
             ? type.name()
             : absl::StrCat(ClassName(*type.containing_type()), type.name());
}

void Fill(const Place& place, py::handle object, Message* message);

void SetOne(const Place& place, py::handle value, Message* message) {
  const FieldDescriptor* field = place.field;
  const Reflection& reflection = *message->GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      const uint32_t count = CountOf(place, value);
      return repeated ? reflection.AddUInt32(message, field, count)
                      : reflection.SetUInt32(message, field, count);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double number = NumberOf(place, value);
      return repeated ? reflection.AddDouble(message, field, number)
                      : reflection.SetDouble(message, field, number);
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      if (!PyBool_Check(value.ptr())) Refuse(place, value, "True or False");
      const bool flag = value.ptr() == Py_True;
      return repeated ? reflection.AddBool(message, field, flag)
                      : reflection.SetBool(message, field, flag);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = TextOf(place, value);
      return repeated ? reflection.AddString(message, field, std::move(text))
                      : reflection.SetString(message, field, std::move(text));
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = EnumOf(place, value);
      return repeated ? reflection.AddEnumValue(message, field, number)
                      : reflection.SetEnumValue(message, field, number);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(place, value,
                  repeated ? reflection.AddMessage(message, field)
                           : reflection.MutableMessage(message, field));
    default:
      Refuse(place, value, "None: the field has a type that cannot be set");
  }
}

void SetAll(const Place& place, py::handle value, Message* message) {
  const bool is_text = PyUnicode_Check(value.ptr());
  const auto list = py::reinterpret_steal<py::object>(
      is_text ? nullptr : PySequence_Fast(value.ptr(), ""));
  if (!list) {
    PyErr_Clear();
    Refuse(place, value, "a list or a tuple");
  }
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list.ptr());
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Place entry{place.label, place.outer, place.field, i};
    SetOne(entry, PySequence_Fast_GET_ITEM(list.ptr(), i), message);
  }
}

void Fill(const Place& place, py::handle object, Message* message) {
  // Much faster than to look for each attribute, as most are None.
  const auto values = py::reinterpret_steal<py::object>(
      PyObject_GenericGetDict(object.ptr(), nullptr));
  const Descriptor& type = *message->GetDescriptor();
  if (!values) {
    PyErr_Clear();
    Refuse(place, object, absl::StrCat("an instance of ", ClassName(type)));
  }
  for (const Attribute& attribute : AttributesOf(type)) {
    PyObject* const found =
        PyDict_GetItemWithError(values.ptr(), attribute.name);
    if (found == Py_None) continue;
    if (found == nullptr) {
      PyErr_Clear();
      Refuse(place, object,
             absl::StrCat("an instance of ", ClassName(type), ", which has ",
                          attribute.field->name()));
    }
    const auto value = py::reinterpret_borrow<py::object>(found);
    const Place inner{place.label, &place, attribute.field};
    if (attribute.field->is_repeated()) {
      SetAll(inner, value, message);
    } else {
      SetOne(inner, value, message);
    }
  }
}

py::object ValueOf(const Message& message, const FieldDescriptor& field,
                   int index, py::handle classes) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return py::int_(repeated
                          ? reflection.GetRepeatedUInt32(message, &field, index)
                          : reflection.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return py::float_(
          repeated ? reflection.GetRepeatedDouble(message, &field, index)
                   : reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return py::bool_(repeated
                           ? reflection.GetRepeatedBool(message, &field, index)
                           : reflection.GetBool(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return py::str(repeated
                         ? reflection.GetRepeatedString(message, &field, index)
                         : reflection.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return py::str(ShortName(
          repeated ? *reflection.GetRepeatedEnum(message, &field, index)
                   : *reflection.GetEnum(message, &field)));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ObjectOf(
          repeated ? reflection.GetRepeatedMessage(message, &field, index)
                   : reflection.GetMessage(message, &field),
          classes);
    default:
      return py::none();
  }
}

}  // namespace

void FillMessage(const std::string& label, py::handle object,
                 Message* message) {
  Fill({label}, object, message);
}

py::object ObjectOf(const Message& message, py::handle classes) {
  const Descriptor& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  py::dict attributes;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const py::str name(field.name());
    if (field.is_repeated()) {
      const int size = reflection.FieldSize(message, &field);
      py::list values;
      for (int k = 0; k < size; ++k) {
        values.append(ValueOf(message, field, k, classes));
      }
      attributes[name] = values;
    } else if (reflection.HasField(message, &field)) {
      attributes[name] = ValueOf(message, field, -1, classes);
    }
  }
  return classes.attr(ClassName(type).c_str())(**attributes);
}

}  // namespace weir::python
