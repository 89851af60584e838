// SPDX-License-Identifier: Apache-2.0
// Dependencies of a sweep's results.
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/version.h"
#include "plan/sweep/shard.h"
#include "plan/sweep/sweep.h"

namespace weir::plan {
namespace {

// FNV-1a, which is the same in every process and on every machine.
std::string Fingerprint(absl::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

void AddFile(const std::string& path, SweepHead* head) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;  // a preset
  const auto contents = ReadFile(path);
  SweepHead::File* file = head->add_files();
  file->set_path(path);
  if (contents.ok()) file->set_fingerprint(Fingerprint(*contents));
}

// Returns the fields that may hold the path of a file.
std::set<std::string> NamesIn(const Scenario& scenario) {
  return {scenario.model(), scenario.cluster(), scenario.profile(),
          scenario.runtime(), scenario.schedule()};
}

std::set<std::string> NamesIn(const ResolvedSweep& sweep) {
  std::set<std::string> names = NamesIn(sweep.sweep.scenario());
  const auto add = [&](absl::string_view field, const std::string& value) {
    for (const char* known :
         {"model", "cluster", "profile", "runtime", "schedule"}) {
      if (field == known) names.insert(value);
    }
  };
  for (const SweepAxis& axis : sweep.sweep.axes()) {
    for (const std::string& value : axis.values()) add(axis.field(), value);
  }
  for (const SweepPoint& point : sweep.sweep.points()) {
    for (const std::string& setting : point.set()) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(setting, absl::MaxSplits('=', 1));
      add(parts.first, parts.second);
    }
  }
  return names;
}

std::map<std::string, std::string> FilesOf(const SweepHead& head) {
  std::map<std::string, std::string> files;
  for (const SweepHead::File& file : head.files()) {
    files[file.path()] = file.fingerprint();
  }
  return files;
}

}  // namespace

absl::StatusOr<Sweep> SweepOfFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ShardPaths(folder));
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const ShardContents contents, ReadShardFile(path));
    if (!contents.has_head) continue;
    Sweep sweep;
    RETURN_IF_ERROR(ParseTextProto(path, contents.head.sweep(), &sweep));
    return sweep;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": no shard says which sweep it belongs to"));
}

SweepHead HeadOf(const ResolvedSweep& sweep) {
  SweepHead head;
  head.set_sweep(PrintTextProto(sweep.sweep));
  head.set_weir_version(std::string(WeirVersion()));
  head.set_git_revision(std::string(GitRevision()));
  for (const std::string& name : NamesIn(sweep)) AddFile(name, &head);
  return head;
}

absl::Status CheckSameSweep(const SweepHead& before, const SweepHead& now) {
  std::vector<std::string> changes;
  if (before.sweep() != now.sweep()) {
    Sweep old_sweep, new_sweep;
    RETURN_IF_ERROR(
        ParseTextProto("the earlier sweep", before.sweep(), &old_sweep));
    RETURN_IF_ERROR(ParseTextProto("this sweep", now.sweep(), &new_sweep));
    std::string text;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&text);
    differencer.Compare(old_sweep, new_sweep);
    for (absl::string_view line :
         absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      changes.emplace_back(line);
    }
  }
  const auto build = [](const SweepHead& head) {
    return absl::StrCat(head.weir_version(), " (git ", head.git_revision(),
                        ")");
  };
  if (build(before) != build(now)) {
    changes.push_back(
        absl::StrCat("weir: ", build(before), " -> ", build(now)));
  }
  const auto old_files = FilesOf(before), new_files = FilesOf(now);
  std::set<std::string> paths;
  for (const auto& file : old_files) paths.insert(file.first);
  for (const auto& file : new_files) paths.insert(file.first);
  for (const std::string& path : paths) {
    const auto a = old_files.find(path), b = new_files.find(path);
    if (a == old_files.end() || b == new_files.end() ||
        a->second != b->second) {
      changes.push_back(absl::StrCat("contents of ", path));
    }
  }
  if (changes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("  ", absl::StrJoin(changes, "\n  ")));
}

}  // namespace weir::plan
