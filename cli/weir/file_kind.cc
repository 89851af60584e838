// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/file_kind.h"

#include <google/protobuf/message.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/model.pb.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/sweep.pb.h"
#include "results/views/train_study.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

using Type = FileKind::Type;

template <typename Message>
bool Parses(const std::string& text) {
  Message message;
  return ParseTextProto("", text, &message).ok();
}

// Returns what a textproto is that is not a scenario; "" if nothing fits.
std::string TextProtoKind(const std::string& text) {
  SilenceProtobuf();
  if (Parses<Scenario>(text)) return "";
  if (Parses<Sweep>(text)) return "a sweep";
  if (Parses<Model>(text)) return "a model";
  if (Parses<Cluster>(text)) return "a cluster";
  if (Parses<DeviceProfile>(text)) return "a device profile";
  if (Parses<Runtime>(text)) return "a runtime";
  return "";
}

std::string KindOfText(const std::string& text) {
  const absl::string_view line =
      absl::string_view(text).substr(0, text.find('\n'));
  if (absl::StartsWith(text, "SQLite format 3")) return "an SQLite database";
  if (absl::StartsWithIgnoreCase(text, "<!doctype html")) {
    return "an HTML page";
  }
  if (absl::StartsWith(text, "<?xml") || absl::StartsWith(text, "<svg")) {
    return "a picture or another XML file";
  }
  if (plan::IsSweepHeader(absl::StripSuffix(line, "\r"))) {
    return "the CSV table of a sweep";
  }
  if (results::IsTrainStudyHeader(absl::StripSuffix(line, "\r"))) {
    return "the CSV table of a training study";
  }
  if (absl::StartsWith(text, "\x1f\x8b")) return "a gzip file";
  if (text.find('\0') != std::string::npos) return "a binary file";
  return TextProtoKind(text);
}

}  // namespace

FileKind KindOfFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {Type::kFolder, ""};
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const auto text = ReadFile(path);
  if (!text.ok() || text->empty()) return {};
  const absl::string_view begin =
      absl::StripLeadingAsciiWhitespace(absl::string_view(*text));
  if (absl::EndsWith(path, ".jsonl")) {
    return {Type::kOther, "a file of records, such as a shard of a sweep"};
  }
  if (absl::StartsWith(begin, "{") || absl::StartsWith(begin, "[")) {
    return {Type::kJson, ""};
  }
  const std::string kind = KindOfText(*text);
  return kind.empty() ? FileKind() : FileKind{Type::kOther, kind};
}

}  // namespace weir::cli
