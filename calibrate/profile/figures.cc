// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/figures.h"

#include <google/protobuf/message.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void Collect(Message* message, const std::string& prefix,
             const std::string& format, std::vector<NamedFigure>* figures);

// Avoids visiting a profile's measured kernels, of which there may be thousands
// and which hold no figures.
bool MayHoldFigures(const google::protobuf::Descriptor* type) {
  if (type == Figure::descriptor()) return true;
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        MayHoldFigures(field->message_type())) {
      return true;
    }
  }
  return false;
}

void CollectOne(Message* message, const std::string& path,
                const std::string& format, std::vector<NamedFigure>* figures) {
  if (auto* figure = dynamic_cast<Figure*>(message)) {
    figures->push_back({path, figure, format});
  } else if (const auto* rate = dynamic_cast<MatrixRate*>(message)) {
    Collect(message, path + ".", rate->format(), figures);
  } else {
    Collect(message, path + ".", format, figures);
  }
}

void Collect(Message* message, const std::string& prefix,
             const std::string& format, std::vector<NamedFigure>* figures) {
  const Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE ||
        !MayHoldFigures(field->message_type())) {
      continue;
    }
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated()) {
      CollectOne(reflection.MutableMessage(message, field), path, format,
                 figures);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      CollectOne(reflection.MutableRepeatedMessage(message, field, i),
                 absl::StrCat(path, "[", i, "]"), format, figures);
    }
  }
}

}  // namespace

std::vector<NamedFigure> FiguresOf(Message* message) {
  std::vector<NamedFigure> figures;
  Collect(message, "", "", &figures);
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

double RelativeError(const Figure& figure) {
  if (figure.has_relative_error()) return figure.relative_error();
  switch (figure.kind()) {
    case Figure::MEASURED:
      return 0.02;
    case Figure::FITTED:
      return 0.05;
    case Figure::ASSUMED:
      return 0.2;
    default:
      return 0;
  }
}

void Include(double value, Range* range) {
  const bool absent = range->high() == 0;
  range->set_low(absent ? value : std::min(range->low(), value));
  range->set_high(std::max(range->high(), value));
}

Figure ResidualOf(double mean_absolute_error, absl::string_view source) {
  Figure figure;
  figure.set_value(kDeviationOfMeanError * mean_absolute_error);
  figure.set_kind(Figure::FITTED);
  figure.set_source(absl::StrCat("1.25 x the mean error of: ", source));
  return figure;
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
  if (figure.has_relative_error()) {
    problems->CheckRange(absl::StrCat(field, ".relative_error"),
                         figure.relative_error(), 0, 3);
  }
  if (figure.source().empty()) {
    problems->Add(absl::StrCat(field, ".source"),
                  "is empty, expected the source of the parameter");
  }
}

}  // namespace weir::calibrate
