// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/file_kind.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/text.h"
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

// Returns true if a line begins with a field of a scenario. Then parse errors
// say most about what is wrong.
bool MayBeScenario(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    const size_t end =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789");
    const absl::string_view rest = absl::StripLeadingAsciiWhitespace(
        line.substr(std::min(end, line.size())));
    if ((absl::StartsWith(rest, ":") || absl::StartsWith(rest, "{")) &&
        Scenario::descriptor()->FindFieldByName(
            std::string(line.substr(0, end))) != nullptr) {
      return true;
    }
  }
  return false;
}

// Returns true if the first line has commas and is not textproto.
bool IsCsv(absl::string_view line) {
  return absl::StrContains(line, ',') &&
         line.find_first_of(":{#") == absl::string_view::npos;
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

std::string KindOfText(const std::string& path, const std::string& text) {
  const absl::string_view line =
      absl::string_view(text).substr(0, text.find('\n'));
  if (absl::StartsWith(text, "SQLite format 3")) return "an SQLite database";
  if (absl::StartsWithIgnoreCase(text, "<!doctype html")) {
    return "an HTML page";
  }
  if (absl::StartsWith(text, "<?xml") || absl::StartsWith(text, "<svg")) {
    return "a picture or another XML file";
  }
  if (absl::StartsWith(text, "\x1f\x8b")) return "a gzip file";
  if (text.find('\0') != std::string::npos) return "a binary file";
  std::string output = DescribeOutput(text);
  if (!output.empty()) return output;
  if (IsCsv(line)) return "a CSV table";
  std::string kind = TextProtoKind(text);
  const bool is_textproto = absl::EndsWith(path, ".textproto") ||
                            absl::EndsWith(path, ".pbtxt") ||
                            absl::EndsWith(path, ".txtpb");
  if (!kind.empty() || is_textproto || absl::EndsWith(path, ".pb") ||
      MayBeScenario(text)) {
    return kind;
  }
  return "a text file without any field of a scenario";
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
  const std::string kind = KindOfText(path, *text);
  return kind.empty() ? FileKind() : FileKind{Type::kOther, kind};
}

std::string DescribeOutput(const std::string& text) {
  const absl::string_view line = absl::StripSuffix(
      absl::string_view(text).substr(0, text.find('\n')), "\r");
  if (plan::IsSweepHeader(line)) return "the CSV table of a sweep";
  if (results::IsTrainStudyHeader(line)) {
    return "the CSV table of a training study";
  }
  if (absl::StartsWith(line, "line,row,quantity,measured,predicted,")) {
    return "the CSV output of weir validate";
  }
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{")) {
    return "";
  }
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("tool", nlohmann::json()) != "weir") {
    return "";
  }
  const nlohmann::json command = json.value("command", nlohmann::json());
  return absl::StrCat("the JSON output of weir ",
                      command.is_string()
                          ? EscapeLine(command.get<std::string>().substr(0, 80))
                          : "");
}

}  // namespace weir::cli
