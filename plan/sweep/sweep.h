// SPDX-License-Identifier: Apache-2.0
// Sweeps: a base scenario, and the fields in which the points differ.
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

namespace weir::plan {

// A sweep with all of its inputs loaded and checked.
struct ResolvedSweep {
  std::string label;  // file or "command line", for messages
  // The sweep with its full scenario, expanded ranges and the points of the
  // table. It defines the sweep completely, except for files that scenarios
  // name.
  Sweep sweep;
  // The fields that are set: those of `points` in order of appearance, then
  // those of the axes.
  std::vector<std::string> fields;
  uint32_t num_points = 0;
};

// Loads a textproto. Returns NotFound if it does not exist, InvalidArgument if
// it cannot be parsed.
absl::StatusOr<Sweep> LoadSweep(const std::string& path);

// Parses "pp=2,4,8,schedule=gpipe,1f1b". A word before '=' that can be a path
// or a short name starts an axis. Returns InvalidArgument if the text begins
// with no axis.
absl::StatusOr<std::vector<SweepAxis>> ParseGrid(absl::string_view text);

// Loads and checks a sweep. If the data-parallel size comes from a scenario
// file (`replicas_of_file`), points of other sizes do without it
// (scenarios::SetsGroups). Returns InvalidArgument with all problems, each with
// its field, and NotFound if a file does not exist.
absl::StatusOr<ResolvedSweep> ResolveSweep(absl::string_view label,
                                           const Sweep& sweep,
                                           bool replicas_of_file = false);

// Returns (field, value) pairs of a point in the order of
// ResolvedSweep::fields, without the fields that it does not set.
std::vector<std::pair<std::string, std::string>> SettingsOf(
    const ResolvedSweep& sweep, uint32_t point);

// As SettingsOf, with values as results show them: schedules under their own
// names.
std::vector<std::pair<std::string, std::string>> ShownSettingsOf(
    const ResolvedSweep& sweep, uint32_t point);

Scenario ScenarioOfPoint(const ResolvedSweep& sweep, uint32_t point);

// Returns the sweep that a folder's shards belong to, for --resume. Returns
// NotFound without shards, and InvalidArgument if no shard has a head.
absl::StatusOr<Sweep> SweepOfFolder(const std::string& folder);

// Returns what results depend on: the sweep, this build and the files that its
// scenarios name, as they are now.
SweepHead HeadOf(const ResolvedSweep& sweep);

// Returns InvalidArgument with an indented line for each change.
absl::Status CheckSameSweep(const SweepHead& before, const SweepHead& now);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_SWEEP_H_
