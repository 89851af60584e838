// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_reader.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"
#include "plan/frameworks/megatron_unsupported.h"

namespace weir::plan {
namespace {

std::vector<std::string> WordsOf(absl::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    for (absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" \t\r\\"), absl::SkipEmpty())) {
      while (
          absl::ConsumePrefix(&word, "\"") || absl::ConsumePrefix(&word, "'") ||
          absl::ConsumeSuffix(&word, "\"") || absl::ConsumeSuffix(&word, "'")) {
      }
      if (!word.empty()) words.emplace_back(word);
    }
  }
  return words;
}

}  // namespace

absl::StatusOr<MegatronRun> ReadMegatronArguments(const std::string& label,
                                                  absl::string_view text) {
  Problems problems(label);
  MegatronSettings settings;
  MegatronRun run;
  std::set<std::string> ignored;
  const std::vector<std::string> words = WordsOf(text);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    absl::string_view name = parts.first;
    const bool is_argument = absl::ConsumePrefix(&name, "--");
    const auto found = MegatronArgumentTable().find(std::string(name));
    if (!is_argument || found == MegatronArgumentTable().end()) {
      if (is_argument && IsUnsupportedMegatronArgument(name)) {
        problems.Add(parts.first,
                     "is not supported, because its effect is not simulated: "
                     "remove it to predict the run without it");
      } else if (is_argument && ignored.insert(parts.first).second) {
        run.ignored.push_back(parts.first);
      }
      continue;  // ignored, or the value of an ignored argument
    }
    std::string value = parts.second;
    const bool separate = words[i].size() == parts.first.size();
    if (found->second.has_value && separate) {
      if (i + 1 == words.size() || absl::StartsWith(words[i + 1], "--")) {
        problems.Add(parts.first, "has no value");
        continue;
      }
      value = words[++i];
      while (found->second.is_list && i + 1 < words.size() &&
             !absl::StartsWith(words[i + 1], "--")) {
        absl::StrAppend(&value, " ", words[++i]);
      }
    }
    const std::string expected = found->second.take(value, &settings);
    if (!expected.empty()) {
      problems.Add(parts.first,
                   absl::StrCat("is ", value, ", expected ", expected));
    }
  }
  CombineSettings(&settings, &problems);
  if (!problems.empty()) return problems.ToStatus();
  run.scenario = std::move(settings.scenario);
  return run;
}

}  // namespace weir::plan
