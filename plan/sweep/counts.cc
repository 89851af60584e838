// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/counts.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/sweep/fields.h"

namespace weir::plan {
namespace {

bool IsBetter(const SweepOutcome& a, const SweepOutcome& b) {
  const auto rate = [](const SweepOutcome& outcome) {
    return outcome.has_samples_per_second() ? outcome.samples_per_second()
                                            : 1 / outcome.batch_seconds();
  };
  return rate(a) != rate(b) ? rate(a) > rate(b) : a.point() < b.point();
}

void NoteDone(const SweepOutcome& outcome, SweepCounts* counts) {
  if (outcome.kind() != SWEEP_DONE) return;
  counts->any_done = true;
  if (!outcome.fits_memory()) return;
  if (counts->has_best && !IsBetter(outcome, counts->best)) return;
  counts->best = outcome;
  counts->has_best = true;
}

void NoteFirst(const SweepOutcome& outcome,
               std::optional<SweepOutcome>* first) {
  if (!*first || outcome.point() < (*first)->point()) *first = outcome;
}

}  // namespace

void CountNow(const SweepOutcome& outcome, SweepCounts* counts) {
  NoteDone(outcome, counts);
  switch (outcome.kind()) {
    case SWEEP_DONE:
      ++counts->num_done;
      break;
    case SWEEP_REFUSED:
      ++counts->num_refused;
      NoteFirst(outcome, &counts->refusal);
      break;
    default:
      ++counts->num_failed;
      if (outcome.has_time_limit_seconds()) ++counts->num_over_time;
      NoteFirst(outcome, &counts->failure);
  }
}

void CountBefore(const SweepOutcome& outcome, SweepCounts* counts) {
  ++counts->num_before;
  if (outcome.kind() == SWEEP_REFUSED) NoteFirst(outcome, &counts->refusal);
  if (outcome.has_time_limit_seconds()) ++counts->num_over_time_before;
  NoteDone(outcome, counts);
}

std::string ReasonText(const SweepOutcome& outcome) {
  const std::string name = absl::StrCat("point ", outcome.point(), ": ");
  if (absl::StartsWith(outcome.error(), name)) return outcome.error();
  return absl::StrCat(name, outcome.error());
}

std::string NoneRanText(const SweepCounts& counts) {
  if (counts.any_done || !counts.refusal) return "";
  return absl::StrCat("no point can run: ", ReasonText(*counts.refusal));
}

std::string PointText(const ResolvedSweep& sweep, const SweepOutcome& outcome) {
  std::string text =
      absl::StrCat("point ", outcome.point(), ", ",
                   FormatSeconds(outcome.batch_seconds()), " per batch");
  if (outcome.has_samples_per_second()) {
    absl::StrAppend(&text, ", ", FormatCount(outcome.samples_per_second()),
                    " samples/s, ", FormatBytes(outcome.peak_memory_bytes()));
  }
  std::vector<std::string> settings;
  for (const auto& [field, value] : ShownSettingsOf(sweep, outcome.point())) {
    settings.push_back(absl::StrCat(ShortField(field), "=", value));
  }
  return absl::StrCat(text, ": ", EscapeLine(absl::StrJoin(settings, ", ")));
}

}  // namespace weir::plan
