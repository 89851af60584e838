// SPDX-License-Identifier: Apache-2.0
#include "schedules/registry.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

std::string Normalized(absl::string_view name) {
  std::string normalized;
  for (char c : name) {
    if (c != '-' && c != '_') normalized += absl::ascii_tolower(c);
  }
  return normalized;
}

std::vector<absl::string_view> NamesOf(const ScheduleKind& kind) {
  std::vector<absl::string_view> names = {kind.name};
  names.insert(names.end(), kind.aliases.begin(), kind.aliases.end());
  return names;
}

absl::Status UnknownKind(absl::string_view name) {
  constexpr size_t kMaxShown = 64;
  std::vector<std::string> names, known;
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    known.emplace_back(kind.name);
    for (absl::string_view candidate : NamesOf(kind)) {
      names.emplace_back(candidate);
    }
  }
  const std::string nearest = NearestWord(name, names);
  return absl::NotFoundError(absl::StrCat(
      "schedule '", absl::CHexEscape(name.substr(0, kMaxShown)), "' is unknown",
      nearest.empty() ? "." : absl::StrCat(", did you mean '", nearest, "'?"),
      " Known: ", absl::StrJoin(known, ", ")));
}

}  // namespace

const std::vector<ScheduleKind>& AllScheduleKinds() {
  static const auto& kinds = *new std::vector<ScheduleKind>{
      GPipeKind(),        PipeDreamFlushKind(), DapplePAKind(),
      DapplePBKind(),     InterleavedKind(),    InterleavedZeroBubbleKind(),
      BreadthFirstKind(), ChimeraKind(),        HanayoKind(),
      BitPipeKind(),      TwoBpNaiveKind(),     TwoBpGPipeKind(),
      TwoBp1F1B1Kind(),   TwoBp1F1B2Kind(),     ZeroBubbleH1Kind(),
      ZeroBubbleH2Kind(), ZeroBubble1pKind(),   ZeroBubble2pKind(),
      ZeroBubbleVKind(),  VHalfKind(),          VMinKind(),
      DualPipeKind(),     DualPipeVKind(),      OptPipeKind(),
      PipeDreamKind(),    PipeDream2BWKind(),   PipeMareKind(),
      SpecTrainKind(),    XPipeKind(),          PipelinedBackpropKind(),
      TiMePReStKind(),    BaPipeAsKind(),       BaPipeFbpAsKind(),
      BaPipeSnoKind(),    BaPipeSoKind(),       SppKind(),
      EdgePipeKind(),     AccEPTKind(),
  };
  return kinds;
}

absl::StatusOr<const ScheduleKind*> FindScheduleKind(absl::string_view name) {
  const std::string normalized = Normalized(WithoutOptions(name));
  absl::string_view wanted = normalized;
  absl::ConsumePrefix(&wanted, "schedule");  // no kind's name begins with it
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    for (absl::string_view candidate : NamesOf(kind)) {
      if (Normalized(candidate) == wanted) return &kind;
    }
  }
  return UnknownKind(WithoutOptions(name));
}

absl::StatusOr<Schedule> GenerateSchedule(absl::string_view name,
                                          const ScheduleSpec& spec) {
  ASSIGN_OR_RETURN(const ScheduleKind* kind, FindScheduleKind(name));
  ASSIGN_OR_RETURN(const ScheduleSpec full, WithOptionsOf(name, *kind, spec));
  RETURN_IF_ERROR(kind->check(full));
  Schedule schedule = kind->generate(full);
  // Options distinguish schedules of the same kind.
  schedule.name = WithOwnName(name, *kind);
  return schedule;
}

}  // namespace weir::schedules
