// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/field_page.h"

#include <google/protobuf/descriptor_database.h>
#include <re2/re2.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "cli/reference/field_examples.h"
#include "cli/reference/markdown.h"
#include "google/protobuf/descriptor.pb.h"

namespace weir::cli {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;

// Returns the comment of a field: first what follows it, which is about it
// alone.
std::string Joined(const std::string& before, const std::string& after) {
  std::string text(absl::StripAsciiWhitespace(after));
  if (before.empty()) return text;
  if (!text.empty()) absl::StrAppend(&text, text.back() == '.' ? "" : ".", " ");
  // protoc removes "//", not the space after it.
  absl::StrAppend(&text, absl::StripAsciiWhitespace(before));
  text = absl::StrReplaceAll(text, {{"\n ", "\n"}});
  // The manual has no pages about sources.
  RE2::GlobalReplace(&text, R"(\s*\((see )?[a-z_/]+\.(h|proto)\))", "");
  return text;
}

// Returns the unit that the words at the end of a field's name state, or "".
std::string UnitOf(absl::string_view name) {
  static constexpr std::pair<absl::string_view, absl::string_view> kUnits[] = {
      {"bytes_per_second_per_link", "bytes/s"},
      {"bytes_per_second", "bytes/s"},
      {"flops_per_second", "FLOP/s"},
      {"peak_flops", "FLOP/s"},
      {"seconds", "s"},
      {"bytes", "bytes"},
      {"hertz", "Hz"},
      {"watts", "W"},
      {"joules", "J"},
      {"hours", "h"},
      {"mm", "mm"},
  };
  // "rate_aligned_to_8_bytes"
  static const RE2& alignment = *new RE2("_to_[0-9]+_bytes$");
  const std::string text(name);
  if (RE2::PartialMatch(text, alignment)) return "";
  for (const auto& [ending, unit] : kUnits) {
    if (name == ending || absl::EndsWith(name, absl::StrCat("_", ending))) {
      return std::string(unit);
    }
  }
  return "";
}

// Returns what a field that is not set means.
std::string DefaultOf(const FieldDescriptorProto& field,
                      const std::string& comment) {
  // 0 is a value of its own if the field knows whether it is set.
  static const RE2 kOptional(
      R"((?s)(?:^|[.;,\s])(?:Default|[Aa]bsent):\s+([^;]+?)(?:\.\s|\.?$|;))");
  static const RE2 kStated(
      R"((?s)(?:^|[.;,\s])(?:Default|[Aa]bsent|[Ee]mpty|[Uu]nspecified|0):\s+([^;]+?)(?:\.\s|\.?$|;))");
  static const RE2 kMeans(
      R"((?s)(?:^|[.;,\s])0 means ([^;,]+?)(?:\.\s|\.?$|[;,]))");
  std::string stated;
  if (field.proto3_optional()) {
    return RE2::PartialMatch(comment, kOptional, &stated) ? stated : "not set";
  }
  if (RE2::PartialMatch(comment, kStated, &stated)) return stated;
  if (RE2::PartialMatch(comment, kMeans, &stated)) return stated;
  if (RE2::PartialMatch(comment, R"(\b[Rr]equired\b)")) return "required";
  if (field.label() == FieldDescriptorProto::LABEL_REPEATED) return "empty";
  switch (field.type()) {
    case FieldDescriptorProto::TYPE_MESSAGE:
    case FieldDescriptorProto::TYPE_ENUM:
      return "not set";
    case FieldDescriptorProto::TYPE_BOOL:
      return "false";
    case FieldDescriptorProto::TYPE_STRING:
    case FieldDescriptorProto::TYPE_BYTES:
      return "empty";
    default:
      return "0";
  }
}

using Names = std::set<std::string>;

// Adds a type and those that it contains, by full name.
void AddContained(const google::protobuf::Descriptor& type, Names* names) {
  if (!names->insert(type.full_name()).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* field = type.field(i);
    if (field->message_type() != nullptr) {
      AddContained(*field->message_type(), names);
    }
    if (field->enum_type() != nullptr) {
      names->insert(field->enum_type()->full_name());
    }
  }
}

absl::StatusOr<Names> TypesIn(const google::protobuf::FileDescriptorSet& files,
                              const std::vector<std::string>& roots) {
  google::protobuf::SimpleDescriptorDatabase database;
  for (const auto& file : files.file()) database.Add(file);
  const google::protobuf::DescriptorPool pool(&database);
  Names names;
  for (const std::string& root : roots) {
    const auto* type = pool.FindMessageTypeByName(root);
    if (type == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no message ", root, ", expected one"));
    }
    AddContained(*type, &names);
  }
  return names;
}

// Writes the messages and enums of a file.
class FileWriter {
 public:
  FileWriter(const FileDescriptorProto& file,
             const std::map<std::string, std::string>& examples,
             const Names& types)
      : file_(file), examples_(examples), types_(types) {
    for (const auto& location : file.source_code_info().location()) {
      const std::vector<int> path(location.path().begin(),
                                  location.path().end());
      comments_[path] =
          Joined(location.leading_comments(), location.trailing_comments());
    }
  }

  std::string Write() {
    for (int i = 0; i < file_.message_type_size(); ++i) {
      WriteMessage(file_.message_type(i), "",
                   {FileDescriptorProto::kMessageTypeFieldNumber, i});
    }
    for (int i = 0; i < file_.enum_type_size(); ++i) {
      WriteEnum(file_.enum_type(i), "",
                {FileDescriptorProto::kEnumTypeFieldNumber, i});
    }
    return text_.empty() ? ""
                         : absl::StrCat("\n## ", file_.name(), "\n", text_);
  }

