// SPDX-License-Identifier: Apache-2.0
#include "scenarios/costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "scenarios/cut_costs.h"
#include "scenarios/scenario.h"

namespace weir::scenarios {
namespace {

constexpr double kMaxSeconds = 1e9;  // 31 years
constexpr double kMaxBytes = 1e15;
constexpr double kMaxFactor = 1e6;

void CheckStage(Problems& problems, const std::string& path,
                const GivenCosts::Stage& stage) {
  const auto check = [&](const char* field, double seconds) {
    problems.CheckRange(absl::StrCat(path, ".", field), seconds, 0,
                        kMaxSeconds);
  };
  if (!stage.has_forward_seconds()) {
    problems.Add(path + ".forward_seconds", "is missing");
  }
  const bool input = stage.has_backward_input_seconds();
  const bool weight = stage.has_backward_weight_seconds();
  if (stage.has_backward_seconds() && (input || weight)) {
    problems.Add(path,
                 "has both backward_seconds and its parts, expected either "
                 "backward_seconds or the two parts");
  } else if (!stage.has_backward_seconds() && !(input && weight)) {
    problems.Add(path,
                 "has no backward time, expected backward_seconds or both "
                 "backward_input_seconds and backward_weight_seconds");
  }
  check("forward_seconds", stage.forward_seconds());
  check("backward_input_seconds", stage.backward_input_seconds());
  check("backward_weight_seconds", stage.backward_weight_seconds());
  check("backward_seconds", stage.backward_seconds());
  check("overlapped_seconds", stage.overlapped_seconds());
  check("offload_seconds", stage.offload_seconds());
  check("prediction_seconds", stage.prediction_seconds());
  check("codec_seconds", stage.codec_seconds());
  const auto check_bytes = [&](const char* field, double bytes) {
    problems.CheckRange(absl::StrCat(path, ".", field), bytes, 0, kMaxBytes);
  };
  check_bytes("activation_bytes", stage.activation_bytes());
  check_bytes("weight_gradient_bytes", stage.weight_gradient_bytes());
  if (stage.has_weight_gradient_bytes() && !(stage.activation_bytes() > 0)) {
    problems.Add(path + ".activation_bytes",
                 "is missing, expected it together with weight_gradient_bytes");
  }
  const auto check_factors =
      [&](const char* field,
          const google::protobuf::RepeatedField<double>& factors) {
        double last = 0;
        for (int i = 0; i < factors.size(); ++i) {
          problems.CheckRange(absl::StrFormat("%s.%s[%d]", path, field, i),
                              factors[i], last, kMaxFactor);
          last = std::max(last, factors[i]);
        }
      };
  check_factors("forward_factors", stage.forward_factors());
  check_factors("backward_input_factors", stage.backward_input_factors());
  check_factors("backward_weight_factors", stage.backward_weight_factors());
  check_factors("backward_factors", stage.backward_factors());
  if (stage.forward_seconds() == 0 && stage.backward_seconds() == 0 &&
      stage.backward_input_seconds() == 0 &&
      stage.backward_weight_seconds() == 0) {
    problems.Add(path, "takes no time, expected a time above 0");
  }
}

std::optional<double> ParseNumber(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return {};
  return number;
}

// Parses "12.5ms" as seconds. Returns std::nullopt for any other text.
std::optional<double> ParseSeconds(absl::string_view text) {
  double unit = 1;
  if (absl::ConsumeSuffix(&text, "us")) {
    unit = 1e-6;
  } else if (absl::ConsumeSuffix(&text, "ms")) {
    unit = 1e-3;
  } else {
    absl::ConsumeSuffix(&text, "s");
  }
  const std::optional<double> number = ParseNumber(text);
  if (!number.has_value()) return {};
  return *number * unit;
}

}  // namespace

void CheckCosts(Problems& problems, absl::string_view prefix,
                const GivenCosts& costs) {
  if (costs.stages().empty()) {
    problems.Add(absl::StrCat(prefix, "stages"),
                 "is empty, expected one entry, or one per stage");
  }
  for (int i = 0; i < costs.stages_size(); ++i) {
    CheckStage(problems, absl::StrFormat("%sstages[%d]", prefix, i),
               costs.stages(i));
  }
  for (int r = 0; r < costs.replicas_size(); ++r) {
    const auto& stages = costs.replicas(r).stages();
    const std::string path = absl::StrFormat("%sreplicas[%d]", prefix, r);
    if (stages.size() != costs.stages_size()) {
      problems.Add(path + ".stages",
                   absl::StrCat("has ", stages.size(), " entries, expected ",
                                costs.stages_size(), ", as many as stages"));
    }
    for (int s = 0; s < stages.size(); ++s) {
      CheckStage(problems, absl::StrFormat("%s.stages[%d]", path, s),
                 stages[s]);
      if (s < costs.stages_size() &&
          stages[s].has_backward_seconds() !=
              costs.stages(s).has_backward_seconds()) {
        problems.Add(
            absl::StrFormat("%s.stages[%d]", path, s),
            absl::StrFormat("has %s, expected the same as in %sstages[%d]",
                            stages[s].has_backward_seconds()
                                ? "backward_seconds"
                                : "the parts of a backward",
                            prefix, s));
      }
    }
  }
  CheckCostBlocks(problems, prefix, costs);
  problems.CheckRange(absl::StrCat(prefix, "hop_seconds"), costs.hop_seconds(),
                      0, kMaxSeconds);
}

namespace {

// By key: one number, or one per stage.
using Values = std::map<std::string, std::vector<double>>;

constexpr absl::string_view kUnknown =
    "is unknown, expected f, b, i, w, c, o, h, p or z with seconds, as in "
    "f=1,b=2 or f=1,i=1,w=1,c=0, or a or g with bytes";

// Parses "f=1", or "f=1/2/2" with one number per stage.
void ParseValue(absl::string_view part, Values* values, Problems* problems) {
  const std::pair<absl::string_view, absl::string_view> entry =
      absl::StrSplit(part, absl::MaxSplits('=', 1));
  const std::string key(absl::StripAsciiWhitespace(entry.first));
  if (key.size() != 1 || !absl::StrContains("fbiwcohpzag", key)) {
    problems->Add(absl::StrCat("\"", absl::StripAsciiWhitespace(part), "\""),
                  kUnknown);
    return;
  }
  const bool is_bytes = key == "a" || key == "g";
  std::vector<double> numbers;
  // For "f" without a value, entry.second has no data and would split into
  // nothing.
  const std::string value(entry.second);
  for (absl::string_view text : absl::StrSplit(value, '/')) {
    text = absl::StripAsciiWhitespace(text);
    const auto number = is_bytes ? ParseNumber(text) : ParseSeconds(text);
    if (number.has_value() && *number >= 0 &&
        *number <= (is_bytes ? kMaxBytes : kMaxSeconds)) {
      numbers.push_back(*number);
      continue;
    }
    problems->Add(
        key, absl::StrCat("is \"", EscapeLine(entry.second), "\", expected ",
                          is_bytes ? "bytes from 0 to 1e15"
                                   : "seconds from 0 to 1e9, as in 1, "
                                     "0.5s, 20ms or 30us"));
    return;
  }
  if (key == "c" && numbers.size() > 1) {
    problems->Add(key, "is a list, expected one number for all hops");
  }
  if (!values->emplace(key, std::move(numbers)).second) {
    problems->Add(key, "is given twice");
  }
}

void CheckKeys(const Values& values, Problems* problems) {
  const bool parts = values.count("i") > 0 || values.count("w") > 0;
  if (values.count("f") == 0) problems->Add("f", "is missing");
  if (values.count("b") > 0 && parts) {
    problems->Add("b", "is given with i or w, expected b or both i and w");
  } else if (values.count("b") == 0 &&
             (values.count("i") == 0 || values.count("w") == 0)) {
    problems->Add("", "the backward is missing, expected b or both i and w");
  }
  size_t longest = 1;
  for (const auto& [key, numbers] : values) {
    if (numbers.size() > 1 && longest > 1 && numbers.size() != longest) {
      problems->Add(
          key, absl::StrCat("has ", numbers.size(), " entries, another key ",
                            longest, ", expected one for each stage"));
    }
    longest = std::max(longest, numbers.size());
  }
}

GivenCosts::Stage StageOf(const Values& values, size_t s) {
  const auto value = [&](const char* key) -> std::optional<double> {
    const auto at = values.find(key);
    if (at == values.end()) return {};
    return at->second[at->second.size() == 1 ? 0 : s];
  };
  GivenCosts::Stage stage;
  stage.set_forward_seconds(value("f").value_or(0));
  if (const auto b = value("b")) stage.set_backward_seconds(*b);
  if (const auto i = value("i")) stage.set_backward_input_seconds(*i);
  if (const auto w = value("w")) stage.set_backward_weight_seconds(*w);
  if (const auto o = value("o")) stage.set_overlapped_seconds(*o);
  stage.set_offload_seconds(value("h").value_or(0));
  stage.set_prediction_seconds(value("p").value_or(0));
  stage.set_codec_seconds(value("z").value_or(0));
  if (const auto a = value("a")) stage.set_activation_bytes(*a);
  if (const auto g = value("g")) stage.set_weight_gradient_bytes(*g);
  return stage;
}

}  // namespace

absl::StatusOr<GivenCosts> ParseCosts(absl::string_view text) {
  Problems problems("--costs");
  Values values;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    ParseValue(part, &values, &problems);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  CheckKeys(values, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  size_t num_stages = 1;
  for (const auto& [key, numbers] : values) {
    num_stages = std::max(num_stages, numbers.size());
  }
  GivenCosts costs;
  for (size_t s = 0; s < num_stages; ++s) {
    *costs.add_stages() = StageOf(values, s);
  }
  if (values.count("c") > 0) costs.set_hop_seconds(values["c"][0]);
  CheckCosts(problems, "", costs);
  RETURN_IF_ERROR(problems.ToStatus());
  return costs;
}

absl::StatusOr<GivenCosts> LoadCosts(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  GivenCosts costs;
  RETURN_IF_ERROR(ParseTextProto(path, text, &costs));
  Problems problems(path);
  CheckCosts(problems, "", costs);
  RETURN_IF_ERROR(problems.ToStatus());
  return costs;
}

absl::Status SetHop(absl::string_view flag, absl::string_view text,
                    GivenCosts* costs) {
  absl::string_view factor_text = text;
  const bool is_factor = absl::ConsumeSuffix(&factor_text, "x");
  std::optional<double> seconds =
      is_factor ? ParseNumber(factor_text) : ParseSeconds(text);
  if (is_factor && seconds.has_value()) *seconds *= costs->hop_seconds();
  if (!seconds.has_value() || !(*seconds >= 0 && *seconds <= kMaxSeconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " is \"", EscapeLine(text),
        "\", expected seconds from 0 to 1e9, as in 0.5s, 20ms or 30us, or a "
        "factor of at least 0, as in 0.5x"));
  }
  if (is_factor && costs->hop_seconds() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is \"", EscapeLine(text),
                     "\", but hop_seconds of the costs is 0, expected seconds "
                     "instead of a factor"));
  }
  costs->set_hop_seconds(*seconds);
  return absl::OkStatus();
}

schedules::PassCosts PassCostsOf(const GivenCosts& costs) {
  schedules::PassCosts passes;
  passes.hop = costs.hop_seconds();
  for (const GivenCosts::Stage& stage : costs.stages()) {
    schedules::StagePassCosts& pass = passes.stages.emplace_back();
    pass.forward = stage.forward_seconds();
    if (stage.has_backward_seconds()) {
      pass.backward = stage.backward_seconds();
      pass.backward_input = pass.backward_weight = stage.backward_seconds() / 2;
    } else {
      pass.backward_input = stage.backward_input_seconds();
      pass.backward_weight = stage.backward_weight_seconds();
    }
    if (stage.has_overlapped_seconds()) {
      pass.overlapped = stage.overlapped_seconds();
    }
    pass.offload = stage.offload_seconds();
    if (stage.activation_bytes() > 0) {
      pass.activation = stage.activation_bytes();
      pass.weight_gradient_inputs = stage.has_weight_gradient_bytes()
                                        ? stage.weight_gradient_bytes()
                                        : stage.activation_bytes();
    }
  }
  return passes;
}

}  // namespace weir::scenarios
