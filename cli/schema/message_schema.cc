// SPDX-License-Identifier: Apache-2.0
#include "cli/schema/message_schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// Adds the embedded .proto files to a pool.
absl::Status BuildFiles(google::protobuf::DescriptorPool* pool) {
  const auto asset = FindPreset("cli/schema", "messages");
  if (!asset.has_value()) {
    return absl::InternalError("weir was built without its messages");
  }
  google::protobuf::FileDescriptorSet files;
  RETURN_IF_ERROR(ParseTextProto(asset->label, asset->contents, &files));
  // Every file comes after those that it imports.
  for (const google::protobuf::FileDescriptorProto& file : files.file()) {
    if (pool->BuildFile(file) == nullptr) {
      return absl::InternalError(
          absl::StrCat(file.name(), ": cannot be embedded"));
    }
  }
  return absl::OkStatus();
}

// Returns the comment of a message, field, enum or value in one line.
template <typename Described>
std::string CommentOf(const Described& described) {
  google::protobuf::SourceLocation location;
  if (!described.GetSourceLocation(&location)) return "";
  const std::string text =
      absl::StrCat(location.leading_comments, " ", location.trailing_comments);
  return absl::StrJoin(
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
}

template <typename Described>
void AddComment(const Described& described, Json* schema) {
  std::string comment = CommentOf(described);
  if (!comment.empty()) (*schema)["description"] = std::move(comment);
}

class Writer {
 public:
  explicit Writer(SchemaUse use) : use_(use) {}

  Json Reference(const std::string& name) {
    return {{"$ref", absl::StrCat("#/$defs/", name)}};
  }

  void Define(const Descriptor& message) {
    const std::string& name = message.full_name();
    if (definitions_.contains(name)) return;
    definitions_[name] = nullptr;  // of messages that contain themselves
    Json schema = {{"type", "object"}};
    AddComment(message, &schema);
    Json properties = Json::object(), required = Json::array();
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      properties[field.name()] = FieldSchema(field);
      if (!field.has_presence()) required.push_back(field.name());
    }
    schema["properties"] = std::move(properties);
    if (use_ == SchemaUse::kInput) {
      schema["additionalProperties"] = false;
    } else if (!required.empty()) {
      schema["required"] = std::move(required);
    }
    definitions_[name] = std::move(schema);
  }

  Json TakeDefinitions() { return std::move(definitions_); }

 private:
  void Define(const EnumDescriptor& values) {
    if (definitions_.contains(values.full_name())) return;
    Json names = Json::array();
    for (int i = 0; i < values.value_count(); ++i) {
      names.push_back(values.value(i)->name());
    }
    Json schema = {{"enum", std::move(names)}};
    AddComment(values, &schema);
    definitions_[values.full_name()] = std::move(schema);
  }

  Json ValueSchema(const FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Define(*field.message_type());
        return Reference(field.message_type()->full_name());
      case FieldDescriptor::CPPTYPE_ENUM:
        Define(*field.enum_type());
        return Reference(field.enum_type()->full_name());
      case FieldDescriptor::CPPTYPE_BOOL:
        return {{"type", "boolean"}};
      case FieldDescriptor::CPPTYPE_STRING:
        return {{"type", "string"}};
      case FieldDescriptor::CPPTYPE_DOUBLE:
      case FieldDescriptor::CPPTYPE_FLOAT:
        if (use_ == SchemaUse::kInput) return {{"type", "number"}};
        return {{"type", {"number", "null"}}};
      case FieldDescriptor::CPPTYPE_INT32:
        return {{"type", "integer"}};
      case FieldDescriptor::CPPTYPE_UINT32:
        return {{"type", "integer"}, {"minimum", 0}, {"maximum", 4294967295}};
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT64:
        break;  // JSON's numbers are not exact
    }
    return {{"type", "string"}, {"pattern", "^-?[0-9]+$"}};
  }

  Json FieldSchema(const FieldDescriptor& field) {
    Json schema = ValueSchema(field);
    if (field.is_repeated()) {
      schema = {{"type", "array"}, {"items", std::move(schema)}};
    }
    AddComment(field, &schema);
    return schema;
  }

  SchemaUse use_;
  Json definitions_ = Json::object();
};

}  // namespace

absl::StatusOr<Json> MessageSchema(const std::string& name, SchemaUse use) {
  google::protobuf::DescriptorPool pool;
  RETURN_IF_ERROR(BuildFiles(&pool));
  const Descriptor* message = pool.FindMessageTypeByName(name);
  if (message == nullptr) {
    return absl::InternalError(absl::StrCat(name, ": is not embedded"));
  }
  Writer writer(use);
  writer.Define(*message);
  Json schema = writer.Reference(name);
  schema["$defs"] = writer.TakeDefinitions();
  return schema;
}

}  // namespace weir::cli
