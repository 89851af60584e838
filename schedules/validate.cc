// SPDX-License-Identifier: Apache-2.0
#include "schedules/validate.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/action_rules.h"
#include "schedules/comm/deadlock.h"
#include "schedules/dependencies.h"
#include "schedules/limits.h"

namespace weir::schedules {
namespace {

// Collects problems of single actions, up to a limit.
class ActionProblems {
 public:
  ActionProblems(size_t limit, std::vector<ScheduleProblem>* problems)
      : limit_(limit), problems_(problems) {}
  ~ActionProblems() {
    if (count_ <= limit_) return;
    problems_->push_back(
        {"order", {}, absl::StrCat("and ", count_ - limit_, " more")});
  }
  ActionProblems(const ActionProblems&) = delete;
  ActionProblems& operator=(const ActionProblems&) = delete;

  // Calls describe() only for problems within the limit.
  template <typename Describe>
  void Add(absl::string_view rule, Place place, const Describe& describe) {
    if (++count_ > limit_) return;
    problems_->push_back({rule, place, describe()});
  }

 private:
  const size_t limit_;
  std::vector<ScheduleProblem>* problems_;
  size_t count_ = 0;
};

// Returns the number of actions, counting each once per microbatch.
int64_t NumActions(const Schedule& schedule) {
  int64_t num_actions = 0;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    for (const Action& action : actions) num_actions += action.num_microbatches;
  }
  return num_actions;
}

void CheckCounts(const Schedule& schedule, Problems* problems) {
  problems->CheckRange("num_ranks", schedule.num_ranks, 1, kMaxRanks);
  problems->CheckRange("num_stages", schedule.num_stages, 1, kMaxActions);
  problems->CheckRange("num_microbatches", schedule.num_microbatches, 1,
                       kMaxActions);
  problems->CheckRange("num_batches", schedule.num_batches, 1, kMaxActions);
  problems->CheckRange("microbatches_per_route_turn",
                       schedule.microbatches_per_route_turn, 1, kMaxActions);
  problems->CheckRange("resident_activations", schedule.resident_activations, 0,
                       kMaxActions);
  problems->CheckRange("weights.microbatches_per_update",
                       schedule.weights.microbatches_per_update, 1,
                       kMaxActions);
  problems->CheckRange("weights.delay_updates", schedule.weights.delay_updates,
                       0, kMaxActions);
}

// Checks that each rank ends a batch before it begins the next one.
void CheckFlush(const Schedule& schedule, ActionProblems* problems) {
  if (!schedule.overlaps_batches() || schedule.num_microbatches < 1) return;
  for (int rank = 0; rank < std::ssize(schedule.rank_actions); ++rank) {
    int last = 0;
    for (const Action& action : schedule.rank_actions[rank]) {
      const int batch = action.microbatch / schedule.num_microbatches;
      if (batch < last ||
          action.last_microbatch() / schedule.num_microbatches != batch) {
        problems->Add("flush", {}, [&] {
          return absl::StrCat("rank ", rank, ": ", ToString(action),
                              " belongs to batch ", batch,
                              ", expected no earlier batch than ", last,
                              " and one batch only with a flush");
        });
      }
      last = std::max(last, batch);
    }
  }
}

void CheckTables(const Schedule& schedule, Problems* problems) {
  const int64_t num_rows = std::ssize(schedule.rank_actions);
  if (schedule.routes.empty()) {
    problems->Add("routes", "is empty, expected at least one route");
  }
  for (size_t route = 0; route < schedule.routes.size(); ++route) {
    const int64_t num_placed = std::ssize(schedule.routes[route]);
    if (num_placed == schedule.num_stages) continue;
    problems->Add(
        absl::StrCat("routes[", route, "]"),
        absl::StrCat("has ", num_placed, " stages, expected num_stages, ",
                     schedule.num_stages));
  }
  if (num_rows != schedule.num_ranks) {
    problems->Add("rank_actions",
                  absl::StrCat("has ", num_rows, " ranks, expected num_ranks, ",
                               schedule.num_ranks));
  }
}

void CheckPlacement(const Schedule& schedule, ActionProblems* problems) {
  std::vector<bool> is_used(schedule.num_ranks);
  for (int route = 0; route < schedule.num_routes(); ++route) {
    for (int stage = 0; stage < schedule.num_stages; ++stage) {
      const int rank = schedule.routes[route][stage];
      if (rank >= 0 && rank < schedule.num_ranks) {
        is_used[rank] = true;
      } else {
        problems->Add("placement", {}, [&] {
          return absl::StrCat("routes[", route, "][", stage, "] is ", rank,
                              ", expected 0 to ", schedule.num_ranks - 1);
        });
      }
    }
  }
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    if (is_used[rank]) continue;
    problems->Add("placement", {}, [&] {
      return absl::StrCat("rank ", rank, " holds no stage");
    });
  }
}

// Later checks use tables with a cell per stage and microbatch. Rejects sizes
// that the actions cannot fill before memory is allocated for them.
void CheckSize(const Schedule& schedule, Problems* problems) {
  const int64_t num_actions = NumActions(schedule);
  constexpr int64_t kAlwaysFits = 1'000'000;
  const double num_cells = static_cast<double>(schedule.num_stages) *
                           schedule.num_microbatches * schedule.num_batches;
  if (num_actions > kMaxActions) {
    problems->Add("", absl::StrCat("has ", num_actions,
                                   " actions, expected at most ", kMaxActions));
  }
  if (num_cells <= static_cast<double>(std::max(num_actions, kAlwaysFits))) {
    return;
  }
  problems->Add("", absl::StrCat("has ", num_actions,
                                 " actions, expected one or more for each of ",
                                 schedule.num_stages, " stages x ",
                                 schedule.num_microbatches, " microbatches x ",
                                 schedule.num_batches, " batches"));
}

