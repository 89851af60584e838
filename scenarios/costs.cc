// SPDX-License-Identifier: Apache-2.0
#include "scenarios/costs.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
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
#include "base/textproto.h"
#include "scenarios/scenario.h"

namespace weir {
namespace {

constexpr double kMaxSeconds = 1e9;  // 31 years
constexpr double kMaxBytes = 1e15;

void CheckStage(Problems& problems, const std::string& path,
                const TextbookCosts::Stage& stage) {
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
                 "has backward_seconds and a part of it, expected the whole or "
                 "the parts");
  } else if (!stage.has_backward_seconds() && !(input && weight)) {
    problems.Add(path,
                 "has no whole backward, expected backward_seconds or both "
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
                 "is missing, expected it beside weight_gradient_bytes");
  }
  if (stage.forward_seconds() == 0 && stage.backward_seconds() == 0 &&
      stage.backward_input_seconds() == 0 &&
      stage.backward_weight_seconds() == 0) {
    problems.Add(path, "takes no time, expected some");
  }
}

std::optional<double> ParseNumber(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return {};
  return number;
}

// "12.5ms" in seconds; nothing when it is no such number.
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
                const TextbookCosts& costs) {
  if (costs.stages().empty()) {
    problems.Add(absl::StrCat(prefix, "stages"),
                 "is empty, expected one entry, or one per stage");
  }
  for (int i = 0; i < costs.stages_size(); ++i) {
    CheckStage(problems, absl::StrFormat("%sstages[%d]", prefix, i),
               costs.stages(i));
  }
  problems.CheckRange(absl::StrCat(prefix, "hop_seconds"), costs.hop_seconds(),
                      0, kMaxSeconds);
}

absl::StatusOr<TextbookCosts> ParseCosts(absl::string_view text) {
  Problems problems("--costs");
  std::map<std::string, double> values;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::string key(absl::StripAsciiWhitespace(entry.first));
    const absl::string_view text = absl::StripAsciiWhitespace(entry.second);
    const bool is_bytes = key == "a" || key == "g";
    const std::optional<double> seconds =
        is_bytes ? ParseNumber(text) : ParseSeconds(text);
    if (key.size() != 1 || !absl::StrContains("fbiwcohpzag", key)) {
      problems.Add(absl::StrCat("\"", absl::StripAsciiWhitespace(part), "\""),
                   "is unknown, expected f, b, i, w, c, o, h, p or z with "
                   "seconds, as in f=1,b=2 or f=1,i=1,w=1,c=0, or a or g with "
                   "bytes");
    } else if (is_bytes &&
               (!seconds.has_value() || *seconds < 0 || *seconds > kMaxBytes)) {
      problems.Add(key, absl::StrCat("is \"", entry.second,
                                     "\", expected bytes of 0 or more"));
    } else if (!is_bytes && (!seconds.has_value() || *seconds < 0 ||
                             *seconds > kMaxSeconds)) {
      problems.Add(key, absl::StrCat("is \"", entry.second,
                                     "\", expected seconds of 0 or more, as in "
                                     "1, 0.5s, 20ms or 30us"));
    } else if (!values.emplace(key, *seconds).second) {
      problems.Add(key, "is given twice");
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  const bool parts = values.count("i") > 0 || values.count("w") > 0;
  if (values.count("f") == 0) problems.Add("f", "is missing");
  if (values.count("b") > 0 && parts) {
    problems.Add("b", "is given with i or w, expected b or both i and w");
  } else if (values.count("b") == 0 &&
             (values.count("i") == 0 || values.count("w") == 0)) {
    problems.Add("", "the backward is missing, expected b or both i and w");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  TextbookCosts costs;
  TextbookCosts::Stage& stage = *costs.add_stages();
  stage.set_forward_seconds(values["f"]);
  if (parts) {
    stage.set_backward_input_seconds(values["i"]);
    stage.set_backward_weight_seconds(values["w"]);
  } else {
    stage.set_backward_seconds(values["b"]);
  }
  if (values.count("o") > 0) stage.set_overlapped_seconds(values["o"]);
  stage.set_offload_seconds(values["h"]);
  stage.set_prediction_seconds(values["p"]);
  stage.set_codec_seconds(values["z"]);
  if (values.count("a") > 0) stage.set_activation_bytes(values["a"]);
  if (values.count("g") > 0) stage.set_weight_gradient_bytes(values["g"]);
  costs.set_hop_seconds(values["c"]);
  CheckCosts(problems, "", costs);
  RETURN_IF_ERROR(problems.ToStatus());
  return costs;
}

absl::StatusOr<TextbookCosts> LoadCosts(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  TextbookCosts costs;
  RETURN_IF_ERROR(ParseTextProto(path, text, &costs));
  Problems problems(path);
  CheckCosts(problems, "", costs);
  RETURN_IF_ERROR(problems.ToStatus());
  return costs;
}

PassCosts PassCostsOf(const TextbookCosts& costs) {
  PassCosts passes;
  passes.hop = costs.hop_seconds();
  for (const TextbookCosts::Stage& stage : costs.stages()) {
    StagePassCosts& pass = passes.stages.emplace_back();
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

}  // namespace weir
