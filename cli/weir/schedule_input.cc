// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/schedule_input.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/overrides.h"
#include "scenarios/chunks.h"
#include "scenarios/costs.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "schedules/validate.h"

namespace weir::cli {
namespace {

schedules::ScheduleSpec SpecOf(const schedules::ScheduleKind& kind,
                               const Scenario& flags) {
  const auto or_else = [](uint32_t value, int fallback) {
    return value == 0 ? fallback : static_cast<int>(value);
  };
  schedules::ScheduleSpec spec;
  spec.num_ranks = or_else(flags.parallelism().pipeline(), 4);
  spec.num_microbatches = or_else(flags.num_microbatches(), 8);
  // Without flush, one batch would only show the start.
  spec.num_batches = or_else(flags.num_batches(), kind.flush ? 1 : 3);
  spec.num_chunks = or_else(flags.parallelism().chunks(), 1);
  return spec;
}

// Sets the usual number of microbatches, unless the kind only takes others.
void SetLegalMicrobatches(const schedules::ScheduleKind& kind,
                          schedules::ScheduleSpec* spec) {
  const int usual = spec->num_microbatches;
  const int64_t ranks = spec->num_ranks;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  for (int64_t microbatches : {int64_t{usual}, ranks, 2 * ranks}) {
    spec->num_microbatches = static_cast<int>(std::min(microbatches, kMost));
    schedules::ScheduleSpec legal = *spec;
    legal.num_chunks = scenarios::LegalChunks(kind, *spec);
    if (kind.check(legal).ok()) return;
  }
  spec->num_microbatches = usual;
}

// Sets the costs of --costs for an automatic order. If weir chooses the number
// of chunks, the costs are those of a whole rank and are divided among its
// chunks, as in simulations.
absl::Status SetCosts(const Flags& flags, schedules::ScheduleSpec* spec) {
  if (flags.scenario.costs.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(GivenCosts costs, ReadCosts(flags.scenario.costs));
  if (flags.scenario.overrides.parallelism().chunks() == 0) {
    scenarios::ScaleCosts(1.0 / spec->num_chunks, &costs);
  }
  const int64_t num_stages = int64_t{spec->num_ranks} * spec->num_chunks;
  if (costs.stages_size() != 1 && costs.stages_size() != num_stages) {
    Problems problems("--costs");
    problems.Add("stages", absl::StrCat("has ", costs.stages_size(),
                                        " entries, expected 1 or one per "
                                        "stage (",
                                        num_stages, ")"));
    return problems.ToStatus();
  }
  spec->costs = scenarios::PassCostsOf(costs);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShapeOfFlags(const Flags& flags,
                               const schedules::Schedule& schedule) {
  const Scenario& asked = flags.scenario.overrides;
  Problems problems(schedule.name);
  const auto check = [&](absl::string_view field, uint32_t value, int found,
                         absl::string_view one, absl::string_view many) {
    if (value == 0 || static_cast<int>(value) == found) return;
    problems.Add("", absl::StrCat("has ", found, " ", found == 1 ? one : many,
                                  ", but ", field, " is ", value));
  };
  check("--pp", asked.parallelism().pipeline(), schedule.num_ranks, "rank",
        "ranks");
  check("--microbatches", asked.num_microbatches(), schedule.num_microbatches,
        "microbatch", "microbatches");
  check("--batches", asked.num_batches(), schedule.num_batches, "batch",
        "batches");
  if (asked.parallelism().chunks() != 0) {
    ASSIGN_OR_RETURN(const int chunks, schedules::ChunksOf(schedule));
    check("--chunks", asked.parallelism().chunks(), chunks, "stage per rank",
          "stages per rank");
  }
  return problems.ToStatus();
}

absl::StatusOr<schedules::Schedule> ScheduleOfFlags(
    const Flags& flags, schedules::FileTransfers transfers,
    const SizeEstimate& per_action) {
  if (schedules::IsScheduleFile(flags.name)) {
    ASSIGN_OR_RETURN(
        schedules::Schedule schedule,
        schedules::LoadScheduleFile(flags.name,
                                    flags.schedule.legacy
                                        ? schedules::CsvDialect::kPyTorchLegacy
                                        : schedules::CsvDialect::kPyTorch,
                                    transfers));
    RETURN_IF_ERROR(CheckShapeOfFlags(flags, schedule));
    if (!flags.scenario.costs.empty()) {
      Problems problems("command line");
      problems.Add("--costs",
                   "is given with a schedule file, whose order is fixed");
      return problems.ToStatus();
    }
    return schedule;
  }
  Scenario shape = flags.scenario.overrides;
  std::string name = flags.name;
  ASSIGN_OR_RETURN(const schedules::ScheduleKind* kind,
                   schedules::FindScheduleKind(name));
  ASSIGN_OR_RETURN(const int chunks, schedules::TakeChunks(&name));
  if (chunks > 0) {
    shape.mutable_parallelism()->set_chunks(static_cast<uint32_t>(chunks));
  }
  ASSIGN_OR_RETURN(schedules::ScheduleSpec spec,
                   schedules::WithOptionsOf(name, *kind, SpecOf(*kind, shape)));
  if (shape.num_microbatches() == 0) SetLegalMicrobatches(*kind, &spec);
  if (shape.parallelism().chunks() == 0) {
    spec.num_chunks = scenarios::LegalChunks(*kind, spec);
  }
  RETURN_IF_ERROR(SetCosts(flags, &spec));
  const double num_actions = 2.0 * spec.num_ranks * spec.num_chunks *
                             spec.num_microbatches * spec.num_batches;
  RETURN_IF_ERROR(CheckSize(
      kind->name, absl::StrFormat("%.3g actions", num_actions),
      {num_actions * per_action.bytes, num_actions * per_action.seconds},
      "fewer ranks, microbatches or batches"));
  return schedules::GenerateSchedule(kind->name, spec);
}

absl::StatusOr<schedules::Schedule> ValidScheduleOfFlags(const Flags& flags) {
  ASSIGN_OR_RETURN(schedules::Schedule schedule, ScheduleOfFlags(flags));
  RETURN_IF_ERROR(schedules::ValidateSchedule(schedule));
  return schedule;
}

}  // namespace weir::cli
