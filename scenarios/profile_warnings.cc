// SPDX-License-Identifier: Apache-2.0
#include "scenarios/profile_warnings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/profile/software.h"

namespace weir::scenarios {
namespace {

// Relative tolerance: drivers and datasheets count memory differently.
constexpr double kSameMemory = 0.05;

// Returns "H200" for "NVIDIA H200" and for "H200-SXM5-141GB"; the whole name if
// it contains no model number.
std::string ModelOf(absl::string_view name) {
  for (absl::string_view word : absl::StrSplit(name, absl::ByAnyChar(" -_"))) {
    const bool digit =
        std::any_of(word.begin(), word.end(), absl::ascii_isdigit);
    if (digit && absl::ascii_isalpha(word[0])) {
      return absl::AsciiStrToUpper(word);
    }
  }
  return absl::AsciiStrToUpper(name);
}

struct Gpu {
  std::string name;
  double num_multiprocessors = 0, memory_bytes = 0;
};
Gpu GpuOf(const DeviceProfile& profile) {
  Gpu gpu = {profile.name(), profile.num_multiprocessors().value(),
             profile.memory_bytes().value()};
  const Provenance& measured = profile.provenance();
  if (!measured.gpu_name().empty()) gpu.name = measured.gpu_name();
  if (measured.num_multiprocessors() > 0) {
    gpu.num_multiprocessors = measured.num_multiprocessors();
  }
  if (measured.memory_bytes() > 0) {
    gpu.memory_bytes = static_cast<double>(measured.memory_bytes());
  }
  return gpu;
}

}  // namespace

std::vector<std::string> ProfileWarnings(const DeviceProfile& profile,
                                         const Software& software) {
  std::vector<std::string> warnings;
  if (profile.kernels_size() > 0 && !profile.has_provenance()) {
    warnings.push_back(absl::StrCat(
        Ascii(profile.name()), ": has measured kernels, but no provenance"));
  }
  const auto measured = calibrate::VersionsOf(profile.provenance().software());
  const auto running = calibrate::VersionsOf(software);
  std::vector<std::string> differ;
  for (size_t i = 0; i < measured.size(); ++i) {
    const std::string& with = measured[i].second;
    const std::string& runs = running[i].second;
    if (with.empty() || runs.empty() || with == runs) continue;
    differ.push_back(
        absl::StrCat(measured[i].first, " ", with, ", not ", runs));
  }
  if (!differ.empty()) {
    warnings.push_back(
        absl::StrCat(Ascii(profile.name()), ": was measured with ",
                     Ascii(absl::StrJoin(differ, "; ")), " as on the cluster"));
  }
  return warnings;
}

std::vector<std::string> PartitionWarnings(const DeviceProfile& profile,
                                           const Cluster& cluster,
                                           const std::vector<int>& used_gpus) {
  const int num_parts =
      static_cast<int>(profile.partition_slowdown().num_partitions());
  const std::string parts =
      absl::StrCat(Ascii(profile.name()), ": describes one of ", num_parts,
                   " partitions of a GPU, ");
  std::set<std::string> warnings;
  int first = 0;
  for (const NodeGroup& group : cluster.groups()) {
    const int num_gpus = static_cast<int>(group.node().num_gpus());
    const int last = first + num_gpus * static_cast<int>(group.count());
    std::map<int, std::set<int>> whole_gpus;  // GPUs in use, by node
    for (int gpu : used_gpus) {
      if (gpu < first || gpu >= last) continue;
      const int node = (gpu - first) / num_gpus;
      whole_gpus[node].insert((gpu - first) % num_gpus / num_parts);
    }
    first = last;
    if (whole_gpus.empty()) continue;
    if (num_gpus % num_parts != 0) {
      warnings.insert(absl::StrCat(
          parts, "but the ", num_gpus, " partitions of a node are ",
          num_gpus / num_parts, " whole GPUs and ", num_gpus % num_parts,
          " partitions of another, whose rest is idle"));
    }
    size_t most = 0;
    for (const auto& [node, used] : whole_gpus)
      most = std::max(most, used.size());
    if (most > 1) {
      warnings.insert(absl::StrCat(
          parts, "but the partitions in use on a node belong to ", most,
          " GPUs; to share a GPU among more ranks, use a profile with more "
          "partitions"));
    }
  }
  return {warnings.begin(), warnings.end()};
}

std::string PurposeWarning(const DeviceProfile& profile, const Cluster& cluster,
                           absl::string_view runtime) {
  const bool of_replays = profile.purpose() == DeviceProfile::REPLAYS;
  if (!profile.has_provenance()) return "";
  if (of_replays && runtime != "weir") {
    return absl::StrCat(Ascii(profile.name()),
                        ": predicts replays, with weir's own attention, not ",
                        "that of ", Ascii(runtime),
                        " (weir-calibrate run --for frameworks)");
  }
  if (!of_replays && runtime == "weir" && cluster.plain_links()) {
    return absl::StrCat(Ascii(profile.name()),
                        ": predicts frameworks, whose attention is not that "
                        "of replays (weir-calibrate run --for replays)");
  }
  return "";
}

std::string OtherGpuWarning(const DeviceProfile& profile,
                            const DeviceProfile& of_cluster) {
  const Gpu ours = GpuOf(profile), theirs = GpuOf(of_cluster);
  std::vector<std::string> differ;
  if (ours.num_multiprocessors != theirs.num_multiprocessors) {
    differ.push_back(absl::StrCat(ours.num_multiprocessors,
                                  " multiprocessors, not ",
                                  theirs.num_multiprocessors));
  }
  if (std::abs(ours.memory_bytes - theirs.memory_bytes) >
      kSameMemory * theirs.memory_bytes) {
    differ.push_back(absl::StrCat(FormatBytes(ours.memory_bytes), ", not ",
                                  FormatBytes(theirs.memory_bytes)));
  }
  if (differ.empty() && ModelOf(ours.name) == ModelOf(theirs.name)) return "";
  return absl::StrCat("the profile is for ", Ascii(ours.name),
                      ", but the cluster has ", Ascii(theirs.name),
                      differ.empty() ? "" : ": ", absl::StrJoin(differ, "; "));
}

}  // namespace weir::scenarios
