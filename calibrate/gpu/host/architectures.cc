// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/architectures.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weir::calibrate {
namespace {

// The V100 is the first GPU with tensor cores.
constexpr int kOldest = 70;

struct Compiled {
  int architecture = 0;
  bool machine_code = true, portable = true;
  bool exact = false;  // "90a" runs on no other architecture
};

Compiled Parse(absl::string_view entry) {
  Compiled compiled;
  compiled.portable = !absl::ConsumeSuffix(&entry, "-real");
  compiled.machine_code = !absl::ConsumeSuffix(&entry, "-virtual");
  compiled.exact = absl::ConsumeSuffix(&entry, "a");
  // For "native" and "all" the compiler chooses the architecture.
  if (!absl::SimpleAtoi(entry, &compiled.architecture)) {
    compiled = {kOldest, true, true, false};
  }
  return compiled;
}

bool RunsOn(const Compiled& compiled, int architecture) {
  if (compiled.exact) return architecture == compiled.architecture;
  if (architecture < compiled.architecture) return false;
  return compiled.portable || (compiled.machine_code &&
                               architecture / 10 == compiled.architecture / 10);
}

std::string Words(const Compiled& compiled) {
  return absl::StrCat("sm_", compiled.architecture,
                      compiled.portable && !compiled.exact ? " and later" : "");
}

}  // namespace

absl::Status CheckArchitecture(absl::string_view gpu_name, int major, int minor,
                               absl::string_view compiled) {
  const int architecture = 10 * major + minor;
  std::vector<std::string> names;
  bool runs = false;
  for (absl::string_view entry :
       absl::StrSplit(compiled, absl::ByAnyChar(";,"))) {
    const Compiled parsed = Parse(entry);
    runs |= RunsOn(parsed, architecture);
    names.push_back(Words(parsed));
  }
  if (runs && architecture >= kOldest) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this GPU (", gpu_name, ") is sm_", architecture,
                   "; weir-calibrate was built for ",
                   absl::StrJoin(names, ", "), " (CMAKE_CUDA_ARCHITECTURES)"));
}

}  // namespace weir::calibrate
