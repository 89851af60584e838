// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/infer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/limits.h"

namespace weir::schedules {
namespace {

constexpr int kNowhere = -1;

struct Shape {
  int num_stages = 0;
  int num_microbatches = 0;
  bool forward_only = true;
  Place last_stage, last_microbatch;  // first actions of these
};

absl::StatusOr<Shape> ShapeOf(
    absl::string_view name,
    const std::vector<std::vector<Action>>& rank_actions,
    const NamePlace& name_place) {
  int64_t num_actions = 0;
  int64_t num_covered = 0;
  Shape shape;
  for (int32_t rank = 0; rank < std::ssize(rank_actions); ++rank) {
    const std::vector<Action>& actions = rank_actions[rank];
    num_actions += std::ssize(actions);
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      const Action& action = actions[i];
      num_covered += action.num_microbatches;
      if (action.stage >= shape.num_stages) {
        shape.num_stages = action.stage + 1;
        shape.last_stage = {rank, i};
      }
      if (action.last_microbatch() >= shape.num_microbatches) {
        shape.num_microbatches = action.last_microbatch() + 1;
        shape.last_microbatch = {rank, i};
      }
      shape.forward_only = shape.forward_only && action.op == Op::kForward;
    }
  }
  const auto refuse = [&](Place place, absl::string_view what) {
    const Action& action = rank_actions[place.rank][place.position];
    return absl::InvalidArgumentError(
        absl::StrCat(name_place ? name_place(place) : std::string(name), ": ",
                     ToString(action), " ", what));
  };
  Problems problems(name);
  if (num_actions == 0) problems.Add("", "has no actions");
  RETURN_IF_ERROR(problems.ToStatus());
  if (shape.num_stages > num_actions) {
    return refuse(
        shape.last_stage,
        absl::StrCat("is of stage ", shape.num_stages - 1,
                     ", but the number of actions is ", num_actions,
                     ", expected at least one for every stage up to this one"));
  }
  // As in ValidateSchedule, tables have a cell per stage and microbatch.
  constexpr int64_t kAlwaysFits = 1'000'000;
  if (static_cast<double>(shape.num_stages) * shape.num_microbatches >
      static_cast<double>(std::max(num_covered, kAlwaysFits))) {
    return refuse(
        shape.last_microbatch,
        absl::StrCat("is of microbatch ", shape.num_microbatches - 1,
                     ", but the number of actions is ", num_actions,
                     ", expected one or more for each of ", shape.num_stages,
                     " stages x ", shape.num_microbatches, " microbatches"));
  }
  return shape;
}

// The rank of each microbatch of a stage. Reports the first contradiction.
class Holders {
 public:
  explicit Holders(const Shape& shape)
      : shape_(shape),
        ranks_(static_cast<size_t>(shape.num_stages) * shape.num_microbatches,
               kNowhere),
        first_of_(shape.num_stages) {}

  void Take(Place place, const Action& action,
            std::vector<Inferred::Problem>* problems) {
    const int rank = place.rank;
    First& first = first_of_[action.stage];
    if (!first.place.exists()) first = {place, action};
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      int32_t& holder = at(action.stage, k);
      if (holder == kNowhere) holder = rank;
      if (holder == rank || told_) continue;
      told_ = true;
      problems->push_back(
          {place, absl::StrCat("rank ", rank, ": ", ToString(action),
                               " is of stage ", action.stage, ", which rank ",
                               holder, " holds for microbatch ", k)});
    }
  }

  // Assigns microbatches without actions to the rank of the stage's first known
  // microbatch. Only error messages need their rank.
  void FillGaps(std::vector<Inferred::Problem>* problems) {
    bool in_gap = false;
    for (int stage = 0; stage < shape_.num_stages; ++stage) {
      int known = kNowhere;
      for (int k = 0; k < shape_.num_microbatches && known == kNowhere; ++k) {
        known = at(stage, k);
      }
      // Report only the first of several consecutive stages without actions.
      if (known == kNowhere && !in_gap) problems->push_back(GapProblem(stage));
      in_gap = known == kNowhere;
      for (int k = 0; k < shape_.num_microbatches; ++k) {
        if (at(stage, k) == kNowhere) at(stage, k) = known;
      }
    }
  }

  std::vector<int> RouteOf(int microbatch) {
    std::vector<int> route(shape_.num_stages);
    for (int stage = 0; stage < shape_.num_stages; ++stage) {
      route[stage] = at(stage, microbatch);
    }
    return route;
  }

 private:
  struct First {
    Place place;
    Action action;
  };

