// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {

namespace {

constexpr absl::string_view kPresets = "calibrate/profile/presets";

// Returns how different two sizes are; 0 if one of them is not known.
double Distance(double a, double b) {
  return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0;
}

}  // namespace

absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name) {
  for (const std::string& preset : ListAssets(kPresets)) {
    ASSIGN_OR_RETURN(const DeviceProfile profile, LoadDeviceProfile(preset));
    for (const std::string& name : profile.gpu_names()) {
      if (gpu_name == name ||
          absl::EndsWith(gpu_name, absl::StrCat(" ", name))) {
        return preset;
      }
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no preset is known for \"", gpu_name,
      "\": give the closest one or your own profile with --start (",
      absl::StrJoin(ListAssets(kPresets), ", "), ")"));
}

absl::StatusOr<std::string> ClosestProfile(double memory_bytes,
                                           int num_multiprocessors,
                                           absl::string_view format) {
  std::string closest;
  double least = 0;
  for (const std::string& preset : ListAssets(kPresets)) {
    ASSIGN_OR_RETURN(const DeviceProfile profile, LoadDeviceProfile(preset));
    if (!PeakFlops(profile, format).ok()) continue;
    const double distance =
        Distance(memory_bytes, profile.memory_bytes().value()) +
        Distance(num_multiprocessors, profile.num_multiprocessors().value());
    if (!closest.empty() && distance >= least) continue;
    closest = preset;
    least = distance;
  }
  if (!closest.empty()) return closest;
  return absl::NotFoundError(
      absl::StrCat("no preset has a peak rate for ", format));
}

absl::StatusOr<std::string> StartProfileFor(const Provenance& gpu,
                                            absl::string_view format,
                                            std::string* remark) {
  absl::StatusOr<std::string> start = StartProfileOf(gpu.gpu_name());
  if (!absl::IsNotFound(start.status())) return start;
  ASSIGN_OR_RETURN(
      const std::string closest,
      ClosestProfile(static_cast<double>(gpu.memory_bytes()),
                     static_cast<int>(gpu.num_multiprocessors()), format));
  *remark = absl::StrCat("no preset is known for ", gpu.gpu_name(),
                         ": parameters that are not measured are those of ",
                         closest, ", the most similar GPU (--start)");
  return closest;
}

std::string OtherStart(const DeviceProfile& start,
                       const Provenance& provenance) {
  // Drivers and datasheets count memory differently.
  constexpr double kSameMemory = 0.1;
  const double processors = start.num_multiprocessors().value();
  const double bytes = start.memory_bytes().value();
  const auto has_bytes = static_cast<double>(provenance.memory_bytes());
  std::string differ;
  if (provenance.num_multiprocessors() > 0 &&
      processors != provenance.num_multiprocessors()) {
    differ = absl::StrCat(processors, " multiprocessors, this GPU has ",
                          provenance.num_multiprocessors());
  } else if (has_bytes > 0 && bytes > 0 &&
             std::abs(has_bytes / bytes - 1) > kSameMemory) {
    differ = absl::StrCat(FormatBytes(bytes), ", this GPU has ",
                          FormatBytes(has_bytes));
  }
  if (differ.empty()) return "";
  return absl::StrCat("the start profile is for ", start.name(), ", ", differ,
                      ": its datasheet parameters are used");
}

}  // namespace weir::calibrate