// By stage and microbatch: one bit for every op seen.
using SeenTable = std::vector<uint8_t>;

SeenTable CheckActions(const Schedule& schedule, ActionProblems* problems) {
  const size_t total = schedule.total_microbatches();
  SeenTable seen(schedule.num_stages * total);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (size_t position = 0; position < actions.size(); ++position) {
      const Action& action = actions[position];
      auto report = [&](absl::string_view rule, absl::string_view what) {
        problems->Add(rule, {rank, static_cast<int32_t>(position)}, [&] {
          return absl::StrCat(ToString(action), " ", what);
        });
      };
      const std::string misplaced = PlaceProblem(schedule, rank, action);
      if (!misplaced.empty()) {
        report("placement", misplaced);
        continue;
      }
      absl::string_view misordered = PairProblem(actions, position);
      for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
        uint8_t& cell = seen[action.stage * total + k];
        if (misordered.empty()) misordered = OrderProblem(action.op, cell);
        cell |= BitOf(action.op);
      }
      if (!misordered.empty()) report("order", misordered);
    }
  }
  return seen;
}

void CheckComplete(const Schedule& schedule, const SeenTable& seen,
                   ActionProblems* problems) {
  const int total = schedule.total_microbatches();
  for (size_t cell = 0; cell < seen.size(); ++cell) {
    const std::string missing =
        MissingPasses(seen[cell], schedule.forward_only);
    if (missing.empty()) continue;
    problems->Add("completeness", {}, [&] {
      return absl::StrCat("stage ", cell / total, " microbatch ", cell % total,
                          " has no ", missing);
    });
  }
}

// Checks that a stage processes together the same microbatches as the previous
// stage, because there is one transfer between the two.
void CheckSpans(const Schedule& schedule, ActionProblems* problems) {
  const Dependencies dependencies(schedule);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (int32_t position = 0; position < std::ssize(actions); ++position) {
      const Action& action = actions[position];
      for (Place next : dependencies.Released(action)) {
        const Action& other = schedule.rank_actions[next.rank][next.position];
        if (other.microbatch == action.microbatch &&
            other.num_microbatches == action.num_microbatches) {
          continue;
        }
        problems->Add("size", next, [&] {
          return absl::StrCat(ToString(other),
                              " covers different microbatches than ",
                              ToString(action), ", which it waits for");
        });
      }
    }
  }
}

void CheckDistances(const Schedule& schedule, Problems* problems) {
  const auto check = [&](absl::string_view field, size_t size) {
    if (size == 0 || size == static_cast<size_t>(schedule.num_stages)) return;
    problems->Add(field, absl::StrCat("has ", size, " stages, expected ",
                                      schedule.num_stages, " or none"));
  };
  check("weights.forward_distance", schedule.weights.forward_distance.size());
  check("weights.backward_distance", schedule.weights.backward_distance.size());
}

// Adds the problems of the schedule as a whole, one per line. Returns true if
// there are any.
bool AddLines(const Problems& found, absl::string_view name,
              std::vector<ScheduleProblem>* problems) {
  const absl::Status status = found.ToStatus();
  if (status.ok()) return false;
  const std::string prefix = absl::StrCat(name, ": ");
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    absl::ConsumePrefix(&line, prefix);
    problems->push_back({"shape", {}, std::string(line)});
  }
  return true;
}

}  // namespace

std::vector<ScheduleProblem> FindScheduleProblems(const Schedule& schedule,
                                                  size_t limit) {
  std::vector<ScheduleProblem> problems;
  for (const auto check : {+[](const Schedule&s, Problems*p) {
                             CheckCounts(s, p);
                             CheckDistances(s, p);
                           },
                           CheckTables}) {
    Problems found(schedule.name);
    check(schedule, &found);
    if (AddLines(found, schedule.name, &problems)) return problems;
  }
  {
    ActionProblems placement(limit, &problems);
    CheckPlacement(schedule, &placement);
  }
  if (!problems.empty()) return problems;
  Problems size(schedule.name);
  CheckSize(schedule, &size);
  if (AddLines(size, schedule.name, &problems)) return problems;
  {
    ActionProblems actions(limit, &problems);
    const SeenTable seen = CheckActions(schedule, &actions);
    CheckComplete(schedule, seen, &actions);
    if (problems.empty()) {
      CheckSpans(schedule, &actions);
      CheckFlush(schedule, &actions);
    }
  }
  return problems;
}

absl::Status ValidateSchedule(const Schedule& schedule) {
  // A broken generator may cause a problem in every action.
  constexpr size_t kMaxProblems = 20;
  Problems problems(schedule.name);
  for (const ScheduleProblem& problem :
       FindScheduleProblems(schedule, kMaxProblems)) {
    problems.Add(
        "", problem.place.exists()
                ? absl::StrCat("rank ", problem.place.rank, " position ",
                               problem.place.position, ": ", problem.message)
                : problem.message);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return CheckExecutable(schedule);
}

}  // namespace weir::schedules
