// SPDX-License-Identifier: Apache-2.0
#include "calibrate/software.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace weir {
namespace {

constexpr size_t kLongest = 60;

bool IsVersion(absl::string_view text) {
  if (text.size() > kLongest) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains(".+-_~", c)) return false;
  }
  return text.empty() || absl::ascii_isdigit(text[0]);
}

}  // namespace

std::vector<std::pair<absl::string_view, std::string>> VersionsOf(
    const Software& software) {
  return {{"driver", software.driver()},
          {"CUDA", software.cuda()},
          {"cuBLAS", software.cublas()},
          {"cuDNN", software.cudnn()},
          {"NCCL", software.nccl()}};
}

std::string SoftwareText(const Software& software) {
  std::vector<std::string> parts;
  for (const auto& [name, version] : VersionsOf(software)) {
    if (!version.empty()) parts.push_back(absl::StrCat(name, " ", version));
  }
  return Ascii(absl::StrJoin(parts, ", "));
}

void CheckSoftware(absl::string_view field, const Software& software,
                   Problems* problems) {
  for (const auto& [name, version] : VersionsOf(software)) {
    if (IsVersion(version)) continue;
    problems->Add(absl::StrCat(field, ".", absl::AsciiStrToLower(name)),
                  absl::StrCat("is \"", Shortened(version, kLongest),
                               "\", expected a version such as \"13.0\""));
  }
}

}  // namespace weir
