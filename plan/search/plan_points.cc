// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_points.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_syntax.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::plan {
namespace {

using ReadJson = nlohmann::json;

class PointReader {
 public:
  PointReader(const ReadJson& plan, size_t index, Problems* problems)
      : plan_(plan), index_(index), problems_(problems) {}

  PlanPoint Read() {
    PlanPoint point;
    point.label = absl::StrCat("tp ", Positive("tensor"), ", pp ",
                               Positive("pipeline"), ", dp ", Positive("data"));
    Append("cp", "context", &point.label);
    Append("ep", "expert", &point.label);
    Append("v", "chunks", &point.label);
    absl::StrAppend(&point.label, ", mbs ", Positive("microbatch_size"));
    const std::string recompute = Text("recompute");
    absl::StrAppend(&point.label, ", ", Text("schedule"));
    if (!recompute.empty() && recompute != "none") {
      absl::StrAppend(&point.label, ", recompute ", recompute);
    }
    point.batch_seconds = Positive("batch_seconds");
    point.peak_memory_bytes = Positive("peak_memory_bytes");
    point.num_gpus = Positive("num_gpus");
    if (plan_.contains("price_per_sample") &&
        plan_["price_per_sample"].is_number()) {
      point.price_per_sample = Positive("price_per_sample");
    }
    return point;
  }

 private:
  double Positive(const char* field) {
    const auto at = plan_.find(field);
    if (at != plan_.end() && at->is_number()) {
      const double value = at->get<double>();
      if (std::isfinite(value) && value > 0) return value;
    }
    problems_->Add(absl::StrCat("result.plans[", index_, "].", field),
                   "is missing, expected a number above 0");
    return 1;
  }

  std::string Text(const char* field) const {
    const auto at = plan_.find(field);
    return at != plan_.end() && at->is_string() ? at->get<std::string>() : "";
  }

  // Sizes of 1 are not part of a label.
  void Append(const char* name, const char* field, std::string* label) const {
    const auto at = plan_.find(field);
    if (at == plan_.end() || !at->is_number_unsigned()) return;
    if (at->get<uint64_t>() > 1) {
      absl::StrAppend(label, ", ", name, " ", at->get<uint64_t>());
    }
  }

  const ReadJson& plan_;
  const size_t index_;
  Problems* const problems_;
};

// Fields that labels name only where plans would have the same label, and their
// names there.
constexpr std::pair<const char*, const char*> kDetails[] = {
    {"sharding", "sharding"},
    {"layers", "layers"},
    {"order", "order"},
    {"sequence_parallel", "sequence parallel"},
    {"gradient_reduction", "reduction"},
    {"expert_tensor", "etp"},
    {"data_replicate", "replicate"},
    {"cpu_offloading_num_layers", "offloaded blocks"},
    {"optimizer_offload_fraction", "optimizer on host"},
    {"vocabulary_parallel", "vocabulary"},
    {"overlap_moe_expert_parallel_comm", "ep overlap"},
    {"tp_comm_overlap", "tp overlap"}};

std::string DetailText(const ReadJson& plan, const char* field) {
  const auto at = plan.find(field);
  if (at == plan.end() || at->is_structured()) return "";
  if (at->is_boolean()) return at->get<bool>() ? "yes" : "no";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

// Adds to equal labels what the plans differ in. Requires: plan i is points[i].
void TellApart(const ReadJson& plans, std::vector<PlanPoint>* points) {
  std::map<std::string, std::vector<size_t>> with_label;
  for (size_t i = 0; i < points->size(); ++i) {
    with_label[(*points)[i].label].push_back(i);
  }
  for (const auto& [label, members] : with_label) {
    for (const auto& [field, name] : kDetails) {
      std::set<std::string> texts;
      for (const size_t i : members) texts.insert(DetailText(plans[i], field));
      if (texts.size() < 2) continue;
      for (const size_t i : members) {
        const std::string text = DetailText(plans[i], field);
        if (text.empty()) continue;
        absl::StrAppend(&(*points)[i].label, ", ", name, " ", text);
      }
    }
  }
}

}  // namespace

bool IsPlanJson(absl::string_view text) {
  // The envelope begins with the tool; no schedule has plans.
  return absl::StrContains(text.substr(0, 200), "\"tool\"") &&
         absl::StrContains(text, "\"plans\"");
}

absl::StatusOr<std::vector<PlanPoint>> PlanPointsOfJson(
    absl::string_view label, absl::string_view text) {
  RETURN_IF_ERROR(CheckJsonSyntax(label, text));
  const ReadJson json =
      ReadJson::parse(text.begin(), text.end(), nullptr, /*exceptions=*/false);
  Problems problems(label);
  std::vector<PlanPoint> points;
  if (!json.is_object() || !json.contains("result") ||
      !json["result"].is_object() || !json["result"].contains("plans") ||
      !json["result"]["plans"].is_array()) {
    problems.Add("result.plans",
                 "is missing, expected the output of weir plan --format json");
    return problems.ToStatus();
  }
  const ReadJson& plans = json["result"]["plans"];
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].is_object()) {
      problems.Add(absl::StrCat("result.plans[", i, "]"),
                   "is no object, expected a plan");
      continue;
    }
    points.push_back(PointReader(plans[i], i, &problems).Read());
  }
  RETURN_IF_ERROR(problems.ToStatus());
  TellApart(plans, &points);
  return points;
}

}  // namespace weir::plan
