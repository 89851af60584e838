// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/units.h"
#include "calibrate/measure/assemble.h"

namespace weir::calibrate {

absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name) {
  struct Known {
    const char* part;  // part of the driver's name for the GPU
    const char* preset;
  };
  // The first match is used. "H100 80GB HBM3" is the SXM board, "H100 PCIe" is
  // not.
  static constexpr Known kKnown[] = {
      {"B200", "b200-sxm"},
      {"H200", "h200-sxm"},
      {"H100 80GB HBM3", "h100-sxm"},
      {"H100 SXM5 96GB", "h100-sxm-96gb-500w"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla T4", "t4"},
  };
  // "NVIDIA H200 NVL" is a different board: less power, other links.
  for (const Known& known : kKnown) {
    if (absl::StrContains(gpu_name, known.part) &&
        !absl::StrContains(gpu_name, "NVL")) {
      return known.preset;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no preset is known for \"", gpu_name,
      "\": give the closest one or your own profile with --start (",
      absl::StrJoin(ListAssets("calibrate/profile/presets"), ", "), ")"));
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
