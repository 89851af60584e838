// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/clock_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/csv.h"
#include "base/infinity.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace weir::plan {
namespace {

constexpr int kMaxStages = 4096;

std::optional<schedules::Op> PassNamed(absl::string_view text) {
  const std::string name = absl::AsciiStrToLower(text);
  if (name == "forward" || name == "f") return schedules::Op::kForward;
  if (name == "backward" || name == "b") return schedules::Op::kBackward;
  if (name == "backward_input" || name == "i") {
    return schedules::Op::kBackwardInput;
  }
  if (name == "backward_weight" || name == "w") {
    return schedules::Op::kBackwardWeight;
  }
  return std::nullopt;
}

// Returns the first of these columns that the table has.
absl::StatusOr<CsvColumn> ColumnOf(
    const CsvTable& table, const std::vector<absl::string_view>& names) {
  for (const absl::string_view name : names) {
    if (table.HasColumn(name)) return table.Column(name);
  }
  return table.Column(names.front());
}

// The most by which measurements of a pass at one clock may differ: repeated
// measurements vary by a few percent, and larger ratios are errors of the
// table.
constexpr double kMostRatio = 2;

// Measurements of one pass at one clock.
struct Repeated {
  int count = 0;
  double least_seconds = kInfinity, most_seconds = 0;
  double least_joules = kInfinity, most_joules = 0;

  void Add(const ClockPoint& point) {
    ++count;
    least_seconds = std::min(least_seconds, point.seconds);
    most_seconds = std::max(most_seconds, point.seconds);
    least_joules = std::min(least_joules, point.joules);
    most_joules = std::max(most_joules, point.joules);
  }
  bool Agree() const {
    return most_seconds <= kMostRatio * least_seconds &&
           most_joules <= kMostRatio * least_joules;
  }
};

// Reports measurements of a pass at one clock that contradict each other.
// Returns the number of clocks with several measurements.
int CheckRepeated(const std::string& pass,
                  const std::vector<ClockPoint>& points, Problems& problems) {
  std::map<double, Repeated> by_clock;
  for (const ClockPoint& point : points) by_clock[point.megahertz].Add(point);
  int num_repeated = 0;
  for (const auto& [megahertz, of] : by_clock) {
    num_repeated += of.count > 1 ? 1 : 0;
    if (of.Agree()) continue;
    problems.Add(pass, absl::StrFormat(
                           "has %g to %g s and %g to %g J at %g MHz, expected "
                           "measurements that differ by at most a factor of %g",
                           of.least_seconds, of.most_seconds, of.least_joules,
                           of.most_joules, megahertz, kMostRatio));
  }
  return num_repeated;
}

// Replaces points of the same clock by their mean.
std::vector<ClockPoint> MergeClocks(std::vector<ClockPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const ClockPoint& a, const ClockPoint& b) {
                     return a.megahertz < b.megahertz;
                   });
  std::vector<ClockPoint> merged;
  for (size_t first = 0; first < points.size();) {
    ClockPoint sum{points[first].megahertz, 0, 0};
    size_t end = first;
    while (end < points.size() && points[end].megahertz == sum.megahertz) {
      sum.seconds += points[end].seconds;
      sum.joules += points[end].joules;
      ++end;
    }
    const double count = static_cast<double>(end - first);
    merged.push_back({sum.megahertz, sum.seconds / count, sum.joules / count});
    first = end;
  }
  return merged;
}

// Returns the text without a last line that no line break ends, since the line
// may be incomplete.
absl::string_view CompleteRows(absl::string_view text) {
  const absl::string_view rows = absl::StripTrailingAsciiWhitespace(text);
  if (rows.size() < text.size() &&
      text.substr(rows.size()).find('\n') != absl::string_view::npos) {
    return text;
  }
  const size_t end = rows.rfind('\n');
  return end == absl::string_view::npos ? text : rows.substr(0, end + 1);
}

