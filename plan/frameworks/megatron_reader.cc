// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/megatron_argument_table.h"

namespace weir::plan {
namespace {

bool IsArgument(const ShellWord& word) {
  return absl::StartsWith(word.text, "--");
}

// Splits words into settings. The value of an unknown argument is all words up
// to the next argument.
std::vector<Setting> SettingsOf(const std::vector<ShellWord>& words,
                                Problems* problems) {
  std::vector<Setting> settings;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsArgument(words[i])) continue;
    absl::string_view name = words[i].text;
    absl::ConsumePrefix(&name, "--");
    const size_t equals = name.find('=');
    const bool attached = equals != absl::string_view::npos;
    Setting setting{std::string(name.substr(0, equals)), "", words[i].line,
                    attached};
    if (attached) setting.value = std::string(name.substr(equals + 1));
    const auto found = MegatronArgumentTable().find(setting.key);
    const bool known = found != MegatronArgumentTable().end();
    const bool takes_list = !known || found->second.is_list;
    while (!attached && (!known || found->second.has_value) &&
           i + 1 < words.size() && !IsArgument(words[i + 1])) {
      absl::StrAppend(&setting.value, setting.has_value ? " " : "",
                      words[++i].text);
      setting.has_value = true;
      if (!takes_list) break;
    }
    if (known && found->second.has_value && !setting.has_value) {
      problems->AddAt(setting.line, absl::StrCat("--", setting.key),
                      "has no value");
      continue;
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace

void TakeMegatronSetting(const Setting& setting, absl::string_view shown,
                         MegatronSettings* settings, Problems* problems) {
  const auto found = MegatronArgumentTable().find(setting.key);
  if (found == MegatronArgumentTable().end()) return;
  if (absl::StrContains(setting.value, "$")) {
    problems->AddAt(setting.line, shown,
                    absl::StrCat("is ", setting.value,
                                 ", which the file does not determine"));
    return;
  }
  const std::string expected = found->second.take(setting.value, settings);
  if (expected.empty()) return;
  problems->AddAt(setting.line, shown,
                  absl::StrCat("is ", setting.value, ", expected ", expected));
}

absl::StatusOr<ImportedRun> ReadMegatronWords(
    const std::string& label, const std::vector<ShellWord>& words,
    const ImportContext& context) {
  Problems problems(label);
  const OptionTable& table = OptionTable::Of("megatron-lm");
  ImportedRun run;
  run.report.file = label;
  run.report.framework =
      absl::StrCat(table.table().framework(), " ", table.table().version());
  SettingSorter sorter(table, context.left_out, "--", &run.report, &problems);
  MegatronSettings settings;
  settings.runtime = "megatron-lm";
  for (const Setting& setting : SettingsOf(words, &problems)) {
    if (sorter.IsRead(setting)) {
      TakeMegatronSetting(setting, absl::StrCat("--", setting.key), &settings,
                          &problems);
    }
  }
  RETURN_IF_ERROR(CombineSettings(context.num_gpus, &settings, &problems));
  RETURN_IF_ERROR(problems.ToStatus());
  run.scenario = std::move(settings.scenario);
  run.report.notes = std::move(settings.notes);
  return run;
}

absl::StatusOr<ImportedRun> ReadMegatronArguments(
    const std::string& label, absl::string_view text,
    const ImportContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ShellWord> words,
                   ReadArgumentWords(label, text));
  return ReadMegatronWords(label, words, context);
}

}  // namespace weir::plan
