// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/shell_script.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "plan/frameworks/shell_reader.h"

namespace weir::plan {
namespace {

// Variables that contain each other can double with every line.
constexpr size_t kMaxVariable = 1 << 16, kMaxExpanded = 1 << 22;
constexpr int kMaxShellDepth = 3;  // of scripts in quoted words

bool IsCondition(absl::string_view word) {
  return word == "if" || word == "case" || word == "for" || word == "while";
}

}  // namespace

absl::StatusOr<ShellScript> ShellReader::Read(absl::string_view text) {
  ReadText(text, 1, 0);
  if (!problems_.empty()) return problems_.ToStatus();
  for (const auto& [name, words] : values_) {
    script_.variables[name] = absl::StrJoin(words, " ");
  }
  return std::move(script_);
}

void ShellReader::ReadText(absl::string_view text, int line, int depth) {
  Source source{text, 0, line};
  ShellCommand command;
  std::vector<std::string> nested;
  const auto finish = [&] {
    FinishCommand(&command, nested, depth);
    nested.clear();
  };
  while (!source.done() && problems_.empty()) {
    const char c = source.peek();
    if (c == '\\' && source.peek(1) == '\n') {
      source.Consume("\\\n");
    } else if (c == '\\' && source.peek(1) == '\r') {
      source.Consume("\\\r");
    } else if (c == '#') {
      ReadComment(&source);
    } else if (c == '\n' || (IsOperator(c) && c != '(' && c != ')')) {
      source.next();
      finish();
    } else if (absl::ascii_isspace(c) || IsOperator(c)) {
      source.next();
    } else {
      ReadWord(&source, &command, &nested);
    }
  }
  finish();
}

bool ShellReader::IsOperator(char c) const {
  return !only_words_ &&
         (c == ';' || c == '|' || c == '&' || c == '(' || c == ')');
}

void ShellReader::ReadComment(Source* source) {
  const int line = source->line;
  const size_t end =
      std::min(source->text.find('\n', source->at), source->text.size());
  absl::string_view comment = source->text.substr(source->at, end - source->at);
  source->at = end;
  if (!absl::ConsumePrefix(&comment, "#SBATCH")) return;
  comment = comment.substr(0, comment.find(" #"));
  for (absl::string_view word :
       absl::StrSplit(comment, absl::ByAnyChar(" \t\r="), absl::SkipEmpty())) {
    script_.directives.push_back({std::string(word), line});
  }
}

void ShellReader::ReadWord(Source* source, ShellCommand* command,
                           std::vector<std::string>* nested) {
  const int line = source->line;
  const size_t start = source->at;
  if (!only_words_ && IsAssignable(*command)) {
    size_t end = start;
    while (end < source->text.size() && IsNameCharacter(source->text[end]))
      ++end;
    absl::string_view rest = source->text.substr(end);
    const bool adds = absl::ConsumePrefix(&rest, "+=");
    if (end > start && (adds || absl::ConsumePrefix(&rest, "="))) {
      const std::string name(source->text.substr(start, end - start));
      source->at = end + (adds ? 2 : 1);
      Assign(source, name, adds);
      return;
    }
  }
  Pieces pieces;
  ReadPieces(source, &pieces);
  if (!pieces.exists) return;
  for (std::string& text : pieces.words) {
    num_expanded_ += text.size();
    if (!only_words_ && pieces.was_quoted && absl::StrContains(text, ' ') &&
        absl::StrContains(text, " --")) {
      nested->push_back(text);
    }
    command->push_back({std::move(text), line});
  }
  CheckExpanded(line);
}

void ShellReader::CheckExpanded(int line) {
  if (num_expanded_ > kMaxExpanded && problems_.empty()) {
    problems_.AddAt(line, "", "expands to more than 4 MiB of arguments");
  }
}

bool ShellReader::IsAssignable(const ShellCommand& command) {
  return command.empty() || command[0].text == "export" ||
         command[0].text == "declare" || command[0].text == "local" ||
         command[0].text == "readonly" || command[0].text == "env" ||
         command[0].text == "then" || command[0].text == "else" ||
         command[0].text == "do";
}

void ShellReader::Assign(Source* source, const std::string& name, bool adds) {
  std::vector<std::string> words;
  const int line = source->line;
  if (source->Consume("(")) {
    while (!source->done() && problems_.empty()) {
      const char c = source->peek();
      if (c == ')') break;
      if (c == '\\' && source->peek(1) == '\n') {
        source->Consume("\\\n");
      } else if (c == '#') {
        ReadComment(source);
      } else if (absl::ascii_isspace(c)) {
        source->next();
      } else {
        Pieces pieces;
        const size_t before = source->at;
        ReadPieces(source, &pieces);
        if (source->at == before) source->next();
        if (pieces.exists) {
          words.insert(words.end(), pieces.words.begin(), pieces.words.end());
        }
      }
    }
    if (!source->Consume(")")) {
      problems_.AddAt(line, name,
                      "is an array without ')', expected ')' before the end "
                      "of the file");
      return;
    }
    if (adds) {
      const std::vector<std::string>& old = values_[name];
      words.insert(words.begin(), old.begin(), old.end());
    }
  } else {
    Pieces pieces;
    ReadPieces(source, &pieces);
    std::string value = absl::StrJoin(pieces.words, " ");
    if (adds && !values_[name].empty()) {
      value = absl::StrCat(values_[name][0], value);
    }
    words = {value};
  }
  size_t size = 0;
  for (const std::string& word : words) size += word.size() + 1;
  if (size > kMaxVariable) {
    problems_.AddAt(line, name, "has more than 64 KiB");
    return;
  }
  values_[name] = std::move(words);
}

void ShellReader::FinishCommand(ShellCommand* command,
                                const std::vector<std::string>& nested,
                                int depth) {
  if (command->empty()) return;
  const int line = command->front().line;
  script_.has_conditions |= IsCondition(command->front().text);
  script_.commands.push_back(std::move(*command));
  command->clear();
  if (depth >= kMaxShellDepth) return;
  for (const std::string& text : nested) {
    num_expanded_ += text.size();
    CheckExpanded(line);
    if (problems_.empty()) ReadText(text, line, depth + 1);
  }
}

absl::StatusOr<ShellScript> ReadShellScript(
    const std::string& label, absl::string_view text,
    const std::map<std::string, std::string>& given) {
  return ShellReader(label, given).Read(text);
}

absl::StatusOr<std::vector<ShellWord>> ReadArgumentWords(
    const std::string& label, absl::string_view text) {
  ShellReader reader(label, {});
  reader.OnlyWords();
  ASSIGN_OR_RETURN(ShellScript script, reader.Read(text));
  std::vector<ShellWord> words;
  for (ShellCommand& command : script.commands) {
    words.insert(words.end(), std::make_move_iterator(command.begin()),
                 std::make_move_iterator(command.end()));
  }
  return words;
}

}  // namespace weir::plan
