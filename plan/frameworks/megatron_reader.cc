// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
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

// Returns true for the beginning of "$((A * 16))", which spaces divide.
bool IsOpen(const std::string& value) {
  return absl::StartsWith(value, "$(") &&
         std::count(value.begin(), value.end(), '(') >
             std::count(value.begin(), value.end(), ')');
}

// What a flag of weir puts in the place of an argument.
struct Replacement {
  std::string flag;  // empty: there is none
  bool is_given = false;
  uint32_t value = 0;  // 0: none is needed
};

Replacement ReplacementOf(const std::string& argument,
                          const MegatronSettings& settings) {
  const Scenario none;
  const Scenario& flags = settings.flags == nullptr ? none : *settings.flags;
  const Parallelism& parallelism = flags.parallelism();
  const std::map<absl::string_view, std::pair<const char*, uint32_t>> sizes = {
      {"global-batch-size", {"--gbs", flags.batch().global_batch_size()}},
      {"micro-batch-size", {"--mbs", flags.batch().microbatch_size()}},
      {"seq-length", {"--seq", flags.batch().sequence_length()}},
      {"tensor-model-parallel-size", {"--tp", parallelism.tensor()}},
      {"pipeline-model-parallel-size", {"--pp", parallelism.pipeline()}},
      {"expert-model-parallel-size", {"--ep", parallelism.expert()}},
      {"expert-tensor-parallel-size", {"--etp", parallelism.expert_tensor()}},
      {"num-distributed-optimizer-instances",
       {"--data-replicate", parallelism.data_replicate()}},
      {"num-virtual-stages-per-pipeline-rank",
       {"--chunks", parallelism.chunks()}},
  };
  if (const auto found = sizes.find(argument); found != sizes.end()) {
    const auto& [flag, value] = found->second;
    return {flag, value > 0, value};
  }
  const auto known = MegatronArgumentTable().find(argument);
  if (known != MegatronArgumentTable().end() && known->second.is_model) {
    return {"--model", !flags.model().empty() || flags.has_transformer(), 0};
  }
  return {};
}

// Splits words into settings. The value of an unknown argument is all words up
// to the next argument. Adds arguments that lack their value to `reported`.
std::vector<Setting> SettingsOf(const std::vector<ShellWord>& words,
                                Problems* problems,
                                std::set<std::string>* reported) {
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
      if (!takes_list && !IsOpen(setting.value)) break;
    }
    if (known && found->second.has_value && !setting.has_value) {
      problems->AddAt(setting.line, absl::StrCat("--", setting.key),
                      "has no value");
      reported->insert(setting.key);
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
  std::string value = setting.value;
  if (absl::StrContains(value, "$")) {
    const Replacement replacement = ReplacementOf(setting.key, *settings);
    if (replacement.is_given && replacement.value == 0) return;
    if (!replacement.is_given) {
      absl::string_view key = shown;
      absl::ConsumePrefix(&key, "--");
      problems->AddAt(
          setting.line, shown,
          absl::StrCat("is ", value, ", which the file does not determine: ",
                       replacement.flag.empty()
                           ? absl::StrCat("--leave-out ", key, " ignores it")
                           : absl::StrCat("give ", replacement.flag)));
      settings->reported.insert(setting.key);
      return;
    }
    value = absl::StrCat(replacement.value);
  }
  const std::string expected = found->second.take(value, settings);
  settings->given.insert(setting.key);
  if (expected.empty()) return;
  settings->reported.insert(setting.key);
  problems->AddAt(setting.line, shown,
                  absl::StrCat("is ", value, ", expected ", expected));
}

void ReportTo(ImportReport* report, MegatronSettings* settings) {
  report->notes = std::move(settings->notes);
  report->missing = std::move(settings->missing);
  report->figures = std::move(settings->figures);
}

absl::StatusOr<ImportedRun> ReadMegatronWords(
    const std::string& label, const std::vector<ShellWord>& words,
    const ImportContext& context) {
  Problems problems(label);
  const OptionTable& table = OptionTable::Of("megatron-lm");
  ImportedRun run;
  run.report = ReportFor(label, table);
  SettingSorter sorter(table, context.left_out, "--", &run.report, &problems);
  MegatronSettings settings;
  settings.runtime = "megatron-lm";
  settings.flags = &context.overrides;
  for (const Setting& setting :
       SettingsOf(words, &problems, &settings.reported)) {
    if (sorter.IsRead(setting)) {
      TakeMegatronSetting(setting, absl::StrCat("--", setting.key), &settings,
                          &problems);
    }
  }
  settings.reported.insert(sorter.misspelled().begin(),
                           sorter.misspelled().end());
  RETURN_IF_ERROR(CombineSettings(context.num_gpus, &settings, &problems));
  RETURN_IF_ERROR(problems.ToStatus());
  run.scenario = std::move(settings.scenario);
  ReportTo(&run.report, &settings);
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
