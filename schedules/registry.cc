// SPDX-License-Identifier: Apache-2.0
#include "schedules/registry.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedules/generators.h"

namespace weir {
namespace {

std::string Normalized(absl::string_view name) {
  std::string normalized;
  for (char c : name) {
    if (c != '-' && c != '_') normalized += absl::ascii_tolower(c);
  }
  return normalized;
}

// Levenshtein's distance: insertions, deletions and replacements.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::vector<absl::string_view> NamesOf(const ScheduleKind& kind) {
  std::vector<absl::string_view> names = {kind.name};
  names.insert(names.end(), kind.aliases.begin(), kind.aliases.end());
  return names;
}

std::string Describe(const ScheduleKind& kind) {
  return absl::StrCat(kind.name, " (", absl::StrJoin(kind.aliases, ", "), ")");
}

absl::Status UnknownKind(absl::string_view name) {
  // Longer than any name: comparing more of it would only take time.
  constexpr size_t kMaxCompared = 64;
  const std::string wanted = Normalized(name.substr(0, kMaxCompared));
  absl::string_view nearest;
  size_t nearest_distance = kMaxCompared;
  std::vector<std::string> known;
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    known.push_back(Describe(kind));
    for (absl::string_view candidate : NamesOf(kind)) {
      const size_t distance = EditDistance(wanted, Normalized(candidate));
      if (distance >= nearest_distance) continue;
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("schedule '", absl::CHexEscape(name.substr(0, kMaxCompared)),
                   "' is unknown, did you mean '", nearest,
                   "'? Known: ", absl::StrJoin(known, ", ")));
}

}  // namespace

const std::vector<ScheduleKind>& AllScheduleKinds() {
  static const auto& kinds = *new std::vector<ScheduleKind>{
      GPipeKind(), PipeDreamFlushKind(), InterleavedKind(), PipeDreamKind(),
      PipeDream2BWKind()};
  return kinds;
}

absl::StatusOr<const ScheduleKind*> FindScheduleKind(absl::string_view name) {
  const std::string wanted = Normalized(name);
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    for (absl::string_view candidate : NamesOf(kind)) {
      if (Normalized(candidate) == wanted) return &kind;
    }
  }
  return UnknownKind(name);
}

absl::StatusOr<Schedule> GenerateSchedule(absl::string_view name,
                                          const ScheduleSpec& spec) {
  ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name));
  RETURN_IF_ERROR(kind->check(spec));
  return kind->generate(spec);
}

}  // namespace weir
