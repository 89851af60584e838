// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "results/flops.h"
#include "results/summary.h"
#include "results/validate.h"
#include "results/views/cells.h"
#include "results/views/features.h"
#include "results/views/views.h"

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;

// JSON has neither NaN nor infinity: such a number becomes null and a warning.
Json ToJson(const Result& result, std::vector<std::string>* warnings) {
  const Result copy = WithoutTimeline(result);
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  google::protobuf::LogSilencer silencer;  // protobuf prints complaints
  const auto status =
      google::protobuf::util::MessageToJsonString(copy, &text, options);
  Json json = status.ok() ? Json::parse(text, nullptr, false) : Json();
  if (!json.is_object()) {
    warnings->push_back("a result cannot be written as JSON");
    return Json();
  }
  if (const auto tokens = TokensPerGpu(copy); tokens.has_value()) {
    json["tokens_per_second_per_gpu"] = *tokens;
  }
  if (const auto flops = FlopsPerGpu(copy, FormulaOf(copy));
      flops.has_value()) {
    json["flops_per_second_per_gpu"] = *flops;
  }
  if (const auto features = FeaturesOf(ScenarioOf(copy)); !features.empty()) {
    json["features"] = features;
  }
  for (const std::string& pointer : NonFinitePointers(copy)) {
    json[Json::json_pointer(pointer)] = nullptr;
    warnings->push_back(RowName(copy) + ": " + pointer +
                        " is not a finite number");
  }
  return json;
}

std::string Print(const Json& json) { return DumpJson(json, 2) + "\n"; }

Json Envelope(absl::string_view command, const std::string& version) {
  Json envelope;
  envelope["tool"] = "weir";
  envelope["version"] = version;
  envelope["command"] = std::string(command);
  return envelope;
}

}  // namespace

std::string ResultJson(absl::string_view command, const Result& result) {
  std::vector<std::string> warnings = MergeWarnings({&result, 1});
  Json envelope = Envelope(command, result.provenance().weir_version());
  envelope["config"] = result.provenance().scenario();
  envelope["result"] = ToJson(result, &warnings);
  envelope["warnings"] = warnings;
  return Print(envelope);
}

std::string CompareJson(absl::string_view command,
                        std::span<const Result> results,
                        const std::vector<std::string>& further) {
  std::vector<std::string> warnings = MergeWarnings(results);
  warnings.insert(warnings.end(), further.begin(), further.end());
  Json configs = Json::array();
  Json all = Json::array();
  for (const Result& result : results) {
    configs.push_back(result.provenance().scenario());
    all.push_back(ToJson(result, &warnings));
  }
  Json envelope = Envelope(
      command,
      results.empty() ? "" : results.front().provenance().weir_version());
  envelope["config"] = std::move(configs);
  envelope["results"] = std::move(all);
  envelope["warnings"] = warnings;
  return Print(envelope);
}

}  // namespace weir::results
