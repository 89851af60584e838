// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/software.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace weir::calibrate {
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

Provenance BothProvenances(const Provenance& kernels,
                           const Provenance& network) {
  if (kernels.gpu_name().empty()) return network;
  Provenance both = kernels;
  both.mutable_software()->Clear();
  both.mutable_software()->MergeFrom(network.software());
  both.mutable_software()->MergeFrom(kernels.software());
  // Links and collectives depend on the NCCL version of the network run.
  if (!network.software().nccl().empty()) {
    both.mutable_software()->set_nccl(network.software().nccl());
  }
  both.set_num_ranks(network.num_ranks());
  both.set_num_nodes(network.num_nodes());
  both.mutable_remarks()->MergeFrom(network.remarks());
  if (kernels.command() != network.command()) {
    both.set_command(absl::StrCat(kernels.command(), "; ", network.command()));
  }
  if (kernels.gpu_name() != network.gpu_name()) {
    both.add_remarks(absl::StrCat("communication was measured on ",
                                  network.gpu_name(), ", everything else on ",
                                  kernels.gpu_name()));
  }
  return both;
}

}  // namespace weir::calibrate