  // The last stage always has an action, because it determines the number of
  // stages.
  Inferred::Problem GapProblem(int stage) const {
    const auto next =
        std::find_if(first_of_.begin() + stage, first_of_.end(),
                     [](const First& first) { return first.place.exists(); });
    return {next->place,
            absl::StrCat("stage ", stage, " has no action, but ",
                         ToString(next->action), " is of stage ",
                         next->action.stage, ", expected stages from 0 on")};
  }

  int32_t& at(int stage, int microbatch) {
    return ranks_[static_cast<size_t>(stage) * shape_.num_microbatches +
                  microbatch];
  }

  const Shape shape_;
  std::vector<int32_t> ranks_;   // [stage][microbatch]
  std::vector<First> first_of_;  // [stage]
  bool told_ = false;
};

// Returns the smallest p with values[i] == values[i + p] wherever both exist.
int PeriodOf(const std::vector<int>& values) {
  const int size = static_cast<int>(values.size());
  std::vector<int> border(size, 0);  // of Knuth, Morris and Pratt
  for (int i = 1; i < size; ++i) {
    int length = border[i - 1];
    while (length > 0 && values[i] != values[length]) {
      length = border[length - 1];
    }
    border[i] = length + (values[i] == values[length] ? 1 : 0);
  }
  return size - border[size - 1];
}

// Sets routes that take turns, each for as many consecutive microbatches as
// possible.
void SetRoutes(Holders* holders, Schedule* schedule) {
  const int total = schedule->num_microbatches;
  std::map<std::vector<int>, int> ids;
  std::vector<std::vector<int>> routes;
  std::vector<int> id_of(total);
  for (int k = 0; k < total; ++k) {
    std::vector<int> route = holders->RouteOf(k);
    // Most files have one route and need no search.
    if (k > 0 && route == routes[id_of[k - 1]]) {
      id_of[k] = id_of[k - 1];
      continue;
    }
    const auto [found, is_new] =
        ids.emplace(route, static_cast<int>(routes.size()));
    if (is_new) routes.push_back(std::move(route));
    id_of[k] = found->second;
  }
  int turn = 0;  // divides the length of every run but the last
  int first = 0;
  for (int k = 1; k < total; ++k) {
    if (id_of[k] == id_of[k - 1]) continue;
    turn = std::gcd(turn, k - first);
    first = k;
  }
  if (turn == 0) {
    schedule->routes.assign(1, routes[0]);
    return;
  }
  // The last run may be shorter or longer than a turn.
  std::vector<int> blocks;
  for (int k = 0; k < total; k += turn) blocks.push_back(id_of[k]);
  schedule->microbatches_per_route_turn = turn;
  const int period = PeriodOf(blocks);
  for (int i = 0; i < period; ++i) {
    schedule->routes.push_back(routes[blocks[i]]);
  }
}

}  // namespace

absl::StatusOr<Inferred> InferSchedule(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions,
    const NamePlace& name_place) {
  ASSIGN_OR_RETURN(const Shape shape, ShapeOf(name, rank_actions, name_place));
  Inferred inferred;
  Schedule& schedule = inferred.schedule;
  schedule.name = std::string(name);
  schedule.num_ranks = static_cast<int>(rank_actions.size());
  schedule.num_stages = shape.num_stages;
  schedule.num_microbatches = shape.num_microbatches;
  schedule.forward_only = shape.forward_only;
  schedule.weights.microbatches_per_update = schedule.num_microbatches;
  Holders holders(shape);
  for (int32_t rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = rank_actions[rank];
    for (int32_t i = 0; i < std::ssize(actions); ++i) {
      holders.Take({rank, i}, actions[i], &inferred.problems);
    }
  }
  holders.FillGaps(&inferred.problems);
  SetRoutes(&holders, &schedule);
  schedule.rank_actions = std::move(rank_actions);
  return inferred;
}

absl::StatusOr<Inferred> InferSchedule(const ScheduleRows& rows) {
  return InferSchedule(rows.label, PassesOf(rows.program), [&](Place pass) {
    return rows.NameOf(rows.InFile(pass));
  });
}

absl::StatusOr<Schedule> ScheduleFromRows(const ScheduleRows& rows) {
  ASSIGN_OR_RETURN(Inferred inferred, InferSchedule(rows));
  if (inferred.problems.empty()) return std::move(inferred.schedule);
  const Inferred::Problem& first = inferred.problems[0];
  return absl::InvalidArgumentError(
      absl::StrCat(rows.NameOf(rows.InFile(first.place)), ": ", first.message));
}

absl::StatusOr<Schedule> ScheduleFromRows(
    absl::string_view name, std::vector<std::vector<Action>> rank_actions) {
  ASSIGN_OR_RETURN(Inferred inferred,
                   InferSchedule(name, std::move(rank_actions)));
  if (inferred.problems.empty()) return std::move(inferred.schedule);
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", inferred.problems[0].message));
}

}  // namespace weir::schedules
