// SPDX-License-Identifier: Apache-2.0
#include "schedules/semantics_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "schedules/stage_semantics.h"

namespace weir::schedules {
namespace {

using Json = nlohmann::ordered_json;

bool Predicts(const Schedule& schedule) {
  return schedule.weights.prediction != WeightPolicy::Prediction::kNone;
}

std::string Heading(const Schedule& schedule, const Semantics& semantics) {
  const std::string shape = absl::StrCat(
      schedule.num_ranks, " ranks, ", schedule.num_stages, " stages, ",
      schedule.num_microbatches, " microbatches",
      schedule.flush ? ", flush"
                     : absl::StrCat(" per batch, ", schedule.num_batches,
                                    " batches, no flush"));
  return WrapText(absl::StrCat(
      EscapeLine(schedule.name), ": ", shape, "\n",
      Verdict(schedule, semantics),
      "\nupdate: ", UpdateRule(schedule, semantics), "\n",
      schedule.forward_only ? "" : absl::StrCat("(", kUpdateSymbols, ")\n")));
}

std::string StageRows(const Schedule& schedule,
                      const std::vector<StageSemantics>& stages) {
  const bool predicts = Predicts(schedule);
  size_t width = 4;
  for (const StageSemantics& stage : stages) {
    width = std::max(width, absl::StrJoin(stage.ranks, "+").size());
  }
  std::string text = absl::StrFormat(
      "stage  %*s  versions  staleness max  mean  F-B distance max  mean%s\n",
      width, "rank", predicts ? "  predicted F     B  distance max  mean" : "");
  for (const StageSemantics& stage : stages) {
    absl::StrAppendFormat(&text, "%5d  %*s  %8d  %13d %5.4g  %16d %5.4g",
                          stage.stage, width, absl::StrJoin(stage.ranks, "+"),
                          stage.max_live_versions, stage.max_staleness,
                          stage.mean_staleness, stage.max_disagreement,
                          stage.mean_disagreement);
    if (predicts) {
      // Sums of fractions may differ from 0 by rounding errors.
      const auto rounded = [](double value) {
        return std::abs(value) < 1e-9 ? 0 : value;
      };
      absl::StrAppendFormat(&text, "  %+11.4g %+5.4g  %12.4g %5.4g",
                            stage.forward_distance, stage.backward_distance,
                            rounded(stage.max_predicted_disagreement),
                            rounded(stage.mean_predicted_disagreement));
    }
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(
      &text,
      "staleness and distances in updates; means exclude the start-up\n");
  const WeightPolicy& weights = schedule.weights;
  if (weights.predicted_copies > 0 || weights.estimate_buffers > 0) {
    absl::StrAppend(&text, "in addition to the versions: predicted copies ",
                    weights.predicted_copies, ", estimate buffers ",
                    weights.estimate_buffers, "\n");
  }
  return text;
}

// Returns a text such as "0/1>2": F reads version 0, B version 1, and update 2
// applies the gradient.
std::string UseText(const VersionUse& use, bool forward_only) {
  std::string text = absl::StrCat(use.forward_version);
  if (forward_only) return text;
  if (use.disagreement() != 0) {
    absl::StrAppend(&text, "/", use.backward_version);
  }
  return absl::StrCat(text, ">", use.update);
}

// Returns the versions that every microbatch reads, or "" if there are too
// many.
std::string UseRows(const Schedule& schedule, const Semantics& semantics) {
  constexpr size_t kMaxStages = 16;
  constexpr int kMaxWidth = 160;
  const int total = schedule.total_microbatches();
  if (semantics.uses.size() > kMaxStages || total > kMaxWidth) return "";
  size_t width = absl::StrCat(total - 1).size();
  for (const std::vector<VersionUse>& uses : semantics.uses) {
    for (const VersionUse& use : uses) {
      width = std::max(width, UseText(use, schedule.forward_only).size());
    }
  }
  constexpr absl::string_view kLabel = "microbatch";
  if (kLabel.size() + total * (width + 1) > size_t{kMaxWidth}) return "";
  std::string text(kLabel);
  for (int k = 0; k < total; ++k)
    absl::StrAppendFormat(&text, " %*d", width, k);
  absl::StrAppend(&text, "\n");
  for (size_t stage = 0; stage < semantics.uses.size(); ++stage) {
    absl::StrAppendFormat(&text, "%-*s", kLabel.size(),
                          absl::StrCat("stage ", stage));
    for (const VersionUse& use : semantics.uses[stage]) {
      absl::StrAppendFormat(&text, " %*s", width,
                            UseText(use, schedule.forward_only));
    }
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, schedule.forward_only
                                ? "version that F reads\n"
                                : "F's version, /B's version if different, "
                                  ">update that uses the gradient\n");
}

Json StageJson(const StageSemantics& stage) {
  return {{"stage", stage.stage},
          {"ranks", stage.ranks},
          {"microbatches_per_update", stage.microbatches_per_update},
          {"max_live_versions", stage.max_live_versions},
          {"max_staleness", stage.max_staleness},
          {"mean_staleness", stage.mean_staleness},
          {"max_disagreement", stage.max_disagreement},
          {"mean_disagreement", stage.mean_disagreement},
          {"forward_distance", stage.forward_distance},
          {"backward_distance", stage.backward_distance},
          {"max_predicted_disagreement", stage.max_predicted_disagreement},
          {"mean_predicted_disagreement", stage.mean_predicted_disagreement}};
}

Json UseJson(const Schedule& schedule, int stage, int microbatch,
             const VersionUse& use) {
  Json json = {{"stage", stage},
               {"microbatch", microbatch},
               {"rank", schedule.rank_of(stage, microbatch)},
               {"forward_version", use.forward_version}};
  if (!schedule.forward_only) {
    json["backward_version"] = use.backward_version;
    json["update"] = use.update;
    json["staleness"] = use.staleness();
  }
  if (Predicts(schedule)) {
    json["predicted_forward_version"] = PredictedForward(schedule, stage, use);
    json["predicted_backward_version"] =
        PredictedBackward(schedule, stage, use);
  }
  return json;
}

}  // namespace

std::string SemanticsTable(const Schedule& schedule,
                           const Semantics& semantics) {
  const std::string uses = UseRows(schedule, semantics);
  return absl::StrCat(Heading(schedule, semantics), "\n",
                      StageRows(schedule, SummarizeStages(schedule, semantics)),
                      uses.empty() ? "" : "\n", uses);
}

std::string SemanticsJson(const Schedule& schedule,
                          const Semantics& semantics) {
  Json stages = Json::array();
  for (const StageSemantics& stage : SummarizeStages(schedule, semantics)) {
    stages.push_back(StageJson(stage));
  }
  Json uses = Json::array();
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (int k = 0; k < schedule.total_microbatches(); ++k) {
      uses.push_back(UseJson(schedule, stage, k, semantics.uses[stage][k]));
    }
  }
  const Json json = {{"schedule", schedule.name},
                     {"num_ranks", schedule.num_ranks},
                     {"num_stages", schedule.num_stages},
                     {"num_microbatches", schedule.num_microbatches},
                     {"num_batches", schedule.num_batches},
                     {"flush", schedule.flush},
                     {"forward_only", schedule.forward_only},
                     {"verdict", Verdict(schedule, semantics)},
                     {"update_rule", UpdateRule(schedule, semantics)},
                     {"predicted_copies", schedule.weights.predicted_copies},
                     {"estimate_buffers", schedule.weights.estimate_buffers},
                     {"stages", std::move(stages)},
                     {"uses", std::move(uses)}};
  constexpr int kIndent = 2;
  // A name may be a file name; bytes that are not UTF-8 are replaced.
  return DumpJson(json, kIndent);
}

}  // namespace weir::schedules
