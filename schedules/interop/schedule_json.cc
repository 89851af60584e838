// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/schedule_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_syntax.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/interop/schedule_text.h"

namespace weir::schedules {
namespace {

using Json = nlohmann::ordered_json;

Json RanksJson(const Schedule& schedule) {
  Json ranks = Json::array();
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    Json actions = Json::array();
    const std::vector<Action>& order = schedule.rank_actions[rank];
    for (size_t i = 0; i < order.size(); ++i) {
      // In the form of the CSV.
      if (order[i].overlaps_next && i + 1 < order.size()) {
        actions.push_back(absl::StrCat("(", ToString(order[i]), ";",
                                       ToString(order[i + 1]), ")OVERLAP_F_B"));
        ++i;
      } else {
        actions.push_back(ToString(order[i]));
      }
    }
    ranks.push_back({{"rank", rank}, {"actions", std::move(actions)}});
  }
  return ranks;
}

using Forward = WeightPolicy::ForwardRead;
using Backward = WeightPolicy::BackwardRead;
using Prediction = WeightPolicy::Prediction;

constexpr std::pair<Forward, const char*> kForwardReads[] = {
    {Forward::kLatest, "latest"},
    {Forward::kDelayed, "delayed"},
    {Forward::kFirstStage, "first-stage"},
    {Forward::kFirstOfUpdate, "first-of-update"}};
constexpr std::pair<Backward, const char*> kBackwardReads[] = {
    {Backward::kSameAsForward, "same-as-forward"},
    {Backward::kLatest, "latest"}};
constexpr std::pair<Prediction, const char*> kPredictions[] = {
    {Prediction::kNone, "none"},
    {Prediction::kForward, "forward"},
    {Prediction::kForwardAndBackward, "forward-and-backward"},
    {Prediction::kBackward, "backward"},
    {Prediction::kFirstForwardOfUpdate, "first-forward-of-update"}};

template <typename Choices, typename Value>
const char* WordOf(const Choices& choices, Value value) {
  for (const auto& [choice, word] : choices) {
    if (choice == value) return word;
  }
  return "";
}

Json WeightsJson(const WeightPolicy& weights) {
  return {{"microbatches_per_update", weights.microbatches_per_update},
          {"times_replicas", weights.times_replicas},
          {"forward", WordOf(kForwardReads, weights.forward)},
          {"delay_updates", weights.delay_updates},
          {"backward", WordOf(kBackwardReads, weights.backward)},
          {"prediction", WordOf(kPredictions, weights.prediction)},
          {"forward_distance", weights.forward_distance},
          {"backward_distance", weights.backward_distance},
          {"estimate_buffers", weights.estimate_buffers},
          {"predicted_copies", weights.predicted_copies}};
}

Json VersionsJson(const Semantics& semantics) {
  Json versions = Json::array();
  for (size_t stage = 0; stage < semantics.uses.size(); ++stage) {
    for (size_t k = 0; k < semantics.uses[stage].size(); ++k) {
      const VersionUse& use = semantics.uses[stage][k];
      versions.push_back({{"stage", stage},
                          {"microbatch", k},
                          {"forward_version", use.forward_version},
                          {"backward_version", use.backward_version},
                          {"update", use.update},
                          {"staleness", use.staleness()}});
    }
  }
  return versions;
}

}  // namespace

std::string ScheduleJson(const Schedule& schedule, const Semantics& semantics) {
  const Json json = {
      {"schedule", schedule.name},
      {"num_ranks", schedule.num_ranks},
      {"num_stages", schedule.num_stages},
      {"num_microbatches", schedule.num_microbatches},
      {"num_batches", schedule.num_batches},
      {"flush", schedule.flush},
      {"routes", schedule.routes},
      {"microbatches_per_route_turn", schedule.microbatches_per_route_turn},
      {"forward_only", schedule.forward_only},
      {"resident_activations", schedule.resident_activations},
      {"compressed_transfers", schedule.compressed_transfers},
      {"weights", WeightsJson(schedule.weights)},
      {"ranks", RanksJson(schedule)},
      {"versions", VersionsJson(semantics)},
      {"max_live_versions", semantics.max_live_versions},
      {"max_staleness", semantics.max_staleness},
      {"verdict", Verdict(schedule, semantics)}};
  constexpr int kIndent = 2;
  // A name may be a file name; bytes that are not UTF-8 are replaced.
  return DumpJson(json, kIndent);
}

namespace {

// Reads fields of an object. Reports those that are missing or of a wrong type.
class Fields {
 public:
  Fields(const Json& json, std::string path, Problems* problems)
      : json_(json), path_(std::move(path)), problems_(problems) {}

  template <typename T>
  void Take(const char* field, T* value) const {
    const auto found = json_.find(field);
    if (found == json_.end()) {
      problems_->Add(absl::StrCat(path_, field), "is missing");
      return;
    }
    // Other kinds of numbers would be converted silently.
    const bool fits = std::is_same_v<T, bool> ? found->is_boolean()
                      : std::is_integral_v<T> ? IsInt(*found)
                                              : true;
    if (fits) {
      try {
        *value = found->get<T>();
        return;
      } catch (const Json::exception&) {
        // Wrong type; reported below.
      }
    }
    problems_->Add(
        absl::StrCat(path_, field),
        absl::StrCat("is ", found->type_name(), ", expected a different type"));
  }

