// SPDX-License-Identifier: Apache-2.0
#include "schedules/registry.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"
#include "schedules/validate.h"

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
      "schedule is ", absl::CHexEscape(name.substr(0, kMaxShown)),
      ", expected one of ", absl::StrJoin(known, ", "),
      nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

// More than any program adds. Kinds never move, since others point to them.
constexpr size_t kMostKinds = 512;

std::vector<ScheduleKind> BuiltInKinds() {
  std::vector<ScheduleKind> kinds = {
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
  kinds.reserve(kMostKinds);
  return kinds;
}

std::vector<ScheduleKind>& MutableKinds() {
  static auto& kinds = *new std::vector<ScheduleKind>(BuiltInKinds());
  return kinds;
}

// Returns a copy that lives as long as the program.
absl::string_view Kept(absl::string_view text) {
  static auto& texts = *new std::deque<std::string>();
  return texts.emplace_back(text);
}

bool IsKindName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

// Returns the problems of the schedule that a registered kind generates.
absl::Status CheckGenerated(const ScheduleKind& kind,
                            const ScheduleSpec& spec) {
  if (kind.check != nullptr) RETURN_IF_ERROR(kind.check(spec));
  const Schedule schedule = kind.generate(spec);
  const int num_stages = spec.num_ranks * spec.num_chunks;
  if (schedule.num_ranks != spec.num_ranks ||
      schedule.num_stages != num_stages ||
      schedule.num_microbatches != spec.num_microbatches ||
      schedule.flush != kind.flush) {
    return absl::InvalidArgumentError(absl::StrCat(
        kind.name, ": generated ", schedule.num_ranks, " ranks, ",
        schedule.num_stages, " stages and ", schedule.num_microbatches,
        " microbatches ", schedule.flush ? "with" : "without",
        " flush, expected ", spec.num_ranks, ", ", num_stages, " and ",
        spec.num_microbatches, kind.flush ? " with" : " without", " flush"));
  }
  absl::Status valid = ValidateSchedule(schedule);
  if (valid.ok()) return valid;
  return absl::Status(valid.code(),
                      absl::StrCat(kind.name, ": ", valid.message()));
}

}  // namespace

const std::vector<ScheduleKind>& AllScheduleKinds() { return MutableKinds(); }

absl::Status RegisterScheduleKind(ScheduleKind kind) {
  if (!IsKindName(kind.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: name is '", absl::CHexEscape(kind.name),
                     "', expected letters, digits, '-' and '_'"));
  }
  for (absl::string_view name : NamesOf(kind)) {
    const auto known = FindScheduleKind(name);
    if (!known.ok()) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("schedule: name is ", name, ", which is a name of ",
                     (*known)->name, ", expected another"));
  }
  std::vector<ScheduleKind>& kinds = MutableKinds();
  if (kinds.size() == kMostKinds) {
    return absl::ResourceExhaustedError(
        absl::StrCat("schedule: there are ", kMostKinds, " kinds, the most"));
  }
  for (absl::string_view* text :
       {&kind.name, &kind.paper, &kind.constraints, &kind.summary}) {
    *text = Kept(*text);
  }
  for (absl::string_view& alias : kind.aliases) alias = Kept(alias);
  for (ScheduleOption& option : kind.options) {
    option = {Kept(option.name), Kept(option.standard), Kept(option.summary)};
  }
  ScheduleKind checked = kind;
  checked.check = [kind = std::move(kind)](const ScheduleSpec& spec) {
    return CheckGenerated(kind, spec);
  };
  kinds.push_back(std::move(checked));
  return absl::OkStatus();
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
