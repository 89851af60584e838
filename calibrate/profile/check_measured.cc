// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/check_measured.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/partition_slowdown.h"
#include "calibrate/profile/software.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

constexpr double kMaxSeconds = 1e5;
constexpr double kMaxSize = 1e15;
// A day of measurements yields fewer entries than this.
constexpr int kMaxEntries = 200000;

void CheckQuantiles(const std::string& field, const Quantiles& quantiles,
                    Problems* problems) {
  const std::pair<const char*, double> ascending[] = {{"min", quantiles.min()},
                                                      {"p10", quantiles.p10()},
                                                      {"p50", quantiles.p50()},
                                                      {"p90", quantiles.p90()},
                                                      {"p99", quantiles.p99()}};
  double last = 1e-12;
  for (const auto& [name, value] : ascending) {
    problems->CheckRange(absl::StrCat(field, ".", name), value, last,
                         kMaxSeconds);
    if (value > last) last = value;
  }
  problems->CheckRange(absl::StrCat(field, ".mean"), quantiles.mean(), 1e-12,
                       kMaxSeconds);
  problems->CheckRange(absl::StrCat(field, ".deviation"), quantiles.deviation(),
                       0, kMaxSeconds);
  problems->CheckRange(absl::StrCat(field, ".relative_ci"),
                       quantiles.relative_ci(), 0, 3);
  if (quantiles.num_samples() == 0) {
    problems->Add(absl::StrCat(field, ".num_samples"),
                  "is 0, expected at least 1");
  }
}

void CheckPart(const std::string& field, const std::string& part,
               Problems* problems) {
  if (models::KernelPartOf(part).has_value()) return;
  std::vector<std::string> names;
  for (int i = 0; i < models::kNumKernelParts; ++i) {
    names.push_back(models::Name(static_cast<models::KernelPart>(i)));
  }
  problems->Add(field, absl::StrCat("is \"", part, "\", expected one of: ",
                                    absl::StrJoin(names, ", ")));
}

void CheckKernel(const std::string& field, const MeasuredKernel& kernel,
                 Problems* problems) {
  if (!MeasuredKernel::Kind_IsValid(kernel.kind())) {
    problems->Add(absl::StrCat(field, ".kind"),
                  absl::StrCat("is ", static_cast<int>(kernel.kind()),
                               ", expected GEMM, ATTENTION or MEMORY"));
  }
  CheckPart(absl::StrCat(field, ".part"), kernel.part(), problems);
  problems->CheckRange(absl::StrCat(field, ".bytes"), kernel.bytes(), 1,
                       kMaxSize);
  const double lowest = kernel.kind() == MeasuredKernel::MEMORY ? 0 : 1;
  const std::pair<const char*, double> sizes[] = {{"batch", kernel.batch()},
                                                  {"m", kernel.m()},
                                                  {"n", kernel.n()},
                                                  {"k", kernel.k()}};
  for (const auto& [name, size] : sizes) {
    problems->CheckRange(absl::StrCat(field, ".", name), size, lowest,
                         kMaxSize);
  }
  if (lowest == 1 && kernel.format().empty()) {
    problems->Add(absl::StrCat(field, ".format"),
                  "is empty, expected a name such as \"bf16\"");
  }
  if (kernel.kind() == MeasuredKernel::ATTENTION) {
    problems->CheckRange(absl::StrCat(field, ".num_gemms"), kernel.num_gemms(),
                         1, 100);
  }
  problems->CheckRange(absl::StrCat(field, ".performed_flops"),
                       kernel.performed_flops(), 0, 1e24);
  problems->CheckRange(absl::StrCat(field, ".host_launch_seconds"),
                       kernel.host_launch_seconds(), 0, kMaxSeconds);
  problems->CheckRange(absl::StrCat(field, ".multiprocessor_hertz"),
                       kernel.multiprocessor_hertz(), 0, 1e12);
  problems->CheckRange(absl::StrCat(field, ".watts"), kernel.watts(), 0, 1e6);
  CheckQuantiles(absl::StrCat(field, ".seconds"), kernel.seconds(), problems);
}

void CheckStage(const std::string& field, const MeasuredStage& stage,
                Problems* problems) {
  const std::string& pass = stage.pass();
  if (pass != "forward" && pass != "backward_input" &&
      pass != "backward_weight") {
    problems->Add(absl::StrCat(field, ".pass"),
                  absl::StrCat("is \"", pass,
                               "\", expected forward, backward_input or "
                               "backward_weight"));
  }
  problems->CheckRange(absl::StrCat(field, ".sum_of_kernels_seconds"),
                       stage.sum_of_kernels_seconds(), 0, kMaxSeconds);
  CheckQuantiles(absl::StrCat(field, ".seconds"), stage.seconds(), problems);
  if (stage.has_stream_seconds()) {
    CheckQuantiles(absl::StrCat(field, ".stream_seconds"),
                   stage.stream_seconds(), problems);
  }
}

void CheckMemory(const std::string& field, const MeasuredMemory& memory,
                 Problems* problems) {
  const std::pair<const char*, double> bytes[] = {
      {"predicted_bytes", memory.predicted_bytes()},
      {"used_high_bytes", memory.used_high_bytes()},
      {"reserved_high_bytes", memory.reserved_high_bytes()}};
  for (const auto& [name, value] : bytes) {
    problems->CheckRange(absl::StrCat(field, ".", name), value, 0, 1e15);
  }
}

