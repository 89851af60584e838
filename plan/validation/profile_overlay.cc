// SPDX-License-Identifier: Apache-2.0
#include "plan/validation/profile_overlay.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/assets.h"
#include "calibrate/profile/figures.h"

namespace weir::plan {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string BaseOf(absl::string_view presets, const std::string& base) {
  const std::vector<std::string> known = ListAssets(presets);
  if (std::find(known.begin(), known.end(), base) != known.end()) return base;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(base, error);
  return error ? base : path.lexically_normal().string();
}

void CopyField(const Message& from, const FieldDescriptor* field, Message* to) {
  const auto& reflection = *from.GetReflection();
  to->GetReflection()->ClearField(to, field);
  if (!field->is_repeated()) {
    to->GetReflection()->MutableMessage(to, field)->CopyFrom(
        reflection.GetMessage(from, field));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(from, field); ++i) {
    to->GetReflection()->AddMessage(to, field)->CopyFrom(
        reflection.GetRepeatedMessage(from, field, i));
  }
}

// Copies the figure at `path`, or the first repeated field on the way.
void CopyFigure(absl::string_view path, const Message& from, Message* to) {
  const Message* source = &from;
  for (absl::string_view step : absl::StrSplit(path, '.')) {
    const std::string name(step.substr(0, step.find('[')));
    const FieldDescriptor* field =
        source->GetDescriptor()->FindFieldByName(name);
    if (field->is_repeated() || field->message_type() == Figure::descriptor()) {
      CopyField(*source, field, to);
      return;
    }
    source = &source->GetReflection()->GetMessage(*source, field);
    to = to->GetReflection()->MutableMessage(to, field);
  }
}

void ReplaceFigures(const std::vector<ReplacedFigure>& figures,
                    Message* message, Message* overlay) {
  for (const calibrate::NamedFigure& named : calibrate::FiguresOf(message)) {
    for (const ReplacedFigure& replaced : figures) {
      if (replaced.path == named.path) *named.figure = replaced.figure;
    }
  }
  for (const ReplacedFigure& replaced : figures) {
    CopyFigure(replaced.path, *message, overlay);
  }
}

}  // namespace

DeviceProfile OverlayOf(DeviceProfile profile, const std::string& base,
                        const std::vector<ReplacedFigure>& figures) {
  DeviceProfile overlay;
  overlay.set_name(profile.name());
  overlay.set_base(BaseOf("calibrate/profile/presets", base));
  // What Inherit() leaves out.
  *overlay.mutable_gpu_names() = profile.gpu_names();
  overlay.set_purpose(profile.purpose());
  if (profile.has_provenance()) {
    *overlay.mutable_provenance() = profile.provenance();
  }
  *overlay.mutable_kernels() = profile.kernels();
  *overlay.mutable_stages() = profile.stages();
  *overlay.mutable_memory() = profile.memory();
  *overlay.mutable_links() = profile.links();
  ReplaceFigures(figures, &profile, &overlay);
  return overlay;
}

Runtime OverlayOf(Runtime runtime, const std::string& base,
                  const std::vector<ReplacedFigure>& figures) {
  Runtime overlay;
  overlay.set_name(runtime.name());
  overlay.set_base(BaseOf("calibrate/profile/runtimes", base));
  ReplaceFigures(figures, &runtime, &overlay);
  return overlay;
}

}  // namespace weir::plan
