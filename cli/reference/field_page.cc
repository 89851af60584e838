// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/field_page.h"

#include <re2/re2.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
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

// Returns the unit that the name of a field ends with, or "".
std::string UnitOf(absl::string_view name) {
  static constexpr std::pair<absl::string_view, absl::string_view> kUnits[] = {
      {"bytes_per_second", "bytes/s"},
      {"flops_per_second", "FLOP/s"},
      {"peak_flops", "FLOP/s"},
      {"seconds", "s"},
      {"bytes", "bytes"},
      {"watts", "W"},
      {"joules", "J"},
      {"hours", "h"},
      {"mm", "mm"},
  };
  for (const auto& [ending, unit] : kUnits) {
    if (absl::EndsWith(name, ending)) return std::string(unit);
  }
  return "";
}

// Returns what a field that is not set means.
std::string DefaultOf(const FieldDescriptorProto& field,
                      const std::string& comment) {
  static const RE2 kStated(
      R"((?s)(?:^|[.;,\s])(?:Default|[Aa]bsent|[Ee]mpty|[Uu]nspecified|0):\s+([^;]+?)(?:\.\s|\.?$|;))");
  std::string stated;
  if (RE2::PartialMatch(comment, kStated, &stated)) return stated;
  if (RE2::PartialMatch(comment, R"(\bRequired\b)")) return "required";
  if (field.label() == FieldDescriptorProto::LABEL_REPEATED) return "empty";
  if (field.proto3_optional()) return "not set";
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

// Writes the messages and enums of a file.
class FileWriter {
 public:
  FileWriter(const FileDescriptorProto& file,
             const std::map<std::string, std::string>& examples)
      : file_(file), examples_(examples) {
    for (const auto& location : file.source_code_info().location()) {
      const std::vector<int> path(location.path().begin(),
                                  location.path().end());
      comments_[path] =
          Joined(location.leading_comments(), location.trailing_comments());
    }
  }

  std::string Write() {
    absl::StrAppend(&text_, "\n## ", file_.name(), "\n");
    for (int i = 0; i < file_.message_type_size(); ++i) {
      WriteMessage(file_.message_type(i), "",
                   {FileDescriptorProto::kMessageTypeFieldNumber, i});
    }
    for (int i = 0; i < file_.enum_type_size(); ++i) {
      WriteEnum(file_.enum_type(i), "",
                {FileDescriptorProto::kEnumTypeFieldNumber, i});
    }
    return text_;
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

  void WriteEnum(const EnumDescriptorProto& type, const std::string& parent,
                 const Path& path) {
    WriteHead(absl::StrCat(parent, type.name()), path);
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
  std::map<Path, std::string> comments_;
  std::string text_;
  std::vector<std::string> without_example_;
};

}  // namespace

absl::StatusOr<std::string> FieldPage(
    const std::string& descriptors, const std::vector<std::string>& examples) {
  google::protobuf::FileDescriptorSet files;
  if (!files.ParseFromString(descriptors) || files.file().empty()) {
    return absl::InvalidArgumentError(
        "is no set of file descriptors, expected the output of protoc "
        "--descriptor_set_out");
  }
  std::string text =
      "# Fields of files\n\nInput files are protocol buffers in text format, "
      "or the same as JSON. Examples are those of presets where a preset sets "
      "the field.\n";
  const std::map<std::string, std::string> known =
      FieldExamples(files, examples);
  std::vector<std::string> without_example;
  // protoc writes files after those that they import.
  for (int i = files.file_size() - 1; i >= 0; --i) {
    FileWriter writer(files.file(i), known);
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
