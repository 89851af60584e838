// SPDX-License-Identifier: Apache-2.0
#include "results/import/clock_moves.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "results/import/worker_names.h"

namespace weir::results {
namespace {

constexpr size_t kMaxNamedMoves = 5;

std::string SecondsText(const MovedClock& shift) {
  const std::string least = SignedSeconds(shift.least_seconds);
  const std::string most = SignedSeconds(shift.most_seconds);
  return least == most ? least : absl::StrCat(least, " to ", most);
}

}  // namespace

ClockMoves::ClockMoves(size_t num_steps, int num_clocks)
    : num_clocks_(num_clocks), seconds_(num_steps) {}

void ClockMoves::Add(size_t step, int clock, double seconds) {
  if (seconds == 0) return;
  seconds_[step].resize(num_clocks_);
  seconds_[step][clock] += seconds;
}

void ClockMoves::Add(const ClockMoves& other) {
  for (size_t step = 0; step < other.seconds_.size(); ++step) {
    for (size_t clock = 0; clock < other.seconds_[step].size(); ++clock) {
      Add(step, static_cast<int>(clock), other.seconds_[step][clock]);
    }
  }
}

std::vector<MovedClock> ClockMoves::Shifts(const RecordedRun& run) const {
  std::vector<MovedClock> shifts;
  for (int clock = 0; clock < num_clocks_; ++clock) {
    MovedClock shift = {clock / run.num_ranks, clock % run.num_ranks,
                        Of(0, clock), Of(0, clock)};
    for (size_t step = 0; step < seconds_.size(); ++step) {
      shift.least_seconds = std::min(shift.least_seconds, Of(step, clock));
      shift.most_seconds = std::max(shift.most_seconds, Of(step, clock));
    }
    if (shift.least_seconds != 0 || shift.most_seconds != 0) {
      shifts.push_back(shift);
    }
  }
  return shifts;
}

std::string ClockMoves::Text(const RecordedRun& run) const {
  std::vector<MovedClock> shifts = Shifts(run);
  std::stable_sort(shifts.begin(), shifts.end(),
                   [](const MovedClock& a, const MovedClock& b) {
                     return std::make_pair(a.least_seconds, a.most_seconds) <
                            std::make_pair(b.least_seconds, b.most_seconds);
                   });
  // The workers that moved by the time in each text.
  std::vector<std::pair<std::string, std::vector<std::string>>> moves;
  bool is_complete = true;
  for (const MovedClock& shift : shifts) {
    std::string text = SecondsText(shift);
    if (moves.empty() || moves.back().first != text) {
      moves.push_back({std::move(text), {}});
    }
    moves.back().second.push_back(NameOfWorker(run, shift.replica, shift.rank));
  }
  std::vector<std::string> texts;
  size_t num_others = 0;
  for (auto& [text, workers] : moves) {
    if (texts.size() == kMaxNamedMoves && moves.size() > kMaxNamedMoves + 1) {
      num_others += workers.size();
      continue;
    }
    is_complete = is_complete && workers.size() <= kMaxNamedMoves + 1;
    texts.push_back(absl::StrCat(text, " (", Named(std::move(workers)), ")"));
  }
  if (num_others > 0) {
    is_complete = false;
    texts.push_back(absl::StrCat("other times (", num_others,
                                 num_others == 1 ? " worker)" : " workers)"));
  }
  return absl::StrCat(
      absl::StrJoin(texts, ", "),
      is_complete ? "" : "; replay.clock_shifts of the JSON has all");
}

}  // namespace weir::results