// Checks that the time of a message grows with its size and that each piece
// begins with the time at which the previous one ends.
void CheckPieces(const std::string& field, const LinkClass& link,
                 Problems* problems) {
  if (link.pieces().empty()) {
    problems->Add(absl::StrCat(field, ".pieces"),
                  "is empty, expected at least one");
  }
  for (int i = 0; i < link.pieces_size(); ++i) {
    const TransferPiece& piece = link.pieces(i);
    const std::string where = absl::StrCat(field, ".pieces[", i, "]");
    const double lowest =
        i == 0 ? 0 : std::nextafter(link.pieces(i - 1).from_bytes(), kMaxSize);
    problems->CheckRange(absl::StrCat(where, ".from_bytes"), piece.from_bytes(),
                         lowest, i == 0 ? 0 : kMaxSize);
    problems->CheckRange(absl::StrCat(where, ".bytes_per_second"),
                         piece.bytes_per_second(), 1, 1e16);
    problems->CheckRange(absl::StrCat(where, ".latency_seconds"),
                         piece.latency_seconds(), i == 0 ? 0 : -100, 100);
    if (i == 0 || !(piece.bytes_per_second() > 0)) continue;
    const TransferPiece& before = link.pieces(i - 1);
    const double bytes = piece.from_bytes();
    const double here =
        piece.latency_seconds() + bytes / piece.bytes_per_second();
    const double there =
        before.latency_seconds() + bytes / before.bytes_per_second();
    if (!(std::abs(here - there) <= 1e-3 * std::abs(there))) {
      problems->Add(where,
                    absl::StrCat("takes ", here, " s at from_bytes, expected ",
                                 there, " s as in the previous piece"));
    }
  }
}

void CheckLink(const std::string& field, const LinkClass& link,
               Problems* problems) {
  if (link.distance() == LinkClass::DISTANCE_UNSPECIFIED ||
      !LinkClass::Distance_IsValid(link.distance())) {
    problems->Add(absl::StrCat(field, ".distance"),
                  "is unspecified, expected SAME_GPU, SAME_SWITCH, SAME_NODE, "
                  "SAME_LEAF or ACROSS_SPINES");
  }
  CheckPieces(field, link, problems);
  problems->CheckRange(absl::StrCat(field, ".bidirectional_slowdown"),
                       link.bidirectional_slowdown(), 0, 100);
  problems->CheckRange(absl::StrCat(field, ".pair_spread"), link.pair_spread(),
                       0, 1e6);
  problems->CheckRange(absl::StrCat(field, ".residual"), link.residual(), 0, 3);
  CheckFigure(absl::StrCat(field, ".figure"), link.figure(), 1, 1e16, problems);
}

void CheckLinks(const DeviceProfile& profile, Problems* problems) {
  for (int i = 0; i < profile.links_size(); ++i) {
    const std::string field = absl::StrCat("links[", i, "]");
    CheckLink(field, profile.links(i), problems);
    for (int k = 0; k < i; ++k) {
      if (profile.links(k).distance() != profile.links(i).distance()) continue;
      problems->Add(
          absl::StrCat(field, ".distance"),
          absl::StrCat("is ",
                       LinkClass::Distance_Name(profile.links(i).distance()),
                       " again, expected it once"));
    }
  }
}

// Checks the parts of the memory reserved before the first tensor: all or none
// of them are set, and they add up to reserved_bytes.
void CheckReserved(const DeviceProfile& profile, Problems* problems) {
  const std::pair<const char*, const Figure*> parts[] = {
      {"context_bytes", &profile.context_bytes()},
      {"library_bytes", &profile.library_bytes()},
      {"workspace_bytes", &profile.workspace_bytes()}};
  if (!HasReservedParts(profile)) return;
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    CheckFigure(parts[i].first, *parts[i].second, 0,
                profile.memory_bytes().value(), problems);
    sum += parts[i].second->value();
  }
  if (!profile.has_reserved_bytes()) return;
  const double reserved = profile.reserved_bytes().value();
  if (!(std::abs(reserved - sum) <= 1e-6 * sum + 0.5)) {
    problems->Add("reserved_bytes.value",
                  absl::StrCat("is ", reserved, ", expected ", sum,
                               ", the sum of context_bytes, library_bytes and "
                               "workspace_bytes, or none"));
  }
}

void CheckOverlap(const DeviceProfile& profile, Problems* problems) {
  if (profile.has_kernel_gap_seconds()) {
    CheckFigure("kernel_gap_seconds", profile.kernel_gap_seconds(), -1e-3, 1,
                problems);
  }
  if (profile.has_copy_slowdown()) {
    CheckFigure("copy_slowdown", profile.copy_slowdown(), 0.5, 100, problems);
  }
  if (profile.has_collective_slowdown()) {
    CheckFigure("collective_slowdown", profile.collective_slowdown(), 0.5, 100,
                problems);
  }
}

template <typename Entries, typename Check>
void CheckEach(const char* field, const Entries& entries, Check check,
               Problems* problems) {
  if (entries.size() > kMaxEntries) {
    problems->Add(field,
                  absl::StrCat("has ", entries.size(),
                               " entries, expected at most ", kMaxEntries));
    return;
  }
  for (int i = 0; i < entries.size(); ++i) {
    check(absl::StrCat(field, "[", i, "]"), entries[i], problems);
  }
}

}  // namespace

void CheckMeasured(const DeviceProfile& profile, Problems* problems) {
  CheckEach("kernels", profile.kernels(), CheckKernel, problems);
  CheckEach("stages", profile.stages(), CheckStage, problems);
  CheckEach("memory", profile.memory(), CheckMemory, problems);
  CheckLinks(profile, problems);
  CheckOverlap(profile, problems);
  CheckPartitionSlowdown(profile, problems);
  CheckSoftware("provenance.software", profile.provenance().software(),
                problems);
  CheckReserved(profile, problems);
}

}  // namespace weir::calibrate
