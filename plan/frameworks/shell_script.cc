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

namespace weir::plan {
namespace {

// Variables that contain each other can double with every line.
constexpr size_t kMaxVariable = 1 << 16, kMaxExpanded = 1 << 22;
constexpr int kMaxShellDepth = 3;  // of scripts in quoted words

bool IsName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

bool IsCondition(absl::string_view word) {
  return word == "if" || word == "case" || word == "for" || word == "while";
}

class ShellReader {
 public:
  ShellReader(const std::string& label,
              const std::map<std::string, std::string>& given)
      : problems_(label) {
    for (const auto& [name, value] : given) values_[name] = {value};
  }

  // Reads only words: operators, variables and assignments are text.
  void OnlyWords() { only_words_ = true; }

  absl::StatusOr<ShellScript> Read(absl::string_view text) {
    ReadText(text, 1, 0);
    if (!problems_.empty()) return problems_.ToStatus();
    for (const auto& [name, words] : values_) {
      script_.variables[name] = absl::StrJoin(words, " ");
    }
    return std::move(script_);
  }

 private:
  // A text that is being read; scripts in quoted words nest.
  struct Source {
    absl::string_view text;
    size_t at = 0;
    int line = 1;

    bool done() const { return at >= text.size(); }
    char peek(size_t ahead = 0) const {
      return at + ahead < text.size() ? text[at + ahead] : '\0';
    }
    char next() {
      if (text[at] == '\n') ++line;
      return text[at++];
    }
    bool Consume(absl::string_view prefix) {
      if (!absl::StartsWith(text.substr(at), prefix)) return false;
      for (size_t i = 0; i < prefix.size(); ++i) next();
      return true;
    }
  };

  // The pieces of a word: an unquoted expansion may make it several words.
  struct Pieces {
    std::vector<std::string> words = {""};
    bool exists = false;  // something was written, perhaps an empty quote
    bool was_quoted = false;

    void Append(absl::string_view text) {
      absl::StrAppend(&words.back(), text);
      exists = true;
    }
  };

