// SPDX-License-Identifier: Apache-2.0
#include "base/problem_parts.h"

#include <re2/re2.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weir {
namespace {

// Removes ":<number>" from the end of `text` and returns the number, or 0.
int TakeNumber(absl::string_view* text) {
  const size_t colon = text->rfind(':');
  int number = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(text->substr(colon + 1), &number) || number < 1) {
    return 0;
  }
  *text = text->substr(0, colon);
  return number;
}

// Returns true if the text before ": " names a source and is not the beginning
// of a sentence.
bool NamesSource(absl::string_view text) {
  return !text.empty() &&
         (!absl::StrContains(text, ' ') || text == "command line" ||
          text == "standard output" || absl::StartsWith(text, "weir ") ||
          absl::StartsWith(text, "weir-calibrate "));
}

void SplitSource(absl::string_view* rest, ProblemParts* parts) {
  const size_t end = rest->find(": ");
  if (end == absl::string_view::npos) return;
  absl::string_view source = rest->substr(0, end);
  if (!NamesSource(source)) return;
  const int last = TakeNumber(&source);
  const int first = last > 0 ? TakeNumber(&source) : 0;
  parts->line = first > 0 ? first : last;
  parts->column = first > 0 ? last : 0;
  parts->file = std::string(source);
  *rest = rest->substr(end + 2);
}

// Takes "a, expected b; did you mean c?" apart; `text` begins with what was
// found.
void SplitValues(const std::string& text, ProblemParts* parts) {
  static const RE2& values = *new RE2(
      "(?s)(?:.*\\bfound )?(.*?)[,;] expected (.*?)(?:; did you mean .*)?");
  RE2::FullMatch(text, values, &parts->found, &parts->expected);
}

}  // namespace

ProblemParts SplitProblem(absl::string_view line) {
  static const RE2& field_and_values = *new RE2(
      "(?s)(?:--[a-z-]+: )?((?:--)?[A-Za-z_][\\w.\\[\\]/-]*) "
      "(?:(?:is|are|has|lists) (.*)|(?:cannot|requires) .*)");
  // A field or flag, its value, and a message about the value.
  static const RE2& field_of_value = *new RE2(
      "(?s)((?:--)?[A-Za-z_][\\w.\\[\\]/-]*) (\\S+): is .*?[,;] expected "
      "(.*?)(?:; did you mean .*)?");
  static const RE2& unknown_option = *new RE2("unknown option (-[^\\s;,]*)");
  static const RE2& unexpected_word =
      *new RE2("(?:unknown command|unexpected argument) ([^\\s;,]+)");
  static const RE2& value = *new RE2("(?s)(?:is |has )?(.*)");
  ProblemParts parts;
  parts.message = std::string(line);
  absl::string_view after_source = line;
  SplitSource(&after_source, &parts);
  const std::string rest(after_source);
  std::string values;
  if (RE2::FullMatch(rest, field_of_value, &parts.field, &parts.found,
                     &parts.expected)) {
    return parts;
  }
  if (RE2::FullMatch(rest, field_and_values, &parts.field, &values)) {
    SplitValues(values, &parts);
  } else if (!RE2::PartialMatch(rest, unknown_option, &parts.field) &&
             !RE2::PartialMatch(rest, unexpected_word, &parts.found) &&
             RE2::FullMatch(rest, value, &values)) {
    SplitValues(values, &parts);
  }
  return parts;
}

std::vector<ProblemParts> SplitProblems(absl::string_view text) {
  std::vector<ProblemParts> all;
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::ConsumePrefix(&line, "  ") && !all.empty()) {
      all.back().details.emplace_back(line);
    } else {
      all.push_back(SplitProblem(line));
    }
  }
  return all;
}

}  // namespace weir
