// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/reliability.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "base/values.h"

namespace weir::plan {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kUsualRepairHours = 24;
constexpr double kLeastHours = 1e-6, kMostHours = 1e12;

struct KnownClass {
  absl::string_view name;
  FailureClass::Unit unit;
  bool replaces_node;
};
constexpr KnownClass kKnownClasses[] = {{"gpu", FailureClass::GPU, true},
                                        {"host", FailureClass::NODE, true},
                                        {"nic", FailureClass::GPU, true},
                                        {"switch", FailureClass::SWITCH, false},
                                        {"software", FailureClass::JOB, false}};

void CheckClass(const FailureClass& each, const std::string& field,
                Problems* problems) {
  if (each.name().empty()) {
    problems->Add(field + ".name", "is empty, expected a name");
  }
  if (each.unit() == FailureClass::UNIT_UNSPECIFIED ||
      !FailureClass::Unit_IsValid(each.unit())) {
    problems->Add(field + ".unit",
                  "is not set, expected GPU, NODE, SWITCH or JOB");
  }
  const bool observed = each.failures() != 0 || each.unit_hours() != 0;
  const double mean = each.mean_hours_between_failures();
  if (observed && mean != 0) {
    problems->Add(field,
                  "has failures and mean_hours_between_failures, expected one");
  } else if (observed) {
    problems->CheckRange(field + ".failures", each.failures(), 1e-6, 1e12);
    problems->CheckRange(field + ".unit_hours", each.unit_hours(), kLeastHours,
                         kMostHours);
  } else {
    problems->CheckRange(field + ".mean_hours_between_failures", mean,
                         kLeastHours, kMostHours);
  }
  problems->CheckRange(field + ".repair_hours", each.repair_hours(), 0, 1e6);
}

// Parses "50000h", "14d", "0.5y" or "50000" as hours.
absl::StatusOr<double> ParseHours(absl::string_view text) {
  double unit = 1;
  if (absl::ConsumeSuffix(&text, "y")) {
    unit = 365.25 * 24;
  } else if (absl::ConsumeSuffix(&text, "d")) {
    unit = 24;
  } else {
    absl::ConsumeSuffix(&text, "h");
  }
  ASSIGN_OR_RETURN(const double number, ParsePositive(text));
  return unit * number;
}

FailureClass* FindClass(absl::string_view name, Reliability* reliability) {
  for (FailureClass& each : *reliability->mutable_classes()) {
    if (each.name() == name) return &each;
  }
  return nullptr;
}

// Returns the class of this name, added if it is a known one; otherwise null.
FailureClass* FindOrAddClass(absl::string_view name, Reliability* reliability) {
  if (FailureClass* found = FindClass(name, reliability)) return found;
  for (const KnownClass& known : kKnownClasses) {
    if (known.name != name) continue;
    FailureClass* added = reliability->add_classes();
    added->set_name(std::string(name));
    added->set_unit(known.unit);
    added->set_replaces_node(known.replaces_node);
    return added;
  }
  return nullptr;
}

std::string ClassNames(const Reliability& reliability) {
  std::set<std::string> names;
  for (const FailureClass& each : reliability.classes()) {
    names.insert(each.name());
  }
  for (const KnownClass& known : kKnownClasses) {
    names.insert(std::string(known.name));
  }
  return absl::StrJoin(names, ", ");
}

double NumUnits(const FailureClass& each, const Reliability& reliability,
                const JobSize& job) {
  const int per_switch =
      std::max(static_cast<int>(reliability.nodes_per_switch()), 1);
  switch (each.unit()) {
    case FailureClass::GPU:
      return job.num_gpus;
    case FailureClass::NODE:
      return job.num_nodes;
    case FailureClass::SWITCH: {
      const int num_switches = (job.num_nodes + per_switch - 1) / per_switch;
      return num_switches;
    }
    default:
      return 1;
  }
}

}  // namespace

absl::StatusOr<Reliability> LoadReliability(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset(kReliabilityFolder, name_or_path));
  Reliability reliability;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &reliability));
  RETURN_IF_ERROR(ValidateReliability(asset.label, reliability));
  return reliability;
}

absl::Status ValidateReliability(absl::string_view label,
                                 const Reliability& reliability) {
  Problems problems(label);
  if (reliability.classes().empty()) {
    problems.Add("classes", "is empty, expected at least one");
  }
  if (reliability.classes_size() > 100) {
    problems.Add("classes", absl::StrCat("has ", reliability.classes_size(),
                                         " entries, expected at most 100"));
    return problems.ToStatus();
  }
  std::set<std::string> names;
  for (int i = 0; i < reliability.classes_size(); ++i) {
    const std::string field = absl::StrCat("classes[", i, "]");
    CheckClass(reliability.classes(i), field, &problems);
    if (!names.insert(reliability.classes(i).name()).second) {
      problems.Add(field + ".name", "is repeated, expected different names");
    }
  }
  problems.CheckRange("nodes_per_switch", reliability.nodes_per_switch(), 0,
                      1e6);
  problems.CheckRange("detection_seconds", reliability.detection_seconds(), 0,
                      1e6);
  problems.CheckRange("restart_seconds", reliability.restart_seconds(), 0, 1e6);
  return problems.ToStatus();
}

absl::Status OverrideRates(absl::string_view text, Reliability* reliability) {
  Problems problems("--mtbf");
  std::set<absl::string_view> names;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      problems.Add("", absl::StrCat("is ", EscapeLine(item),
                                    ", expected NAME=HOURS as in gpu=50000h"));
      continue;
    }
    if (!names.insert(parts[0]).second) {
      problems.Add(EscapeLine(parts[0]), "is given twice, expected once");
      continue;
    }
    const absl::StatusOr<double> hours = ParseHours(parts[1]);
    if (!hours.ok() || *hours > kMostHours || *hours < kLeastHours) {
      problems.Add(EscapeLine(parts[0]),
                   absl::StrCat("is ", EscapeLine(parts[1]),
                                ", expected hours (h), days (d) or years (y) "
                                "as in 50000h, from ",
                                kLeastHours, " to ", kMostHours, " hours"));
      continue;
    }
    FailureClass* found = FindOrAddClass(parts[0], reliability);
    if (found == nullptr) {
      problems.Add(EscapeLine(parts[0]),
                   absl::StrCat("is not a class of failures, expected one of ",
                                ClassNames(*reliability)));
      continue;
    }
    found->clear_failures();
    found->clear_unit_hours();
    found->set_mean_hours_between_failures(*hours);
    found->set_source("--mtbf");
  }
  return problems.ToStatus();
}

std::vector<JobFailures> FailuresOfJob(const Reliability& reliability,
                                       const JobSize& job) {
  std::vector<JobFailures> failures;
  for (const FailureClass& each : reliability.classes()) {
    const double mean_hours = each.failures() > 0
                                  ? each.unit_hours() / each.failures()
                                  : each.mean_hours_between_failures();
    failures.push_back(
        {.name = each.name(),
         .mean_seconds_between =
             mean_hours * kSecondsPerHour / NumUnits(each, reliability, job),
         .replaces_node = each.replaces_node(),
         .repair_seconds =
             kSecondsPerHour * (each.repair_hours() > 0 ? each.repair_hours()
                                                        : kUsualRepairHours)});
  }
  return failures;
}

double MeanSecondsBetween(const std::vector<JobFailures>& failures) {
  double rate = 0;
  for (const JobFailures& each : failures)
    rate += 1 / each.mean_seconds_between;
  return 1 / rate;
}

}  // namespace weir::plan
