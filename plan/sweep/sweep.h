// SPDX-License-Identifier: Apache-2.0
// A sweep: one scenario, and the fields in which its points differ.
#ifndef WEIR_PLAN_SWEEP_SWEEP_H_
#define WEIR_PLAN_SWEEP_SWEEP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/sweep/sweep.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir {

// A sweep with everything that it names loaded and checked.
struct ResolvedSweep {
  std::string label;  // file or "command line", for messages
  // Its scenario whole, every range spelled out, a table's points listed: alone
  // says what is swept, but for files that scenarios name.
  Sweep sweep;
  // That the points set: of its points in order of appearance, then of axes.
  std::vector<std::string> fields;
  uint32_t num_points = 0;
};

absl::StatusOr<Sweep> LoadSweep(const std::string& path);

// Reads "parallelism.pipeline=2,4,8,schedule=gpipe,1f1b": a word before '='
// that may be a path begins an axis.
absl::StatusOr<std::vector<SweepAxis>> ParseGrid(absl::string_view text);

// All problems come back together, each with its field.
absl::StatusOr<ResolvedSweep> ResolveSweep(absl::string_view label,
                                           const Sweep& sweep);

// (field, value) of a point in order of ResolvedSweep::fields, without those
// that it leaves as they are.
std::vector<std::pair<std::string, std::string>> SettingsOf(
    const ResolvedSweep& sweep, uint32_t point);

// Returns the same with values as results show them: schedules under their own
// names.
std::vector<std::pair<std::string, std::string>> ShownSettingsOf(
    const ResolvedSweep& sweep, uint32_t point);

Scenario ScenarioOfPoint(const ResolvedSweep& sweep, uint32_t point);

// What results depend on: the sweep, this build and the files that its
// scenarios name, as they are now.
SweepHead HeadOf(const ResolvedSweep& sweep);

// InvalidArgument that says what changed, a line each.
absl::Status CheckSameSweep(const SweepHead& before, const SweepHead& now);

}  // namespace weir

#endif  // WEIR_PLAN_SWEEP_SWEEP_H_
