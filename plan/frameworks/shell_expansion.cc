// SPDX-License-Identifier: Apache-2.0
// Quotes and expansions of variables in shell scripts.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "plan/frameworks/shell_reader.h"

namespace weir::plan {

void ShellReader::ReadPieces(Source* source, Pieces* pieces) {
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

void ShellReader::CloseQuote(Source* source, char quote, int line) {
  if (source->done()) {
    problems_.AddAt(line, "",
                    absl::StrCat("has a quote ", std::string(1, quote),
                                 " that does not end"));
    return;
  }
  source->next();
}

void ShellReader::ReadDoubleQuotes(Source* source, Pieces* pieces) {
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

void ShellReader::ReadUntil(Source* source, char end, Pieces* pieces) {
  const size_t start = source->at;
  source->next();
  while (!source->done() && source->peek() != end) source->next();
  if (!source->done()) source->next();
  pieces->Append(source->text.substr(start, source->at - start));
}

void ShellReader::ReadExpansion(Source* source, bool quoted, Pieces* pieces) {
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
  while (IsNameCharacter(source->peek())) name += source->next();
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

void ShellReader::Insert(const std::vector<std::string>& words, bool quoted,
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
    for (absl::string_view part :
         absl::StrSplit(word, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
      parts.emplace_back(part);
    }
  }
  CheckExpanded(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) pieces->words.emplace_back();
    pieces->Append(parts[i]);
  }
}

}  // namespace weir::plan
