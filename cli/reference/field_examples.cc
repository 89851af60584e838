// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/field_examples.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/assets.h"

namespace weir::cli {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr const char* kFolders[] = {
    "scenarios/presets",
    "scenarios/defaults",
    "scenarios/cluster/presets",
    "calibrate/profile/presets",
    "calibrate/profile/runtimes",
    "models/presets",
    "models/recipes",
    "plan/energy/presets",
    "plan/goodput/presets",
};

class IgnoreErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber,
                const std::string&) override {}
};

// Returns the message that the first lines of a preset name, or "".
std::string MessageOf(absl::string_view text) {
  constexpr absl::string_view kMark = "# proto-message: ";
  const size_t at = text.find(kMark);
  if (at == absl::string_view::npos) return "";
  text.remove_prefix(at + kMark.size());
  return std::string(text.substr(0, text.find('\n')));
}

// Returns "{ value: 0.85 }" for a Figure, "" for another message.
std::string ShortFigure(const Message& message) {
  const auto& type = *message.GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName("value");
  if (type.name() != "Figure" || field == nullptr) return "";
  std::string value;
  TextFormat::PrintFieldValueToString(message, field, -1, &value);
  return absl::StrCat("{ value: ", value, " }");
}

// Adds the values that are obvious for the fields of a message that have none.
void AddObviousExamples(const google::protobuf::Descriptor& type,
                        std::map<std::string, std::string>* examples) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      examples->emplace(field.full_name(), "true");
    } else if (const auto* values = field.enum_type();
               values != nullptr && values->value_count() > 1) {
      examples->emplace(field.full_name(), values->value(1)->name());
    }
  }
  for (int i = 0; i < type.nested_type_count(); ++i) {
    AddObviousExamples(*type.nested_type(i), examples);
  }
}

void AddExamples(const Message& message,
                 std::map<std::string, std::string>* examples) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int size =
        field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      std::string value;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& inner =
            field->is_repeated()
                ? reflection->GetRepeatedMessage(message, field, i)
                : reflection->GetMessage(message, field);
        AddExamples(inner, examples);
        value = ShortFigure(inner);
        if (!value.empty()) examples->emplace(field->full_name(), value);
        continue;
      }
      TextFormat::PrintFieldValueToString(
          message, field, field->is_repeated() ? i : -1, &value);
      examples->emplace(field->full_name(), value);
    }
  }
}

}  // namespace

std::map<std::string, std::string> FieldExamples(
    const google::protobuf::FileDescriptorSet& files,
    const std::vector<std::string>& more) {
  google::protobuf::SimpleDescriptorDatabase database;
  for (const auto& file : files.file()) database.Add(file);
  google::protobuf::DescriptorPool pool(&database);
  google::protobuf::DynamicMessageFactory factory(&pool);
  IgnoreErrors ignore;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&ignore);
  std::map<std::string, std::string> examples;
  const auto add = [&](const std::string& text) {
    const auto* type = pool.FindMessageTypeByName(MessageOf(text));
    if (type == nullptr) return;
    const std::unique_ptr<Message> message(factory.GetPrototype(type)->New());
    if (parser.ParseFromString(text, message.get())) {
      AddExamples(*message, &examples);
    }
  };
  for (const char* folder : kFolders) {
    for (const std::string& name : ListAssets(folder)) {
      const auto preset = FindPreset(folder, name);
      if (preset.has_value()) add(std::string(preset->contents));
    }
  }
  for (const std::string& text : more) add(text);
  for (const auto& file : files.file()) {
    for (const auto& message : file.message_type()) {
      const auto* type = pool.FindMessageTypeByName(
          file.package().empty()
              ? message.name()
              : absl::StrCat(file.package(), ".", message.name()));
      if (type != nullptr) AddObviousExamples(*type, &examples);
    }
  }
  return examples;
}

}  // namespace weir::cli