absl::Status CheckStages(absl::string_view label, const ClockProfile& profile) {
  Problems problems(label);
  for (int stage = 0; stage < profile.num_stages; ++stage) {
    const auto has = [&](schedules::Op pass) {
      return profile.passes.contains({stage, pass});
    };
    if (!has(schedules::Op::kForward)) {
      problems.Add("stage",
                   absl::StrCat(stage, " has no forward, expected one"));
    }
    if (!has(schedules::Op::kBackward) &&
        !(has(schedules::Op::kBackwardInput) &&
          has(schedules::Op::kBackwardWeight))) {
      problems.Add("stage",
                   absl::StrCat(stage, " has no backward, expected one"));
    }
  }
  return problems.ToStatus();
}

}  // namespace

std::string InstructionName(schedules::Op pass) {
  switch (pass) {
    case schedules::Op::kForward:
      return "forward";
    case schedules::Op::kBackwardInput:
      return "backward_input";
    case schedules::Op::kBackwardWeight:
      return "backward_weight";
    default:
      return "backward";
  }
}

bool IsClockProfile(absl::string_view text) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  const std::vector<absl::string_view> names =
      absl::StrSplit(text.substr(0, text.find('\n')), ',');
  const auto has = [&](absl::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](absl::string_view each) {
      return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(each), name);
    });
  };
  return has("stage") && has("instruction");
}

absl::StatusOr<ClockProfile> ReadClockProfile(absl::string_view label,
                                              absl::string_view text,
                                              double time_scale,
                                              double gpus_per_stage) {
  const absl::string_view rows = CompleteRows(text);
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, rows));
  ASSIGN_OR_RETURN(const CsvColumn stage, ColumnOf(table, {"stage"}));
  ASSIGN_OR_RETURN(const CsvColumn pass, ColumnOf(table, {"instruction"}));
  ASSIGN_OR_RETURN(const CsvColumn clock,
                   ColumnOf(table, {"frequency", "clock", "clock_mhz"}));
  ASSIGN_OR_RETURN(const CsvColumn time, ColumnOf(table, {"time", "seconds"}));
  ASSIGN_OR_RETURN(const CsvColumn energy,
                   ColumnOf(table, {"energy", "joules"}));
  ASSIGN_OR_RETURN(const std::vector<double> stages,
                   stage.Numbers(0, kMaxStages - 1));
  ASSIGN_OR_RETURN(const std::vector<double> clocks, clock.Numbers(1, 1e5));
  ASSIGN_OR_RETURN(const std::vector<double> times, time.Numbers(1e-9, 1e6));
  ASSIGN_OR_RETURN(const std::vector<double> energies,
                   energy.Numbers(1e-9, 1e12));
  ClockProfile profile;
  if (rows.size() < text.size()) {
    profile.notes.push_back(absl::StrCat(
        label,
        ": the table ends within a row, which is ignored: it may be cut off"));
  }
  for (int row = 0; row < table.num_rows(); ++row) {
    const std::optional<schedules::Op> op = PassNamed(pass.Text(row));
    if (!op.has_value()) {
      return pass.Error(row,
                        "expected forward, backward, backward_input or "
                        "backward_weight");
    }
    if (stages[row] != std::floor(stages[row])) {
      return stage.Error(row, "expected a whole number");
    }
    const int number = static_cast<int>(stages[row]);
    profile.num_stages = std::max(profile.num_stages, number + 1);
    profile.passes[{number, *op}].push_back(
        {clocks[row], times[row] * time_scale,
         energies[row] * time_scale * gpus_per_stage});
  }
  if (profile.passes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has no rows, expected at least one"));
  }
  RETURN_IF_ERROR(CheckStages(label, profile));
  Problems problems(label);
  int repeated = 0;
  for (auto& [key, points] : profile.passes) {
    repeated += CheckRepeated(
        absl::StrCat("stage ", key.first, " ", InstructionName(key.second)),
        points, problems);
    points = MergeClocks(std::move(points));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  if (repeated > 0) {
    profile.notes.push_back(absl::StrCat(
        label, ": several rows are for the same pass and clock (", repeated,
        repeated == 1 ? " case" : " cases", "), of which the mean is used"));
  }
  return profile;
}

}  // namespace weir::plan
