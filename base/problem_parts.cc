// SPDX-License-Identifier: Apache-2.0
#include "base/problem_parts.h"

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

}  // namespace

ProblemParts SplitProblem(absl::string_view line) {
  ProblemParts parts;
  parts.message = std::string(line);
  absl::string_view rest = line;
  SplitSource(&rest, &parts);
  constexpr absl::string_view kExpected = ", expected ";
  const size_t expected = rest.find(kExpected);
  if (expected == absl::string_view::npos) return parts;
  parts.expected = std::string(rest.substr(expected + kExpected.size()));
  rest = rest.substr(0, expected);
  constexpr absl::string_view kFound = "found ";
  constexpr absl::string_view kIs = "is ", kHas = "has ";
  // The field is one word, which may be missing.
  const size_t space = rest.find(' ');
  if (space != absl::string_view::npos) {
    const absl::string_view after = rest.substr(space + 1);
    if (absl::StartsWith(after, kIs) || absl::StartsWith(after, kHas)) {
      parts.field = std::string(rest.substr(0, space));
      rest = after;
    }
  }
  const size_t found = rest.rfind(kFound);
  if (found != absl::string_view::npos) {
    rest = rest.substr(found + kFound.size());
  } else if (!absl::ConsumePrefix(&rest, kIs)) {
    absl::ConsumePrefix(&rest, kHas);
  }
  parts.found = std::string(rest);
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