  template <typename T, typename Choices>
  void TakeWord(const char* field, const Choices& choices, T* value) const {
    std::string word;
    Take(field, &word);
    for (const auto& [choice, name] : choices) {
      if (word != name) continue;
      *value = choice;
      return;
    }
    problems_->Add(absl::StrCat(path_, field),
                   absl::StrCat("is unknown: '", word, "'"));
  }

 private:
  static bool IsInt(const Json& json) {
    if (!json.is_number_integer()) return false;
    const double value = json.get<double>();
    return value >= std::numeric_limits<int>::min() &&
           value <= std::numeric_limits<int>::max();
  }

  const Json& json_;
  const std::string path_;
  Problems* const problems_;
};

void TakeWeights(const Fields& fields, WeightPolicy* weights) {
  fields.Take("microbatches_per_update", &weights->microbatches_per_update);
  fields.Take("times_replicas", &weights->times_replicas);
  fields.TakeWord("forward", kForwardReads, &weights->forward);
  fields.Take("delay_updates", &weights->delay_updates);
  fields.TakeWord("backward", kBackwardReads, &weights->backward);
  fields.TakeWord("prediction", kPredictions, &weights->prediction);
  fields.Take("forward_distance", &weights->forward_distance);
  fields.Take("backward_distance", &weights->backward_distance);
  fields.Take("estimate_buffers", &weights->estimate_buffers);
  fields.Take("predicted_copies", &weights->predicted_copies);
}

using Rows = std::vector<std::vector<std::string>>;  // [rank][action]

Rows RowsOf(const Json& json, Problems* problems) {
  Rows rows;
  const auto ranks = json.find("ranks");
  if (ranks == json.end() || !ranks->is_array() || ranks->empty()) {
    problems->Add("ranks", "is missing or not a list");
    return rows;
  }
  for (size_t rank = 0; rank < ranks->size(); ++rank) {
    std::vector<std::string> actions;
    const Json& row = (*ranks)[rank];
    if (row.is_object()) {
      Fields(row, absl::StrCat("ranks[", rank, "]."), problems)
          .Take("actions", &actions);
    } else {
      problems->Add(absl::StrCat("ranks[", rank, "]"), "is not an object");
    }
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].find_first_of(",\n") == std::string::npos) continue;
      problems->Add(absl::StrCat("ranks[", rank, "].actions[", i, "]"),
                    absl::StrCat("is \"", absl::CHexEscape(actions[i]),
                                 "\", expected one action"));
    }
    rows.push_back(std::move(actions));
  }
  return rows;
}

// Parses each rank's row with the CSV parser. Unlike in a CSV file, a row may
// be empty.
absl::StatusOr<std::vector<std::vector<Action>>> ActionsOf(
    absl::string_view label, const Rows& rows) {
  std::vector<std::vector<Action>> actions;
  absl::Status status;
  for (const std::vector<std::string>& row : rows) {
    actions.emplace_back();
    if (row.empty()) continue;
    auto parsed = ParseCsv(label, absl::StrJoin(row, ","));
    if (parsed.ok() && parsed->size() == 1) {
      actions.back() = std::move((*parsed)[0]);
    } else {
      status.Update(parsed.ok()
                        ? absl::InvalidArgumentError(absl::StrCat(
                              label, ": ranks contains an empty action"))
                        : parsed.status());
    }
  }
  if (status.ok()) return actions;
  // Its lines and columns are not those of the file.
  constexpr int kMaxErrors = 5;
  Problems problems(label);
  int num_wrong = 0;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    for (size_t i = 0; i < rows[rank].size(); ++i) {
      const absl::Status status = ParseCsv("action", rows[rank][i]).status();
      if (status.ok() || ++num_wrong > kMaxErrors) continue;
      problems.Add(absl::StrCat("ranks[", rank, "].actions[", i, "]:"),
                   status.message());
    }
  }
  if (num_wrong > kMaxErrors) {
    problems.Add("", absl::StrCat("and ", num_wrong - kMaxErrors, " more"));
  }
  return problems.empty() ? status : problems.ToStatus();
}

}  // namespace

absl::StatusOr<Schedule> ParseScheduleJson(absl::string_view label,
                                           absl::string_view text) {
  RETURN_IF_ERROR(CheckJsonSyntax(label, text));
  const Json json = Json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label,
                     ": is not a JSON object, expected the output of weir "
                     "schedule show --format json"));
  }
  Problems problems(label);
  Schedule schedule;
  schedule.name = std::string(label);
  const Fields fields(json, "", &problems);
  fields.Take("num_ranks", &schedule.num_ranks);
  fields.Take("num_stages", &schedule.num_stages);
  fields.Take("num_microbatches", &schedule.num_microbatches);
  fields.Take("num_batches", &schedule.num_batches);
  fields.Take("flush", &schedule.flush);
  fields.Take("routes", &schedule.routes);
  fields.Take("microbatches_per_route_turn",
              &schedule.microbatches_per_route_turn);
  fields.Take("forward_only", &schedule.forward_only);
  fields.Take("resident_activations", &schedule.resident_activations);
  fields.Take("compressed_transfers", &schedule.compressed_transfers);
  const auto weights = json.find("weights");
  if (weights != json.end() && weights->is_object()) {
    TakeWeights(Fields(*weights, "weights.", &problems), &schedule.weights);
  } else {
    problems.Add("weights", "is missing or not an object");
  }
  const Rows rows = RowsOf(json, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  ASSIGN_OR_RETURN(schedule.rank_actions, ActionsOf(label, rows));
  return schedule;
}

}  // namespace weir::schedules