  void ReadText(absl::string_view text, int line, int depth) {
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

  bool IsOperator(char c) const {
    return !only_words_ &&
           (c == ';' || c == '|' || c == '&' || c == '(' || c == ')');
  }

  void ReadComment(Source* source) {
    const int line = source->line;
    const size_t end =
        std::min(source->text.find('\n', source->at), source->text.size());
    absl::string_view comment =
        source->text.substr(source->at, end - source->at);
    source->at = end;
    if (!absl::ConsumePrefix(&comment, "#SBATCH")) return;
    comment = comment.substr(0, comment.find(" #"));
    for (absl::string_view word : absl::StrSplit(
             comment, absl::ByAnyChar(" \t\r="), absl::SkipEmpty())) {
      script_.directives.push_back({std::string(word), line});
    }
  }

  // Reads a word that does not begin with a space. In `command`, appends it;
  // an assignment at the beginning of a command sets a variable instead.
  void ReadWord(Source* source, ShellCommand* command,
                std::vector<std::string>* nested) {
    const int line = source->line;
    const size_t start = source->at;
    if (!only_words_ && IsAssignable(*command)) {
      size_t end = start;
      while (end < source->text.size() && IsName(source->text[end])) ++end;
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

  void CheckExpanded(int line) {
    if (num_expanded_ > kMaxExpanded && problems_.empty()) {
      problems_.AddAt(line, "", "expands to more than 4 MiB of arguments");
    }
  }

  static bool IsAssignable(const ShellCommand& command) {
    return command.empty() || command[0].text == "export" ||
           command[0].text == "declare" || command[0].text == "local" ||
           command[0].text == "readonly" || command[0].text == "env" ||
           command[0].text == "then" || command[0].text == "else" ||
           command[0].text == "do";
  }

  void Assign(Source* source, const std::string& name, bool adds) {
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
        problems_.AddAt(line, name, "is an array without ')'");
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

  void ReadPieces(Source* source, Pieces* pieces) {
    while (!source->done() && problems_.empty()) {
      const char c = source->peek();
      if (absl::ascii_isspace(c) || IsOperator(c)) return;
      if (c == '\'') {
        const int line = source->line;
        source->next();
        const size_t start = source->at;
        while (!source->done() && source->peek() != '\'') source->next();
        pieces->Append(source->text.substr(start, source->at - start));
        pieces->was_quoted = true;
        CloseQuote(source, '\'', line);
      } else if (c == '"') {
        ReadDoubleQuotes(source, pieces);
      } else if (c == '\\') {
        source->next();
        if (source->done()) return;
        if (source->peek() == '\n') {
          source->next();
          return;  // continued line
        }
        pieces->Append(std::string(1, source->next()));
      } else if (c == '$' && !only_words_) {
        ReadExpansion(source, /*quoted=*/false, pieces);
      } else if (c == '`' && !only_words_) {
        ReadUntil(source, '`', pieces);
      } else {
        pieces->Append(std::string(1, source->next()));
      }
    }
  }

  void CloseQuote(Source* source, char quote, int line) {
    if (source->done()) {
      problems_.AddAt(line, "",
                      absl::StrCat("has a quote ", std::string(1, quote),
                                   " that does not end"));
      return;
    }
    source->next();
  }

  void ReadDoubleQuotes(Source* source, Pieces* pieces) {
    const int line = source->line;
    source->next();
    const size_t start = source->at;
    pieces->exists = pieces->was_quoted = true;
    while (!source->done() && source->peek() != '"' && problems_.empty()) {
      if (source->peek() == '\\') {
        source->next();
        if (source->done()) break;
        const char c = source->next();
        if (c == '\n') continue;
        if (c != '"' && c != '\\' && c != '$' && c != '`') pieces->Append("\\");
        pieces->Append(std::string(1, c));
      } else if (source->peek() == '$' && !only_words_) {
        // "${NAME[@]}" alone in quotes is one word for each element; inside a
        // longer text, such as a script in quotes, its elements are joined.
        const size_t close = source->text.find('}', source->at);
        alone_ = source->at == start && close != absl::string_view::npos &&
                 source->text.substr(close + 1, 1) == "\"";
        ReadExpansion(source, /*quoted=*/true, pieces);
      } else {
        pieces->Append(std::string(1, source->next()));
      }
    }
    CloseQuote(source, '"', line);
  }

  // Keeps the text up to `end`, which the shell would evaluate.
  void ReadUntil(Source* source, char end, Pieces* pieces) {
    const size_t start = source->at;
    source->next();
    while (!source->done() && source->peek() != end) source->next();
    if (!source->done()) source->next();
    pieces->Append(source->text.substr(start, source->at - start));
  }

  void ReadExpansion(Source* source, bool quoted, Pieces* pieces) {
    const size_t start = source->at;
    source->next();
    if (source->peek() == '(') {
      int depth = 0;
      do {
        const char c = source->next();
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      } while (depth > 0 && !source->done());
      pieces->Append(source->text.substr(start, source->at - start));
      return;
    }
    const bool braces = source->Consume("{");
    std::string name, suffix;
    while (IsName(source->peek())) name += source->next();
    if (braces) {
      while (!source->done() && source->peek() != '}') suffix += source->next();
      if (!source->done()) source->next();
    }
    const auto found = values_.find(name);
    absl::string_view rest = suffix;
    const bool all =
        absl::ConsumePrefix(&rest, "[@]") || absl::ConsumePrefix(&rest, "[*]");
    const bool otherwise = absl::ConsumePrefix(&rest, ":-") ||
                           absl::ConsumePrefix(&rest, "-") ||
                           absl::ConsumePrefix(&rest, ":=");
    if (found != values_.end() && (rest.empty() || otherwise)) {
      const std::vector<std::string> first = {
          found->second.empty() ? "" : found->second[0]};
      Insert(all ? found->second : first, quoted, pieces);
    } else if (found == values_.end() && otherwise && !name.empty()) {
      Insert({std::string(rest)}, quoted, pieces);
    } else {
      pieces->Append(source->text.substr(start, source->at - start));
    }
  }

  void Insert(const std::vector<std::string>& words, bool quoted,
              Pieces* pieces) {
    std::vector<std::string> parts;
    if (quoted && !alone_) {
      num_expanded_ += absl::StrJoin(words, " ").size();
      CheckExpanded(0);
      pieces->Append(absl::StrJoin(words, " "));
      return;
    }
    for (const std::string& word : words) {
      num_expanded_ += word.size() + 1;
      if (quoted) {
        parts.push_back(word);
        continue;
      }
      for (absl::string_view part : absl::StrSplit(
               word, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
        parts.emplace_back(part);
      }
    }
    CheckExpanded(0);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) pieces->words.emplace_back();
      pieces->Append(parts[i]);
    }
  }

  void FinishCommand(ShellCommand* command,
                     const std::vector<std::string>& nested, int depth) {
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

  Problems problems_;
  std::map<std::string, std::vector<std::string>> values_;
  ShellScript script_;
  size_t num_expanded_ = 0;
  bool only_words_ = false;
  bool alone_ = false;  // the expansion is the whole text in its quotes
};

}  // namespace

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
