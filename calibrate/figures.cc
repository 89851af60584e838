// SPDX-License-Identifier: Apache-2.0
#include "calibrate/figures.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void Collect(Message* message, const std::string& prefix,
             std::vector<NamedFigure>* figures);

void CollectOne(Message* message, const std::string& path,
                std::vector<NamedFigure>* figures) {
  if (auto* figure = dynamic_cast<Figure*>(message)) {
    figures->push_back({path, figure});
  } else {
    Collect(message, path + ".", figures);
  }
}

void Collect(Message* message, const std::string& prefix,
             std::vector<NamedFigure>* figures) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated()) {
      CollectOne(reflection.MutableMessage(message, field), path, figures);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      CollectOne(reflection.MutableRepeatedMessage(message, field, i),
                 absl::StrCat(path, "[", i, "]"), figures);
    }
  }
}

}  // namespace

std::vector<NamedFigure> FiguresOf(Message* message) {
  std::vector<NamedFigure> figures;
  Collect(message, "", &figures);
  return figures;
}

absl::string_view NameOf(Figure::Kind kind) {
  switch (kind) {
    case Figure::DATASHEET:
      return "datasheet";
    case Figure::MEASURED:
      return "measured";
    case Figure::FITTED:
      return "fitted";
    case Figure::ASSUMED:
      return "assumed";
    default:
      return "unspecified";
  }
}

void CheckFigure(absl::string_view field, const Figure& figure, double low,
                 double high, Problems* problems) {
  problems->CheckRange(absl::StrCat(field, ".value"), figure.value(), low,
                       high);
  if (figure.kind() == Figure::KIND_UNSPECIFIED ||
      !Figure::Kind_IsValid(figure.kind())) {
    problems->Add(
        absl::StrCat(field, ".kind"),
        "is unspecified, expected DATASHEET, MEASURED, FITTED or ASSUMED");
  }
  if (figure.source().empty()) {
    problems->Add(absl::StrCat(field, ".source"),
                  "is empty, expected where the figure comes from");
  }
}

}  // namespace weir
