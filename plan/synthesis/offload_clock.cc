// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/offload_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/synthesis/order_problem.h"
#include "schedules/action.h"

namespace weir::plan {
namespace {}  // namespace

std::optional<OffloadRows> OffloadRowsOf(const PassTable& table,
                                         const schedules::Schedule& schedule) {
  OffloadRows rows = {table.RowsOf(schedule).ranks,
                      schedule.resident_activations};
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    // Places each reload after as many of the rank's passes as in the schedule.
    std::vector<int32_t> with;
    size_t passes = 0;
    std::vector<int> forwards(schedule.num_stages, 0), gradients = forwards;
    for (const schedules::Action& action : schedule.rank_actions[rank]) {
      if (action.op == schedules::Op::kOffload) continue;
      if (action.op == schedules::Op::kReload) {
        with.push_back(
            ReloadOf(table, table.Number(action.stage, action.microbatch,
                                         schedules::Op::kForward)));
        continue;
      }
      if (action.op == schedules::Op::kForward &&
          forwards[action.stage]++ != action.microbatch) {
        return {};
      }
      if (schedules::MakesInputGradient(action.op) &&
          gradients[action.stage]++ != action.microbatch) {
        return {};
      }
      if (passes == rows.ranks[rank].size()) return {};
      with.push_back(rows.ranks[rank][passes++]);
      // A whole backward may have become I and W.
      while (passes < rows.ranks[rank].size() &&
             action.op == schedules::Op::kBackward &&
             table.pass(rows.ranks[rank][passes]) ==
                 schedules::Op::kBackwardWeight) {
        with.push_back(rows.ranks[rank][passes++]);
      }
    }
    if (passes != rows.ranks[rank].size()) return {};
    rows.ranks[rank] = std::move(with);
  }
  return rows;
}

schedules::Schedule ScheduleOf(const PassTable& table,
                               const OffloadRows& rows) {
  PassRows passes;
  std::vector<bool> moved(table.num_passes() / 3, false);
  for (const std::vector<int32_t>& row : rows.ranks) {
    std::vector<int32_t>& alone = passes.ranks.emplace_back();
    for (int32_t number : row) {
      if (IsReload(table, number)) {
        moved[number - table.num_passes()] = true;
      } else {
        alone.push_back(number);
      }
    }
  }
  schedules::Schedule schedule = table.ScheduleOf(passes);
  bool any = false;
  for (size_t rank = 0; rank < rows.ranks.size(); ++rank) {
    std::vector<schedules::Action> actions;
    size_t next = 0;
    for (int32_t number : rows.ranks[rank]) {
      const int32_t forward = IsReload(table, number) ? ForwardOf(table, number)
                                                      : number - number % 3;
      const int stage = table.stage(forward), k = table.microbatch(forward);
      if (IsReload(table, number)) {
        actions.push_back({schedules::Op::kReload, stage, k});
        any = true;
        continue;
      }
      actions.push_back(schedule.rank_actions[rank][next++]);
      if (number == forward && moved[number / 3]) {
        actions.push_back({schedules::Op::kOffload, stage, k});
      }
    }
    schedule.rank_actions[rank] = std::move(actions);
  }
  if (any) schedule.resident_activations = rows.resident_activations;
  return schedule;
}

OffloadClock::OffloadClock(const PassTable& table)
    : table_(table), streams_(table.problem().num_ranks) {}

void OffloadClock::MarkWhatIsThere(const OffloadRows& rows) {
  has_weight_.assign(table_.num_passes() / 3, false);
  moved_.assign(table_.num_passes() / 3, false);
  for (const std::vector<int32_t>& row : rows.ranks) {
    for (int32_t number : row) {
      if (IsReload(table_, number)) {
        moved_[number - table_.num_passes()] = true;
      } else if (table_.pass(number) == schedules::Op::kBackwardWeight) {
        has_weight_[number / 3] = true;
      }
    }
  }
}

// Counts like Dependencies.
double OffloadClock::WaitForRoom(int most_resident, Stream* stream) const {
  double end = 0;
  ++stream->resident;
  if (most_resident == 0) return end;
  while (stream->resident > most_resident &&
         stream->next_leaving < stream->offload_ends.size()) {
    end = stream->offload_ends[stream->next_leaving++];
    --stream->resident;
  }
  return end;
}

