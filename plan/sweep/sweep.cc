// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/sweep.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "plan/sweep/fields.h"
#include "plan/sweep/ranges.h"
#include "scenarios/scenario.h"
#include "scenarios/sizes.h"
#include "schedules/own_name.h"

namespace weir::plan {
namespace {

// A file with other contents may have millions of invalid points.
constexpr int kMaxWrongPoints = 50;
// Points have 32-bit numbers.
constexpr double kMaxPoints = std::numeric_limits<int32_t>::max();

bool IsPath(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '[' || c == ']';
  });
}

// Reads the rows of a table as points. Empty cells set nothing.
absl::Status ReadPoints(Sweep* sweep) {
  if (sweep->points_csv().empty()) return absl::OkStatus();
  const std::string path = sweep->points_csv();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
  for (const CsvRow& row : table.rows()) {
    SweepPoint* point = sweep->add_points();
    for (size_t i = 0; i < row.fields.size(); ++i) {
      if (row.fields[i].empty()) continue;
      point->add_set(absl::StrCat(table.header()[i], "=", row.fields[i]));
    }
  }
  sweep->clear_points_csv();
  if (table.num_rows() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": has no points"));
}

std::pair<std::string, std::string> Split(const std::string& setting) {
  return absl::StrSplit(setting, absl::MaxSplits('=', 1));
}

// Collects the fields and tries to set every value once.
class Checker {
 public:
  Checker(absl::string_view label, ResolvedSweep* resolved)
      : problems_(label), resolved_(resolved) {}

  absl::Status Check() {
    int num_wrong = 0;
    for (int i = 0; i < resolved_->sweep.points_size(); ++i) {
      num_wrong += CheckPoint(i) ? 0 : 1;
      if (num_wrong > kMaxWrongPoints) return problems_.ToStatus();
    }
    double num_points = std::max(1, resolved_->sweep.points_size());
    for (SweepAxis& axis : *resolved_->sweep.mutable_axes()) {
      CheckAxis(&axis);
      num_points *= std::max(1, axis.values_size());
    }
    if (num_points <= kMaxPoints) {
      resolved_->num_points = static_cast<uint32_t>(num_points);
    } else {
      problems_.Add("", absl::StrCat("has ", num_points,
                                     " points, expected at most ", kMaxPoints));
    }
    if (resolved_->sweep.axes().empty() && resolved_->sweep.points().empty()) {
      problems_.Add(
          "",
          "has nothing to sweep, expected axes or points (--grid or --points)");
    }
    return problems_.ToStatus();
  }

 private:
  // Returns true if the point has no problem.
  bool CheckPoint(int i) {
    bool is_fine = true;
    std::set<std::string> here;
    for (const std::string& setting : resolved_->sweep.points(i).set()) {
      const auto [field, value] = Split(setting);
      const std::string where = absl::StrCat("points[", i, "]: ", field);
      if (setting.find('=') == std::string::npos) {
        problems_.Add(where, "has no value, expected FIELD=VALUE");
        is_fine = false;
      } else if (!here.insert(field).second) {
        problems_.Add(where, "is set twice");
        is_fine = false;
      } else if (!Try(where, field, value)) {
        is_fine = false;
      } else if (seen_.insert(field).second) {
        resolved_->fields.push_back(field);
      }
    }
    return is_fine;
  }

  void CheckAxis(SweepAxis* axis) {
    const std::string& field = axis->field();
    const auto found = FindField(*Scenario::descriptor(), field);
    if (!found.ok()) {
      problems_.Add(field, found.status().message());
      return;
    }
    if (!seen_.insert(field).second) {
      problems_.Add(field, "is swept twice");
      return;
    }
    resolved_->fields.push_back(field);
    if (axis->values_size() == 0) problems_.Add(field, "has no values");
    const auto values = ExpandRanges(**found, axis->values());
    if (!values.ok()) {
      problems_.Add(field, values.status().message());
      return;
    }
    axis->mutable_values()->Assign(values->begin(), values->end());
    std::set<std::string> here;
    for (const std::string& value : axis->values()) {
      if (!Try(field, field, value)) continue;
      if (!here.insert(value).second) {
        problems_.Add(field, absl::StrCat("has ", value, " twice"));
      }
    }
  }

  bool Try(const std::string& where, const std::string& field,
           const std::string& value) {
    Scenario copy = resolved_->sweep.scenario();
    const absl::Status set = SetField(field, value, &copy);
    if (!set.ok()) problems_.Add(where, set.message());
    return set.ok();
  }

