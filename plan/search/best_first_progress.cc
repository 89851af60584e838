// SPDX-License-Identifier: Apache-2.0
// What a search has proven so far, and how long it may still take.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/infinity.h"
#include "base/units.h"
#include "plan/search/best_first.h"

namespace weir::plan {

double BestFirst::LeastOpenScore() const {
  double least = open_.LeastKey();
  if (const RankedPlan* best = BestSoFar()) {
    least = std::min(least, ScoreOf(goal_.objective, best->seconds, best->bytes,
                                    best->num_gpus, best->joules)
                                .first);
  }
  return least;
}

bool BestFirst::GapIsProven() const {
  const RankedPlan* best = BestSoFar();
  if (goal_.gap <= 0 || goal_.objective == OBJECTIVE_PARETO ||
      best == nullptr) {
    return false;
  }
  const double score = ScoreOf(goal_.objective, best->seconds, best->bytes,
                               best->num_gpus, best->joules)
                           .first;
  // All variants are opened before the search ends.
  return open_.LeastKey() >= score * (1 - goal_.gap);
}

bool BestFirst::PatienceExhausted() const {
  return goal_.patience > 0 && found_.size() > excluded_.size() &&
         num_ranked_ - improved_at_ >= goal_.patience;
}

std::optional<double> BestFirst::SecondsLeft() const {
  constexpr auto kShapes = static_cast<size_t>(State::kShape);
  constexpr auto kCandidates = static_cast<size_t>(State::kCandidate);
  constexpr auto kBounded = static_cast<size_t>(State::kBounded);
  if (num_done_[kBounded] == 0 || goal_.objective == OBJECTIVE_PARETO) {
    return {};
  }
  std::array<double, 3> open;
  for (size_t i = 0; i < open.size(); ++i) {
    open[i] = static_cast<double>(num_open_[i]);
  }
  const auto mean = [&](size_t state) {
    return num_done_[state] == 0
               ? 0
               : done_seconds_[state] / static_cast<double>(num_done_[state]);
  };
  double runs = open[kBounded];
  if (goal_.patience > 0) {
    const uint64_t used = std::min(num_ranked_ - improved_at_, goal_.patience);
    runs = std::min(runs, static_cast<double>(goal_.patience - used));
  }
  return open[kShapes] * mean(kShapes) + open[kCandidates] * mean(kCandidates) +
         runs * mean(kBounded);
}

// Fits a terminal of 80 columns.
void BestFirst::ReportProgress() const {
  if (!options_.progress) return;
  std::string text;
  if (const RankedPlan* best = BestSoFar()) {
    text = absl::StrCat(BestText(*best), "; ");
    if (goal_.minimizes_time() && !goal_.first_only) {
      absl::StrAppend(&text, "bound ", FormatSeconds(LeastOpenScore()), "; ");
    }
  } else {
    text = goal_.known_plan;
  }
  absl::StrAppend(&text, num_ranked_, " runs");
  const std::optional<double> left = SecondsLeft();
  if (left.value_or(0) > 0) {
    absl::StrAppend(&text, "; < ",
                    absl::FormatDuration(absl::Seconds(std::ceil(*left))),
                    " left");
  }
  options_.progress(text);
}

void BestFirst::ReportImprovement() {
  const bool is_final = !goal_.first_only && !goal_.ignore_memory;
  if (!options_.improved || !is_final) return;
  const RankedPlan* best = BestSoFar();
  if (best == nullptr) return;
  const Score score = ScoreOf(goal_.objective, best->seconds, best->bytes,
                              best->num_gpus, best->joules);
  if (reported_.has_value() && score >= *reported_) return;
  reported_ = score;
  options_.improved(RankedAsPlan(*best));
}

void BestFirst::FillCounts(PlanReport* report) const {
  uint64_t num_beaten = 0, num_left = 0;
  double least = least_seconds_;
  uint64_t num_unknown = 0;  // of variants that were not estimated
  const auto count = [&](const Entry& entry) {
    Entry known = entry;
    known.is_estimated = true;
    (IsBeaten(entry) ? num_beaten : num_left) += NumIn(known);
    if (!entry.is_estimated) num_unknown += NumIn(known);
    least = std::min(least, entry.lower_bound_seconds);
  };
  open_.ForEach(count);
  const bool complete =
      num_left == 0 && (!has_variants() || stage_ == Released::kAll);
  const double of_variants = complete ? kInfinity : LeastVariantSeconds();
  least = std::min(least, of_variants);
  report->set_num_candidates(num_candidates_ + num_unknown);
  report->set_num_invalid(num_invalid_);
  report->set_num_pruned_memory(num_memory_);
  report->set_num_pruned_time(num_beaten);
  report->set_num_ranked(num_ranked_);
  report->set_num_duplicates(num_duplicates_);
  report->set_num_left(num_left);
  report->set_lower_bound_seconds(least == kInfinity ? 0 : least);
  if (goal_.minimizes_time() && BestSoFar() != nullptr) {
    report->set_proven_seconds(std::min(LeastOpenScore(), of_variants));
  }
  report->set_end(complete              ? SEARCH_END_COMPLETE
                  : PatienceExhausted() ? SEARCH_END_PATIENCE
                                        : SEARCH_END_GAP);
}

}  // namespace weir::plan
