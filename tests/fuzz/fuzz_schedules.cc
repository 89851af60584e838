// SPDX-License-Identifier: Apache-2.0
// Schedules. A kind generates a valid, executable order for every request that
// it accepts; random orders are checked too. Text and JSON forms parse to the
// same schedule, the linter finds no error in executable orders, and lowered
// programs satisfy the linter's rules.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedules/interop/lower.h"
#include "schedules/interop/pytorch_check.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/lint/lint.h"
#include "schedules/lint/lint_text.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/timeline.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/fuzz/generate_schedule.h"
#include "tests/fuzz/target.h"
#include "tests/sim/random_schedule.h"

namespace weir::fuzz {
namespace {

enum class Origin { kRandom, kKind, kKindByCosts };

std::string Describe(const schedules::Schedule& schedule) {
  return schedule.name + "\n" + schedules::PrintCsv(schedule);
}

void CheckSemantics(const schedules::Schedule& schedule,
                    const schedules::Semantics& semantics) {
  REQUIRE(std::ssize(semantics.uses) == schedule.num_stages);
  for (int s = 0; s < schedule.num_stages; ++s) {
    REQUIRE(semantics.max_live_versions[s] >= 1);
    REQUIRE(semantics.max_staleness[s] >= 0);
    for (const schedules::VersionUse& use : semantics.uses[s]) {
      REQUIRE_THAT(use.forward_version >= 0 && use.staleness() >= 0,
                   Describe(schedule));
      REQUIRE(!schedule.flush || use.staleness() == 0);
    }
  }
  REQUIRE(!schedules::Verdict(schedule, semantics).empty());
}

void CheckJson(const schedules::Schedule& schedule,
               const schedules::Semantics& semantics) {
  const std::string json = schedules::ScheduleJson(schedule, semantics);
  REQUIRE(nlohmann::json::accept(json));
  const auto again = schedules::ParseScheduleJson(schedule.name, json);
  REQUIRE_OK(again);
  REQUIRE_THAT(again->rank_actions == schedule.rank_actions, json);
  REQUIRE_THAT(again->routes == schedule.routes, json);
  REQUIRE_THAT(again->weights == schedule.weights, json);
  REQUIRE_THAT(schedules::ValidateSchedule(*again).ok(), json);
}

// A file of one batch determines a schedule with a flush.
void CheckCsv(const schedules::Schedule& schedule) {
  const std::string csv = schedules::PrintCsv(schedule);
  const auto rows = schedules::ParseScheduleRows("fuzz", csv);
  REQUIRE_THAT(rows.ok(), csv);
  const auto again =
      schedules::ScheduleFromRows("fuzz", schedules::PassesOf(rows->program));
  REQUIRE_THAT(again.ok(), csv + again.status().ToString());
  REQUIRE_THAT(again->rank_actions == schedule.rank_actions, csv);
}

void CheckLowering(const schedules::Schedule& schedule, bool merge) {
  const auto program =
      schedules::LowerSchedule(schedule, {.merge_backward = merge});
  REQUIRE_THAT(program.ok(), Describe(schedule));
  const std::string csv = schedules::PrintCsv(*program);
  const auto rows = schedules::ParseScheduleRows("fuzz", csv);
  REQUIRE_THAT(rows.ok() && rows->program.ranks == program->ranks, csv);
  const auto report = schedules::LintRows(*rows, {});
  REQUIRE_THAT(report.ok(), csv);
  for (const schedules::Finding& finding : report->findings) {
    REQUIRE_THAT(finding.rule != "transfer" && finding.rule != "deadlock" &&
                     finding.rule != "one-stream" &&
                     finding.rule != "gradient" && finding.rule != "sharding",
                 finding.rule + ": " + finding.message + "\n" + csv);
  }
  schedules::PyTorchVerdict(*rows);
}

// Checks the findings for a valid schedule. Orders of a kind have no errors,
// except that orders for unequal costs may let activations grow.
void CheckLint(const schedules::Schedule& schedule, Origin origin) {
  const schedules::LintReport report = schedules::LintSchedule(
      schedule, {.rendezvous = true, .pytorch = true, .megatron = true});
  for (const schedules::Finding& finding : report.findings) {
    REQUIRE_THAT(finding.rule != "deadlock" && finding.rule != "shape" &&
                     finding.rule != "order" && finding.rule != "completeness",
                 finding.message + "\n" + Describe(schedule));
  }
  if (origin != Origin::kRandom) {
    for (const schedules::Finding& finding :
         schedules::LintSchedule(schedule, {}).findings) {
      const bool expected =
          finding.severity != schedules::Finding::Severity::kError ||
          (finding.rule == "memory" && origin == Origin::kKindByCosts);
      REQUIRE_THAT(expected, finding.message + "\n" + Describe(schedule));
    }
  }
  REQUIRE(!schedules::LintText(report).empty());
  REQUIRE(nlohmann::json::accept(schedules::LintJson(report)));
}

void CheckValid(const schedules::Schedule& schedule, Origin origin,
                Choices* choices) {
  const auto semantics = schedules::InterpretSchedule(schedule);
  REQUIRE_THAT(semantics.ok(), Describe(schedule));
  CheckSemantics(schedule, *semantics);
  CheckJson(schedule, *semantics);
  const bool has_idle_rank =
      std::any_of(schedule.rank_actions.begin(), schedule.rank_actions.end(),
                  [](const auto& actions) { return actions.empty(); });
  // A file of rows has no row for a rank without actions.
  if (!has_idle_rank) {
    if (schedule.flush) CheckCsv(schedule);
    if (choices->OneIn(2)) CheckLowering(schedule, choices->OneIn(2));
  }
  if (choices->OneIn(2)) CheckLint(schedule, origin);
  if (choices->OneIn(4)) REQUIRE(!schedules::DrawTimeline(schedule).empty());
}

}  // namespace

bool RunInput(Choices* choices) {
  if (choices->OneIn(3)) {
    CheckValid(sim::RandomSchedule(choices), Origin::kRandom, choices);
    return true;
  }
  const ScheduleRequest request = GenerateScheduleRequest(choices);
  const auto schedule = schedules::GenerateSchedule(request.name, request.spec);
  if (!schedule.ok()) {
    REQUIRE(absl::IsInvalidArgument(schedule.status()));
    REQUIRE(!schedule.status().message().empty());
    return false;
  }
  const absl::Status status = schedules::ValidateSchedule(*schedule);
  REQUIRE_THAT(status.ok(), status.ToString() + Describe(*schedule));
  CheckValid(
      *schedule,
      request.spec.costs.stages.empty() ? Origin::kKind : Origin::kKindByCosts,
      choices);
  return true;
}

}  // namespace weir::fuzz
