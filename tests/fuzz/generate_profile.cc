// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_profile.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <vector>

#include "base/assets.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "tests/toy_profile.h"

namespace weir::fuzz {
namespace {

const std::vector<DeviceProfile>& Originals() {
  static const auto& originals = *[] {
    auto* all = new std::vector<DeviceProfile>{ToyProfile()};
    for (const std::string& name : ListAssets("calibrate/profile/presets")) {
      const auto profile = calibrate::LoadDeviceProfile(name);
      if (profile.ok()) all->push_back(*profile);
    }
    return all;
  }();
  return originals;
}

bool Has(const std::string& path, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) {
    return path.find(word) != std::string::npos;
  });
}

// Returns true for fractions, which are at most 1.
bool IsPart(const std::string& path) {
  return Has(path, {"efficiency", "link_part", "gemm.matrix_rate",
                    "memory_rate", "sustained_rate", "quantization"});
}

// Returns true for factors and counts that are at least 1.
bool IsAtLeastOne(const std::string& path) {
  return Has(path, {"slowdown", "cache_shares", "net_plateau"});
}

void MoveFigures(DeviceProfile* profile, Choices* choices) {
  for (calibrate::NamedFigure& named : calibrate::FiguresOf(profile)) {
    if (!choices->OneIn(4)) continue;
    double value = named.figure->value() * choices->LogReal(0.7, 1.4);
    if (IsPart(named.path)) value = std::clamp(value, 1e-3, 1.0);
    if (IsAtLeastOne(named.path)) value = std::max(value, 1.0);
    // Byte counts stay unchanged, as a part must not exceed memory_bytes.
    if (!Has(named.path, {"_bytes"}) || Has(named.path, {"per_second"})) {
      named.figure->set_value(value);
    }
    if (choices->OneIn(4)) {
      named.figure->set_relative_error(choices->Real(0, 0.5));
    }
  }
}

void DropParts(DeviceProfile* profile, Choices* choices) {
  if (choices->OneIn(6)) profile->clear_collectives();
  if (choices->OneIn(6)) profile->clear_attention_efficiency();
  if (choices->OneIn(6)) profile->clear_norm_efficiency();
  if (choices->OneIn(6)) profile->clear_elementwise_efficiency();
  if (choices->OneIn(6)) profile->clear_coverage();
  if (choices->OneIn(6)) profile->clear_links();
  if (choices->OneIn(6)) profile->clear_kernel_gap_seconds();
  if (choices->OneIn(8)) {
    Figure* gap = profile->mutable_kernel_gap_seconds();
    gap->set_value(choices->Real(-2e-7, 2e-6));
    gap->set_kind(Figure::MEASURED);
    gap->set_source("fuzz");
  }
  if (choices->OneIn(3) && profile->kernels_size() > 0) {
    profile->mutable_kernels()->DeleteSubrange(
        0, choices->Int(0, profile->kernels_size()));
  }
}

void BreakFigure(DeviceProfile* profile, Choices* choices) {
  std::vector<calibrate::NamedFigure> figures = calibrate::FiguresOf(profile);
  if (figures.empty()) return;
  Figure* figure =
      figures[choices->Int(0, static_cast<int>(figures.size()) - 1)].figure;
  if (choices->OneIn(4)) return figure->clear_source();
  figure->set_value(choices->Of<double>(
      {-1, 0, 1e300, std::numeric_limits<double>::quiet_NaN(),
       std::numeric_limits<double>::infinity()}));
}

}  // namespace

void VaryProfile(bool may_be_invalid, DeviceProfile* profile,
                 Choices* choices) {
  MoveFigures(profile, choices);
  DropParts(profile, choices);
  if (may_be_invalid && choices->OneIn(12)) BreakFigure(profile, choices);
}

DeviceProfile GenerateProfile(Choices* choices) {
  DeviceProfile profile = choices->Of(Originals());
  VaryProfile(true, &profile, choices);
  return profile;
}

}  // namespace weir::fuzz
