// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/completion.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"
#include "plan/frameworks/exported_run.h"
#include "plan/papers/registry.h"
#include "schedules/registry.h"

namespace weir::cli {
namespace {

using Words = std::vector<std::string>;

// Commands that print the names that an option or a positional argument takes.
const std::map<std::string, std::string>& ListingCommands() {
  static const auto& commands = *new std::map<std::string, std::string>{
      {"--cluster", "cluster list"},   {"--model", "model list"},
      {"--profile", "profile list"},   {"--scenario", "scenario list"},
      {"--train-model", "model list"}, {"SCENARIO", "scenario list"},
      {"MODEL", "model list"},         {"CLUSTER", "cluster list"},
      {"PROFILE", "profile list"},     {"OTHER", "profile list"},
      {"INPUT", "scenario list"},
  };
  return commands;
}

// Returns names that are known when the script is written.
std::string FixedWords(const std::string& option) {
  static const auto& folders = *new std::map<std::string, std::string>{
      {"--energy", "plan/energy/presets"},
      {"--precision", "models/recipes"},
      {"--reliability", "plan/goodput/presets"},
      {"--runtime", "calibrate/profile/runtimes"},
      {"--defaults", "scenarios/defaults"},
  };
  if (const auto folder = folders.find(option); folder != folders.end()) {
    return absl::StrJoin(ListAssets(folder->second), " ");
  }
  if (option == "--algorithm") {
    std::string names = "all";
    for (const plan::PaperPlanner& planner : plan::PaperPlanners()) {
      absl::StrAppend(&names, " ", planner.name);
    }
    return names;
  }
  if (option == "--emit") return absl::StrJoin(plan::FrameworkNames(), " ");
  // The input of "weir draw" is a schedule or a scenario.
  if (option != "--schedule" && option != "SCHEDULE" && option != "INPUT") {
    return "";
  }
  return absl::StrJoin(
      schedules::AllScheduleKinds(), " ",
      [](std::string* out, const schedules::ScheduleKind& kind) {
        absl::StrAppend(out, kind.name);
      });
}

// What may be a value of an option: words, or the output of a command of weir.
struct OptionValues {
  std::string words = {};
  std::string listing = {};
  bool are_all = false;  // no other value, such as a file, is accepted
};

OptionValues ValuesOf(const CLI::Option& option) {
  OptionValues values = {.words = absl::StrJoin(ChoicesOf(option), " ")};
  for (const std::string& name : NamesOf(option)) {
    const auto listing = ListingCommands().find(name);
    if (listing != ListingCommands().end()) values.listing = listing->second;
    if (values.words.empty()) values.words = FixedWords(name);
  }
  return values;
}

// Returns the values of the first positional argument that has some.
OptionValues PositionalValues(const CLI::App& command) {
  for (const CLI::Option* option : PositionalsOf(command)) {
    const Words choices = ChoicesOf(*option);
    if (!choices.empty())
      return {.words = absl::StrJoin(choices, " "), .are_all = true};
    const std::string name = option->get_name(/*positional=*/true);
    const std::string words = FixedWords(name);
    const auto listing = ListingCommands().find(name);
    if (listing != ListingCommands().end()) {
      return {.words = words, .listing = listing->second};
    }
    if (!words.empty()) return {.words = words};
  }
  return {};
}

// Returns the words that may follow each prefix of a command: "" -> simulate,
// schedule, ...; "schedule" -> show, lint, ...
std::map<std::string, Words> NextWords(const CLI::App& program) {
  std::map<std::string, Words> next;
  for (const CLI::App* command : AllCommands(program)) {
    const Words words = absl::StrSplit(NameInProgram(*command), ' ');
    std::string prefix;
    for (const std::string& word : words) {
      Words& known = next[prefix];
      if (std::find(known.begin(), known.end(), word) == known.end()) {
        known.push_back(word);
      }
      absl::StrAppend(&prefix, prefix.empty() ? "" : " ", word);
    }
  }
  return next;
}

// Returns options whose values have the same completion as lines of a "case".
std::string BashValues(const CLI::App& program) {
  std::map<std::string, std::set<std::string>> options_by_words;
  for (const CLI::App* command : AllCommands(program)) {
    for (const CLI::Option* option : OptionsOf(*command)) {
      if (!TakesValue(*option)) continue;
      const OptionValues values = ValuesOf(*option);
      const std::string words =
          values.listing.empty()
              ? values.words
              : absl::StrCat("$(weir ", values.listing, " 2>/dev/null)");
      for (const std::string& name : NamesOf(*option)) {
        options_by_words[words].insert(
            absl::StrCat("'", NameInProgram(*command), " ", name, "'"));
      }
    }
  }
  std::string text;
  for (const auto& [words, options] : options_by_words) {
    if (words.empty()) continue;
    absl::StrAppend(&text, "    ", absl::StrJoin(options, "|"),
                    ")\n      COMPREPLY=($(compgen -P \"$head\" -W \"", words,
                    "\" -- \"$word\"))\n      return\n      ;;\n");
  }
  const auto files = options_by_words.find("");
  if (files != options_by_words.end()) {
    absl::StrAppend(&text, "    ", absl::StrJoin(files->second, "|"),
                    ")\n      return\n      ;;\n");
  }
  return text;
}

std::string BashOptions(const CLI::App& program) {
  std::string text = "    '') options='--help --version' ;;\n";
  for (const CLI::App* command : AllCommands(program)) {
    Words names = {"--help"};
    for (const CLI::Option* option : OptionsOf(*command)) {
      const Words more = NamesOf(*option);
      names.insert(names.end(), more.begin(), more.end());
    }
    absl::StrAppend(&text, "    '", NameInProgram(*command), "') options='",
                    absl::StrJoin(names, " "), "' ;;\n");
  }
  return text;
}

std::string BashPositionals(const CLI::App& program) {
  std::string text;
  for (const CLI::App* command : AllCommands(program)) {
    const OptionValues values = PositionalValues(*command);
    if (!values.listing.empty()) {
      absl::StrAppend(&text, "    '", NameInProgram(*command), "') words=\"",
                      values.words, " $(weir ", values.listing,
                      " 2>/dev/null)\" ;;\n");
    } else if (!values.words.empty()) {
      absl::StrAppend(&text, "    '", NameInProgram(*command), "') words='",
                      values.words, "' ;;\n");
    }
  }
  return text;
}

std::string FunctionName(const CLI::App& program) {
  return absl::StrCat("_",
                      absl::StrReplaceAll(program.get_name(), {{"-", "_"}}));
}

bool TakesList(const CLI::Option& option) {
  return absl::EndsWith(option.get_type_name(), ",...");
}

std::string FishQuote(absl::string_view text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string next;
  for (const auto& [prefix, words] : NextWords(program)) {
    absl::StrAppend(&next, "    '", prefix, "') words='",
                    absl::StrJoin(words, " "), "' ;;\n");
  }
  return absl::StrCat(
      "# bash completion for ", name, "\n", FunctionName(program), "() {\n",
      R"(  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command='' words='' options='--help' head='' i
  # The words of the command come first.
  for ((i = 1; i < COMP_CWORD; i++)); do
    case $command in
)",
      next,
      R"(    *) break ;;
    esac
    case " $words " in
    *" ${COMP_WORDS[i]} "*) command=${command:+$command }${COMP_WORDS[i]} ;;
    *) break ;;
    esac
    words=''
  done
  # "--option=value" is one word or three.
  if [[ $word == --*=* ]]; then
    before=${word%%=*} head=${word%%=*}= word=${word#*=}
  elif [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  # The last of several values.
  if [[ $word == *,* ]]; then
    head+=${word%,*}, word=${word##*,}
  fi
  case "$command $before" in
)",
      BashValues(program), R"(  esac
  word=$head$word
  words=''
  case $command in
)",
      BashOptions(program), R"(  esac
  case $word in
  -*)
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
    ;;
  esac
  case $command in
)",
      next, R"(  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  case $command in
)",
      BashPositionals(program), R"(  esac
  # Nothing: "-o default" completes files.
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F )",
      FunctionName(program), " ", name, "\n");
}