bool OffloadClock::RunRank(const OffloadRows& rows, int rank, double most) {
  const std::vector<int32_t>& row = rows.ranks[rank];
  Stream& at = streams_[rank];
  for (; at.next < row.size(); ++at.next) {
    const int32_t number = row[at.next];
    if (IsReload(table_, number)) {
      const int32_t cell = number - table_.num_passes();
      const schedules::StagePassCosts& costs =
          table_.problem().costs.of(table_.stage(cell * 3));
      // Until the reload is timed, the cell holds the end of the offload.
      const double start =
          std::max({at.compute, at.reload, reloaded_[cell],
                    WaitForRoom(rows.resident_activations, &at)});
      at.reload = reloaded_[cell] = start + costs.offload;
      at.changes[2].emplace_back(start, costs.activation);
      continue;
    }
    const int stage = table_.stage(number);
    const schedules::StagePassCosts& costs = table_.problem().costs.of(stage);
    const schedules::Op pass = table_.pass(number);
    const int32_t cell = number / 3, before = table_.before(number);
    double start = at.compute;
    if (before >= 0) {
      if (end_[before] < 0) return true;  // that pass wakes this rank
      start = std::max(start, end_[before] + table_.hop_before(number));
    }
    if (pass == schedules::Op::kForward) {
      start = std::max(start, WaitForRoom(rows.resident_activations, &at));
    } else if (pass == schedules::Op::kBackwardInput) {
      if (moved_[cell]) start = std::max(start, reloaded_[cell]);
      --at.resident;
    }
    const bool whole =
        pass == schedules::Op::kBackwardInput && !has_weight_[cell];
    if (at.next == 0) at.first = start;
    const double end =
        start + (whole ? costs.fused_backward() : table_.seconds(number));
    at.compute = end_[number] = end;
    if (end + table_.tail(number) > most) return false;
    if (pass == schedules::Op::kForward) {
      at.changes[0].emplace_back(start, costs.activation);
      if (moved_[cell]) {
        at.offload = std::max(end, at.offload) + costs.offload;
        reloaded_[cell] = at.offload;
        at.offload_ends.push_back(at.offload);
        at.changes[1].emplace_back(at.offload, -costs.activation);
      }
    } else {
      at.changes[0].emplace_back(
          end, whole ? -costs.activation : table_.held(number));
    }
    const int32_t after = table_.after(number);
    if (after >= 0 && table_.rank(after) != rank) {
      ready_.push_back(table_.rank(after));
    }
  }
  return true;
}

bool OffloadClock::Fits(const Stream& stream, double limit, double tolerance) {
  std::array<size_t, 3> next = {0, 0, 0};
  const auto soonest = [&] {
    double when = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      if (next[i] < stream.changes[i].size()) {
        when = std::min(when, stream.changes[i][next[i]].first);
      }
    }
    return when;
  };
  double held = 0;
  for (double when = soonest(); std::isfinite(when); when = soonest()) {
    // Applies all changes of one time together.
    for (int i = 0; i < 3; ++i) {
      while (next[i] < stream.changes[i].size() &&
             stream.changes[i][next[i]].first <= when + tolerance) {
        held += stream.changes[i][next[i]++].second;
      }
    }
    if (held > limit) return false;
  }
  return true;
}

bool OffloadClock::Try(const OffloadRows& rows, double limit, double most) {
  MarkWhatIsThere(rows);
  end_.assign(table_.num_passes(), -1);
  reloaded_.assign(table_.num_passes() / 3, 0);
  ready_.clear();
  for (int rank = table_.problem().num_ranks; rank-- > 0;) {
    Stream& stream = streams_[rank];
    stream.compute = stream.offload = stream.reload = stream.first = 0;
    stream.next = 0;
    stream.resident = 0;
    stream.offload_ends.clear();
    stream.next_leaving = 0;
    for (auto& changes : stream.changes) changes.clear();
    ready_.push_back(rank);
  }
  while (!ready_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    if (!RunRank(rows, rank, most)) return false;
  }
  const double tolerance = kRounding * makespan();
  for (size_t rank = 0; rank < streams_.size(); ++rank) {
    if (streams_[rank].next < rows.ranks[rank].size()) return false;
    if (!Fits(streams_[rank], limit, tolerance)) return false;
  }
  return true;
}

double OffloadClock::makespan() const {
  double last = 0;
  for (const Stream& stream : streams_) last = std::max(last, stream.compute);
  return last;
}

double OffloadClock::span() const {
  double longest = 0;
  for (const Stream& stream : streams_) {
    longest = std::max(longest, stream.compute - stream.first);
  }
  return longest;
}

double OffloadClock::sum_of_ends() const {
  double sum = 0;
  for (const Stream& stream : streams_) sum += stream.compute;
  return sum;
}

}  // namespace weir::plan
