// SPDX-License-Identifier: Apache-2.0
#include "weir/schedule.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/status.h"
#include "schedules/registry.h"
#include "schedules/schedule.h"

namespace weir::api {
namespace {

schedules::Op OpOf(Op op) {
  switch (op) {
    case Op::kForward:
      return schedules::Op::kForward;
    case Op::kBackward:
      return schedules::Op::kBackward;
    case Op::kBackwardInput:
      return schedules::Op::kBackwardInput;
    case Op::kBackwardWeight:
      break;
  }
  return schedules::Op::kBackwardWeight;
}

ScheduleShape ShapeOf(const schedules::ScheduleSpec& spec) {
  return {spec.num_ranks, spec.num_chunks, spec.num_microbatches};
}

schedules::Schedule ScheduleOf(const std::string& name,
                               const schedules::ScheduleSpec& spec,
                               const Schedule& passes) {
  schedules::Schedule schedule;
  schedule.name = name;
  schedule.num_ranks = static_cast<int>(passes.rank_passes.size());
  schedule.num_stages = static_cast<int>(passes.stage_ranks.size());
  schedule.num_microbatches = spec.num_microbatches;
  schedule.routes = {passes.stage_ranks};
  schedule.weights.microbatches_per_update = spec.num_microbatches;
  for (const std::vector<Pass>& order : passes.rank_passes) {
    std::vector<schedules::Action>& actions =
        schedule.rank_actions.emplace_back();
    for (const Pass& pass : order) {
      actions.push_back({OpOf(pass.op), pass.stage, pass.microbatch});
    }
  }
  return schedule;
}

// Reports what the generator throws.
absl::Status CheckShape(const std::string& name,
                        const ScheduleGenerator& generator,
                        const schedules::ScheduleSpec& spec) {
  if (spec.num_batches != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": num_batches is ", spec.num_batches, ", expected 1"));
  }
  try {
    generator(ShapeOf(spec));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": the generator threw: ", error.what()));
  }
}

absl::StatusOr<Op> PublicOp(const schedules::Action& action) {
  switch (action.op) {
    case schedules::Op::kForward:
      return Op::kForward;
    case schedules::Op::kBackward:
      return Op::kBackward;
    case schedules::Op::kBackwardInput:
      return Op::kBackwardInput;
    case schedules::Op::kBackwardWeight:
      return Op::kBackwardWeight;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("schedule: has the action ", ToString(action),
                       ", expected F, B, I and W only"));
  }
}

absl::StatusOr<Schedule> PublicSchedule(const schedules::Schedule& schedule) {
  if (schedule.num_routes() != 1 || !schedule.flush) {
    return absl::InvalidArgumentError(
        absl::StrCat(schedule.name, ": has ", schedule.num_routes(), " routes ",
                     schedule.flush ? "and a" : "and no",
                     " flush, expected one route of stages and a flush"));
  }
  Schedule result;
  result.stage_ranks = schedule.routes[0];
  for (const auto& actions : schedule.rank_actions) {
    std::vector<Pass>& passes = result.rank_passes.emplace_back();
    for (const schedules::Action& action : actions) {
      const absl::StatusOr<Op> op = PublicOp(action);
      if (!op.ok()) return op.status();
      for (int i = 0; i < action.num_microbatches; ++i) {
        passes.push_back({*op, action.stage, action.microbatch + i});
      }
    }
  }
  return result;
}

}  // namespace

void RegisterSchedule(const std::string& name, const std::string& summary,
                      bool splits_backward, ScheduleGenerator generator) {
  ThrowUnlessOk(schedules::RegisterScheduleKind(
      {.name = name,
       .aliases = {},
       .paper = "",
       .constraints = "num_batches is 1",
       .summary = summary,
       .flush = true,
       .splits_backward = splits_backward,
       .check =
           [name, generator](const schedules::ScheduleSpec& spec) {
             return CheckShape(name, generator, spec);
           },
       .generate =
           [name, generator](const schedules::ScheduleSpec& spec) {
             return ScheduleOf(name, spec, generator(ShapeOf(spec)));
           }}));
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

Schedule GenerateSchedule(const std::string& name, const ScheduleShape& shape) {
  return ValueOrThrow(PublicSchedule(ValueOrThrow(schedules::GenerateSchedule(
      name, {.num_ranks = shape.num_ranks,
             .num_microbatches = shape.num_microbatches,
             .num_chunks = shape.num_chunks}))));
}

}  // namespace weir::api
