// SPDX-License-Identifier: Apache-2.0
// The commands that documents show are valid: their options exist and, in
// blocks, have valid values. Commands with "..." are not checked, and files
// that they name need not exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "cli/weir/weir_app.h"
#include "cli/weir_calibrate/calibrate_app.h"

namespace weir::cli::documents_test {

using Words = std::vector<std::string>;

// Returns the code spans of a line of text.
Words CodeSpans(absl::string_view line) {
  Words spans;
  const Words parts = absl::StrSplit(line, '`');
  for (size_t i = 1; i + 1 < parts.size(); i += 2) spans.push_back(parts[i]);
  return spans;
}

struct Code {
  std::string text;
  // Spans may name a command without everything it needs.
  bool is_span = false;
};

// Returns the lines of fenced blocks, with continued lines joined, and the code
// spans of the text.
std::vector<Code> CodeOf(const std::string& text) {
  std::vector<Code> lines;
  bool inside = false, continued = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "```")) {
      inside = !inside;
      continued = false;
      continue;
    }
    if (!inside) {
      for (std::string& span : CodeSpans(line)) {
        lines.push_back({std::move(span), /*is_span=*/true});
      }
      continue;
    }
    const bool more = absl::ConsumeSuffix(&line, "\\");
    if (continued) {
      absl::StrAppend(&lines.back().text, " ", line);
    } else {
      lines.push_back({std::string(line)});
    }
    continued = more;
  }
  return lines;
}

// Returns the words of a command as a shell splits them, up to a comment, pipe
// or redirection.
Words ShellWords(absl::string_view line) {
  Words words;
  std::string word;
  char quote = 0;
  bool begun = false;
  const auto end_word = [&] {
    if (begun) words.push_back(word);
    word.clear();
    begun = false;
  };
  for (char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      begun = true;
    } else if (c == ' ') {
      end_word();
    } else if (absl::StrContains("|><;&", absl::string_view(&c, 1)) ||
               (c == '#' && !begun)) {
      if (c == '>' && word == "2") begun = false;  // its descriptor
      break;
    } else {
      word += c;
      begun = true;
    }
  }
  end_word();
  return words;
}

absl::Status Parse(Words words) {
  if (words[0] == "./run") words[0] = "weir";
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  const int count = static_cast<int>(arguments.size());
  if (words[0] == "weir") {
    CommandLine line;
    return ParseWeirArguments(count, arguments.data(), MakeWeirApp, &line)
        .status();
  }
  CalibrateLine line;
  return ParseCalibrateArguments(count, arguments.data(), &line).status();
}

Words Documents() {
  Words files = {WEIR_SOURCE_DIR "/README.md"};
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  return files;
}

TEST(DocumentsTest, CommandsAreValid) {
  int num_commands = 0;
  for (const std::string& file : Documents()) {
    const auto text = ReadFile(file);
    ASSERT_TRUE(text.ok()) << text.status();
    for (const Code& code : CodeOf(*text)) {
      absl::string_view line = code.text;
      // document_runs_test.cc compares its output, which may be an error.
      if (absl::ConsumePrefix(&line, "$ ")) continue;
      const Words words = ShellWords(line);
      if (words.size() < 2 || words[1] == "ARGS" ||
          absl::StrContains(line, "...") ||
          (words[0] != "weir" && words[0] != "./run" &&
           words[0] != "weir-calibrate")) {
        continue;
      }
      const absl::Status status = Parse(words);
      const bool is_valid =
          status.ok() ||
          (code.is_span && !absl::StrContains(status.message(), "unknown"));
      EXPECT_TRUE(is_valid) << file << ": " << line << "\n" << status;
      ++num_commands;
    }
  }
  EXPECT_GT(num_commands, 100);
}

TEST(DocumentsTest, WordsAreThoseOfAShell) {
  EXPECT_THAT(ShellWords("weir a 'b c' d=\"e\"f --g  # h"),
              testing::ElementsAre("weir", "a", "b c", "d=ef", "--g"));
  EXPECT_THAT(ShellWords("weir a > b"), testing::ElementsAre("weir", "a"));
  EXPECT_THAT(ShellWords("weir a 2> b"), testing::ElementsAre("weir", "a"));
}

}  // namespace weir::cli::documents_test