  Problems problems_;
  ResolvedSweep* resolved_;
  std::set<std::string> seen_;
};

// Returns true if the points have other sizes than the base scenario.
bool SetGroups(const ResolvedSweep& sweep) {
  Scenario changes;
  for (const std::string& field : sweep.fields) {
    if (field == "parallelism.num_gpus" || field == "num_nodes" ||
        field == "parallelism.tensor" || field == "parallelism.pipeline" ||
        field == "parallelism.data" ||
        field == "cluster_changes.nvlink_domain") {
      SetField(field, "1", &changes).IgnoreError();
    }
  }
  return scenarios::SetsGroups(changes);
}

}  // namespace

absl::StatusOr<Sweep> LoadSweep(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Sweep sweep;
  RETURN_IF_ERROR(ParseTextProto(path, text, &sweep));
  return sweep;
}

absl::StatusOr<std::vector<SweepAxis>> ParseGrid(absl::string_view text) {
  std::vector<SweepAxis> axes;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    const size_t equals = word.find('=');
    if (equals != absl::string_view::npos && IsPath(word.substr(0, equals))) {
      axes.emplace_back().set_field(LongField(word.substr(0, equals)));
      word = word.substr(equals + 1);
    } else if (axes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is \"", EscapeLine(text),
                       "\", expected FIELD=VALUE,... as in ", "pp=2,4,8"));
    }
    axes.back().add_values(std::string(word));
  }
  return axes;
}

absl::StatusOr<ResolvedSweep> ResolveSweep(absl::string_view label,
                                           const Sweep& sweep,
                                           bool replicas_of_file) {
  ResolvedSweep resolved;
  resolved.label = std::string(label);
  resolved.sweep = sweep;
  Sweep& whole = resolved.sweep;
  if (!whole.base().empty()) {
    ASSIGN_OR_RETURN(Scenario scenario, scenarios::LoadScenario(whole.base()));
    replicas_of_file = whole.scenario().parallelism().data() == 0;
    scenario.MergeFrom(whole.scenario());
    *whole.mutable_scenario() = std::move(scenario);
    whole.clear_base();
  }
  if (whole.points_size() > 0 && !whole.points_csv().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has points and points_csv, expected only one of them"));
  }
  if (whole.method() == SWEEP_METHOD_UNSPECIFIED) whole.set_method(SWEEP_FULL);
  const std::string points = whole.points_csv();
  RETURN_IF_ERROR(ReadPoints(&whole));
  for (SweepAxis& axis : *whole.mutable_axes()) {
    axis.set_field(LongField(axis.field()));
  }
  for (SweepPoint& point : *whole.mutable_points()) {
    for (std::string& setting : *point.mutable_set()) {
      const size_t end = std::min(setting.find('='), setting.size());
      setting = LongField(setting.substr(0, end)) + setting.substr(end);
    }
  }
  Checker checker(points.empty() || whole.axes_size() > 0
                      ? label
                      : absl::string_view(points),
                  &resolved);
  RETURN_IF_ERROR(checker.Check());
  if (replicas_of_file && SetGroups(resolved)) {
    scenarios::ClearReplicas(whole.mutable_scenario());
  }
  return resolved;
}

std::vector<std::pair<std::string, std::string>> SettingsOf(
    const ResolvedSweep& sweep, uint32_t point) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (int i = sweep.sweep.axes_size() - 1; i >= 0; --i) {
    const SweepAxis& axis = sweep.sweep.axes(i);
    const auto num_values = static_cast<uint32_t>(axis.values_size());
    settings.emplace_back(axis.field(), axis.values(point % num_values));
    point /= num_values;
  }
  std::reverse(settings.begin(), settings.end());
  if (sweep.sweep.points_size() == 0) return settings;
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& setting : sweep.sweep.points(point).set()) {
    all.push_back(Split(setting));
  }
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

std::vector<std::pair<std::string, std::string>> ShownSettingsOf(
    const ResolvedSweep& sweep, uint32_t point) {
  auto settings = SettingsOf(sweep, point);
  for (auto& [field, value] : settings) {
    if (field == "schedule") value = schedules::OwnScheduleName(value);
  }
  return settings;
}

Scenario ScenarioOfPoint(const ResolvedSweep& sweep, uint32_t point) {
  Scenario scenario = sweep.sweep.scenario();
  for (const auto& [field, value] : SettingsOf(sweep, point)) {
    // Checked when the sweep was resolved.
    SetField(field, value, &scenario).IgnoreError();
  }
  return scenario;
}

}  // namespace weir::plan