  // The full names of such fields that are no messages.
  const std::vector<std::string>& without_example() const {
    return without_example_;
  }

 private:
  using Path = std::vector<int>;

  static Path Child(Path path, int field, int index) {
    path.push_back(field);
    path.push_back(index);
    return path;
  }

  std::string Comment(const Path& path) const {
    const auto found = comments_.find(path);
    if (found == comments_.end()) return "";
    return found->second;
  }

  void WriteHead(const std::string& name, const Path& path) {
    absl::StrAppend(&text_, "\n### ", name, "\n");
    const std::string comment = Comment(path);
    if (!comment.empty()) {
      absl::StrAppend(&text_, "\n", MarkdownText(comment), "\n");
    }
  }

  void WriteMessage(const DescriptorProto& message, const std::string& parent,
                    const Path& path) {
    if (message.options().map_entry()) return;
    const std::string name = absl::StrCat(parent, message.name());
    if (IsWritten(name)) WriteFields(message, name, path);
    const std::string prefix = absl::StrCat(name, ".");
    for (int i = 0; i < message.nested_type_size(); ++i) {
      WriteMessage(message.nested_type(i), prefix,
                   Child(path, DescriptorProto::kNestedTypeFieldNumber, i));
    }
    for (int i = 0; i < message.enum_type_size(); ++i) {
      WriteEnum(message.enum_type(i), prefix,
                Child(path, DescriptorProto::kEnumTypeFieldNumber, i));
    }
  }

  bool IsWritten(const std::string& name) const {
    return types_.contains(absl::StrCat(file_.package(), ".", name));
  }

  void WriteFields(const DescriptorProto& message, const std::string& name,
                   const Path& path) {
    WriteHead(name, path);
    if (message.field_size() > 0) {
      absl::StrAppend(&text_,
                      "\n| field | type | unit | default | example | meaning "
                      "|\n|---|---|---|---|---|---|\n");
    }
    for (int i = 0; i < message.field_size(); ++i) {
      const FieldDescriptorProto& field = message.field(i);
      const std::string comment =
          Comment(Child(path, DescriptorProto::kFieldFieldNumber, i));
      const std::string full_name =
          absl::StrCat(file_.package(), ".", name, ".", field.name());
      const auto example = examples_.find(full_name);
      if (example == examples_.end() &&
          field.type() != FieldDescriptorProto::TYPE_MESSAGE) {
        without_example_.push_back(full_name);
      }
      absl::StrAppend(
          &text_, "| ", MarkdownCode(field.name()), " | ",
          MarkdownCode(TypeOf(field)), " | ", UnitOf(field.name()), " | ",
          MarkdownCell(DefaultOf(field, comment)), " | ",
          MarkdownCode(example == examples_.end() ? "" : example->second),
          " | ", MarkdownCell(comment), " |\n");
    }
  }

  void WriteEnum(const EnumDescriptorProto& type, const std::string& parent,
                 const Path& path) {
    const std::string name = absl::StrCat(parent, type.name());
    if (!IsWritten(name)) return;
    WriteHead(name, path);
    absl::StrAppend(&text_, "\n| value | meaning |\n|---|---|\n");
    for (int i = 0; i < type.value_size(); ++i) {
      absl::StrAppend(&text_, "| ", MarkdownCode(type.value(i).name()), " | ",
                      MarkdownCell(Comment(Child(
                          path, EnumDescriptorProto::kValueFieldNumber, i))),
                      " |\n");
    }
  }

  static std::string TypeOf(const FieldDescriptorProto& field) {
    std::string type = field.type_name();
    if (type.empty()) {
      type =
          absl::AsciiStrToLower(FieldDescriptorProto::Type_Name(field.type()))
              .substr(sizeof("type_") - 1);
    } else {
      type = absl::StrReplaceAll(type, {{".weir.", ""}});
    }
    if (field.label() == FieldDescriptorProto::LABEL_REPEATED) {
      return absl::StrCat("repeated ", type);
    }
    return field.proto3_optional() ? absl::StrCat("optional ", type) : type;
  }

  const FileDescriptorProto& file_;
  const std::map<std::string, std::string>& examples_;
  const Names& types_;
  std::map<Path, std::string> comments_;
  std::string text_;
  std::vector<std::string> without_example_;
};

}  // namespace

absl::StatusOr<std::string> FieldPage(const std::string& descriptors,
                                      const std::vector<std::string>& examples,
                                      const std::vector<std::string>& roots) {
  google::protobuf::FileDescriptorSet files;
  if (!files.ParseFromString(descriptors) || files.file().empty()) {
    return absl::InvalidArgumentError(
        "is no set of file descriptors, expected the output of protoc "
        "--descriptor_set_out");
  }
  ASSIGN_OR_RETURN(const Names types, TypesIn(files, roots));
  std::string text =
      "# Fields of files\n\nInput files are protocol buffers in text format, "
      "or the same as JSON. Examples are those of presets where a preset sets "
      "the field.\n";
  const std::map<std::string, std::string> known =
      FieldExamples(files, examples);
  std::vector<std::string> without_example;
  // protoc writes files after those that they import.
  for (int i = files.file_size() - 1; i >= 0; --i) {
    FileWriter writer(files.file(i), known, types);
    absl::StrAppend(&text, writer.Write());
    without_example.insert(without_example.end(),
                           writer.without_example().begin(),
                           writer.without_example().end());
  }
  if (!without_example.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has fields without example, expected one of each in "
                     "cli/reference/examples: ",
                     absl::StrJoin(without_example, ", ")));
  }
  return text;
}

}  // namespace weir::cli