std::string ZshCompletion(const CLI::App& program) {
  const std::string function = FunctionName(program);
  return absl::StrCat("#compdef ", program.get_name(),
                      "\nautoload -U +X bashcompinit && bashcompinit\n",
                      BashCompletion(program),
                      "# zsh loads this file when it first completes: answers "
                      "that request, too.\n[[ ${funcstack[1]} != _",
                      program.get_name(),
                      " ]] || _bash_complete -o default -F ", function, "\n");
}

std::string FishCompletion(const CLI::App& program) {
  const std::string& name = program.get_name();
  const std::string start = absl::StrCat("complete -c ", name, " -n ");
  const std::string function = absl::StrCat("_", FunctionName(program));
  std::string text = absl::StrCat(
      "# fish completion for ", name, "\n",
      absl::StrReplaceAll(R"(# Whether the words before the cursor are these.
function FUNCTION_at
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv[1]"
end
# Whether they begin with these.
function FUNCTION_is
    set -l words (commandline -opc)
    string match -q -- "$argv[1] *" "$words[2..] "
end
)",
                          {{"FUNCTION", function}}));
  absl::StrAppend(&text, start, FishQuote(absl::StrCat(function, "_at ''")),
                  " -l help -d 'Shows the commands'\n", start,
                  FishQuote(absl::StrCat(function, "_at ''")),
                  " -l version -d 'Shows the version'\n");
  for (const auto& [prefix, words] : NextWords(program)) {
    const std::string condition =
        absl::StrCat(function, "_at ", FishQuote(prefix));
    absl::StrAppend(&text, start, FishQuote(condition), " -f -a ",
                    FishQuote(absl::StrJoin(words, " ")), "\n");
  }
  for (const CLI::App* command : AllCommands(program)) {
    const std::string condition = FishQuote(
        absl::StrCat(function, "_is ", FishQuote(NameInProgram(*command))));
    const OptionValues positional = PositionalValues(*command);
    if (!positional.listing.empty()) {
      absl::StrAppend(&text, start, condition, " -a '", positional.words,
                      " (weir ", positional.listing, " 2>/dev/null)'\n");
    } else if (!positional.words.empty()) {
      absl::StrAppend(&text, start, condition,
                      positional.are_all ? " -f -a " : " -a ",
                      FishQuote(positional.words), "\n");
    }
    for (const CLI::Option* option : OptionsOf(*command)) {
      absl::StrAppend(&text, start, condition);
      for (const std::string& short_name : option->get_snames()) {
        absl::StrAppend(&text, " -s ", short_name);
      }
      for (const std::string& long_name : option->get_lnames()) {
        absl::StrAppend(&text, " -l ", long_name);
      }
      if (TakesValue(*option)) absl::StrAppend(&text, " -r");
      const OptionValues values = ValuesOf(*option);
      if (!values.listing.empty()) {
        absl::StrAppend(&text, " -a '(weir ", values.listing, " 2>/dev/null)'");
      } else if (!values.words.empty()) {
        absl::StrAppend(
            &text, " -f -a ",
            FishQuote(TakesList(*option)
                          ? absl::StrCat("(__fish_complete_list , 'string "
                                         "split \" \" \"",
                                         values.words, "\"')")
                          : values.words));
      }
      absl::StrAppend(&text, " -d ", FishQuote(option->get_description()),
                      "\n");
    }
  }
  return text;
}

}  // namespace weir::cli
