// SPDX-License-Identifier: Apache-2.0
#include "schedules/options.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/spelling.h"

namespace weir::schedules {
namespace {

const std::string* Given(const ScheduleSpec& spec, absl::string_view option) {
  const auto found = spec.options.find(std::string(option));
  return found == spec.options.end() ? nullptr : &found->second;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 64;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxShown)), "'");
}

std::vector<std::string> OptionsOf(const ScheduleKind& kind) {
  std::vector<std::string> names;
  for (const ScheduleOption& option : kind.options) {
    names.emplace_back(option.name);
  }
  return names;
}

}  // namespace

absl::string_view WithoutOptions(absl::string_view name) {
  return name.substr(0, name.find(':'));
}

absl::StatusOr<int> TakeChunks(std::string* name) {
  int chunks = 0;
  std::vector<absl::string_view> kept;
  for (absl::string_view part : absl::StrSplit(*name, ':')) {
    absl::string_view value = part;
    if (kept.empty() || !absl::ConsumePrefix(&value, "v=")) {
      kept.push_back(part);
      continue;
    }
    constexpr int kMostChunks = 1 << 20;
    if (chunks > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule ", Quoted(*name), ": v is given twice, expected once"));
    }
    if (!absl::SimpleAtoi(value, &chunks) || chunks < 1 ||
        chunks > kMostChunks) {
      return absl::InvalidArgumentError(
          absl::StrCat("schedule ", Quoted(*name), ": v is ", Quoted(value),
                       ", expected a number of stages per rank from 1"));
    }
  }
  *name = absl::StrJoin(kept, ":");
  return chunks;
}

std::string WithOwnName(absl::string_view name, const ScheduleKind& kind) {
  return absl::StrCat(kind.name, name.substr(WithoutOptions(name).size()));
}

absl::StatusOr<ScheduleSpec> WithOptionsOf(absl::string_view name,
                                           const ScheduleKind& kind,
                                           ScheduleSpec spec) {
  Problems problems(kind.name);
  const std::vector<std::string> known = OptionsOf(kind);
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    if (std::find(known.begin(), known.end(), option.first) == known.end()) {
      const std::string nearest = NearestWord(std::string(option.first), known);
      problems.Add(
          "",
          absl::StrCat(
              "option ", Quoted(option.first), " is unknown",
              nearest.empty() ? ""
                              : absl::StrCat(", did you mean '", nearest, "'?"),
              known.empty()
                  ? ", expected none"
                  : absl::StrCat(", known: ", absl::StrJoin(known, ", "))));
      continue;
    }
    if (parts[i].find('=') == absl::string_view::npos) {
      problems.Add(option.first, absl::StrCat("has no value, expected ",
                                              option.first, "=..."));
    } else if (!spec.options
                    .try_emplace(std::string(option.first), option.second)
                    .second) {
      problems.Add(option.first, "is given twice, expected once");
    }
  }
  const absl::Status status = problems.ToStatus();
  if (!status.ok()) return status;
  return spec;
}

int IntOption(const ScheduleSpec& spec, absl::string_view option, int fallback,
              int low, int high, Problems* problems) {
  const std::string* given = Given(spec, option);
  if (given == nullptr) return fallback;
  int value = 0;
  if (absl::SimpleAtoi(*given, &value) && low <= value && value <= high) {
    return value;
  }
  problems->Add(option, absl::StrCat("is ", Quoted(*given), ", expected ", low,
                                     " to ", high));
  return fallback;
}

double NumberOption(const ScheduleSpec& spec, absl::string_view option,
                    double fallback, double low, double high,
                    Problems* problems) {
  const std::string* given = Given(spec, option);
  if (given == nullptr) return fallback;
  double value = 0;
  if (absl::SimpleAtod(*given, &value) && low <= value && value <= high) {
    return value;
  }
  problems->Add(option,
                absl::StrCat("is ", Quoted(*given), ", expected a number from ",
                             low, " to ", high));
  return fallback;
}

std::string ChoiceOption(const ScheduleSpec& spec, absl::string_view option,
                         std::initializer_list<absl::string_view> choices,
                         Problems* problems) {
  const std::string* given = Given(spec, option);
  if (given == nullptr) return std::string(*choices.begin());
  if (std::find(choices.begin(), choices.end(), *given) != choices.end()) {
    return *given;
  }
  problems->Add(option, absl::StrCat("is ", Quoted(*given), ", expected ",
                                     absl::StrJoin(choices, " or ")));
  return std::string(*choices.begin());
}

std::vector<int> IntsOption(const ScheduleSpec& spec, absl::string_view option,
                            int low, int high, Problems* problems) {
  const std::string* given = Given(spec, option);
  std::vector<int> values;
  if (given == nullptr) return values;
  for (absl::string_view text : absl::StrSplit(*given, '-')) {
    int value = 0;
    if (absl::SimpleAtoi(text, &value) && low <= value && value <= high) {
      values.push_back(value);
      continue;
    }
    problems->Add(
        option, absl::StrCat("is ", Quoted(*given), ", expected numbers from ",
                             low, " to ", high, " joined by '-'"));
    return {};
  }
  return values;
}

}  // namespace weir::schedules
