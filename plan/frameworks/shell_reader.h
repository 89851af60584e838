// SPDX-License-Identifier: Apache-2.0
// The reader behind shell_script.h. shell_script.cc reads commands and
// assignments, shell_expansion.cc quotes and expansions of variables.
#ifndef WEIR_PLAN_FRAMEWORKS_SHELL_READER_H_
#define WEIR_PLAN_FRAMEWORKS_SHELL_READER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "plan/frameworks/shell_script.h"

namespace weir::plan {

// Returns true for a character of a variable's name.
inline bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_';
}

// Reads one script; see ReadShellScript and ReadArgumentWords.
class ShellReader {
 public:
  ShellReader(const std::string& label,
              const std::map<std::string, std::string>& given)
      : problems_(label) {
    for (const auto& [name, value] : given) values_[name] = {value};
  }

  // Reads only words: operators, variables and assignments are text.
  void OnlyWords() { only_words_ = true; }

  // Returns what ReadShellScript does. Call once.
  absl::StatusOr<ShellScript> Read(absl::string_view text);

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

  // Reads the commands of a text that starts at `line`, and of the quoted words
  // in it that are scripts, which are one level deeper.
  void ReadText(absl::string_view text, int line, int depth);
  bool IsOperator(char c) const;
  // Skips a comment. Keeps the words of "#SBATCH".
  void ReadComment(Source* source);
  // Reads a word that does not begin with a space. In `command`, appends it;
  // an assignment at the beginning of a command sets a variable instead.
  void ReadWord(Source* source, ShellCommand* command,
                std::vector<std::string>* nested);
  // Adds a problem if the expansions so far are too long.
  void CheckExpanded(int line);
  // Returns true if an assignment may follow these words.
  static bool IsAssignable(const ShellCommand& command);
  // Sets a variable, or appends to it, with the value that follows.
  void Assign(Source* source, const std::string& name, bool adds);
  // Adds a command, and reads the scripts in its quoted words.
  void FinishCommand(ShellCommand* command,
                     const std::vector<std::string>& nested, int depth);

  // Reads up to a space or an operator outside quotes.
  void ReadPieces(Source* source, Pieces* pieces);
  // Skips the end of a quote. Adds a problem if the text ends before it.
  void CloseQuote(Source* source, char quote, int line);
  void ReadDoubleQuotes(Source* source, Pieces* pieces);
  // Keeps the text up to `end`, which the shell would evaluate.
  void ReadUntil(Source* source, char end, Pieces* pieces);
  // Replaces a variable by its value, and keeps the text of other expansions.
  void ReadExpansion(Source* source, bool quoted, Pieces* pieces);
  // Appends the words of a variable, which are split at spaces unless quoted.
  void Insert(const std::vector<std::string>& words, bool quoted,
              Pieces* pieces);

  Problems problems_;
  std::map<std::string, std::vector<std::string>> values_;
  ShellScript script_;
  size_t num_expanded_ = 0;
  bool only_words_ = false;
  bool alone_ = false;  // the expansion is the whole text in its quotes
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_SHELL_READER_H_
