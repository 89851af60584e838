// SPDX-License-Identifier: Apache-2.0
#include "scenarios/set_figures.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"
#include "calibrate/profile/set_figure.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios {
namespace {

using calibrate::ScalarFields;

constexpr absl::string_view kRuntime = "runtime.";
constexpr absl::string_view kCluster = "cluster.";
constexpr absl::string_view kDevice = "device.";

// Paths without a known prefix belong to the device.
absl::string_view PrefixOf(absl::string_view setting) {
  for (const absl::string_view prefix : {kRuntime, kCluster}) {
    if (absl::StartsWith(setting, prefix)) return prefix;
  }
  return kDevice;
}

// One kind of message that settings may change.
struct FigureTarget {
  absl::string_view prefix;
  ScalarFields scalars;
  google::protobuf::Message* message;
  std::function<absl::Status(absl::string_view label)> check;
};

// Returns the paths that settings of the target could mean, with prefixes. A
// path without a prefix may also have been meant for the runtime.
std::vector<std::string> KnownSettings(const FigureTarget& target) {
  std::vector<std::string> known;
  const auto add = [&](absl::string_view prefix,
                       const google::protobuf::Message& message,
                       ScalarFields scalars) {
    for (const std::string& path : calibrate::SettablePaths(message, scalars)) {
      known.push_back(absl::StrCat(prefix, path));
    }
  };
  add(target.prefix == kDevice ? "" : target.prefix, *target.message,
      target.scalars);
  if (target.prefix == kDevice) add(kRuntime, Runtime(), ScalarFields::kAll);
  return known;
}

absl::Status ApplySettings(absl::string_view label, const Scenario& scenario,
                           const FigureTarget& target,
                           std::vector<std::string>* notes) {
  Problems problems(label);
  bool changed = false;
  for (const std::string& setting : scenario.set_figures()) {
    const std::string flag = absl::StrCat("--set ", setting);
    if (const absl::Status form = CheckFigureSetting(setting); !form.ok()) {
      // Reported once, not for every kind of message.
      if (target.prefix == kDevice) problems.Add("--set", form.message());
      continue;
    }
    if (PrefixOf(setting) != target.prefix) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    const absl::string_view path =
        absl::StripPrefix(parts.first, target.prefix);
    const auto old = calibrate::SetFigure(path, parts.second, target.scalars,
                                          target.message);
    if (old.ok()) {
      changed = true;
      if (*old != parts.second &&
          !absl::StartsWith(*old, absl::StrCat(parts.second, " ("))) {
        notes->push_back(absl::StrCat(flag, " replaces ", *old));
      }
    } else {
      problems.Add("--set",
                   absl::StrCat("is ", setting, ", ", old.status().message(),
                                absl::IsNotFound(old.status())
                                    ? calibrate::DidYouMeanPath(
                                          parts.first, KnownSettings(target))
                                    : ""));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return changed ? target.check(absl::StrCat(label, ": --set"))
                 : absl::OkStatus();
}

// Scales all rates of measured links by their figures' changes.
void ScaleLinks(const DeviceProfile& before, DeviceProfile* device) {
  for (int i = 0; i < device->links_size(); ++i) {
    const double old = before.links(i).figure().value();
    LinkClass& link = *device->mutable_links(i);
    const double factor = old > 0 ? link.figure().value() / old : 1;
    if (factor == 1) continue;
    for (TransferPiece& piece : *link.mutable_pieces()) {
      piece.set_bytes_per_second(piece.bytes_per_second() * factor);
    }
  }
}

}  // namespace

absl::Status CheckFigureSetting(absl::string_view text) {
  const size_t sign = text.find('=');
  if (sign != absl::string_view::npos && sign > 0 && sign + 1 < text.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", text,
      ", expected PARAMETER=VALUE, as in gemm.sustained_rate=0.85"));
}

absl::Status SetDeviceFigures(absl::string_view label, const Scenario& scenario,
                              DeviceProfile* device,
                              std::vector<std::string>* notes) {
  if (scenario.set_figures().empty()) return absl::OkStatus();
  const DeviceProfile before = *device;
  RETURN_IF_ERROR(ApplySettings(label, scenario,
                                {kDevice, ScalarFields::kNone, device,
                                 [&](absl::string_view where) {
                                   ScaleLinks(before, device);
                                   return calibrate::ValidateDeviceProfile(
                                       where, *device);
                                 }},
                                notes));
  return absl::OkStatus();
}

absl::Status SetRuntimeFigures(absl::string_view label,
                               const Scenario& scenario, Runtime* runtime,
                               std::vector<std::string>* notes) {
  return ApplySettings(label, scenario,
                       {kRuntime, ScalarFields::kAll, runtime,
                        [&](absl::string_view where) {
                          return calibrate::ValidateRuntime(where, *runtime);
                        }},
                       notes);
}

absl::Status SetClusterFigures(absl::string_view label,
                               const Scenario& scenario, Cluster* cluster,
                               std::vector<std::string>* notes) {
  return ApplySettings(label, scenario,
                       {kCluster, ScalarFields::kDoubles, cluster,
                        [&](absl::string_view where) {
                          return ValidateCluster(where, *cluster);
                        }},
                       notes);
}

}  // namespace weir::scenarios
