// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "calibrate/measure/assemble.h"

namespace weir {

absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name) {
  struct Known {
    const char* part;  // of the driver's name
    const char* preset;
  };
  // The first that fits; "H100 80GB HBM3" is the SXM board, "H100 PCIe" not.
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
  // "NVIDIA H200 NVL" is another board: less power, other links.
  for (const Known& known : kKnown) {
    if (absl::StrContains(gpu_name, known.part) &&
        !absl::StrContains(gpu_name, "NVL")) {
      return known.preset;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no preset is known for \"", gpu_name,
      "\": give the nearest, or a profile of your own, with --start (",
      absl::StrJoin(ListAssets("calibrate"), ", "), ")"));
}

}  // namespace weir
