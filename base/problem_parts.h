// SPDX-License-Identifier: Apache-2.0
// Takes error messages apart for programs that read them. The messages of weir
// have the form of base/problems.h: "FILE[:LINE[:COLUMN]]: FIELD is FOUND,
// expected EXPECTED".
#ifndef WEIR_BASE_PROBLEM_PARTS_H_
#define WEIR_BASE_PROBLEM_PARTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// Parts that a message does not have are empty, or 0.
struct ProblemParts {
  std::string message;  // the whole line
  // The file, preset or command ("weir simulate", "command line").
  std::string file;
  int line = 0, column = 0;  // from 1
  std::string field;         // "nodes[0].nics[1].bytes_per_second", "--pp"
  std::string found;
  std::string expected;
  std::vector<std::string> details;  // lines that explain the message
};

ProblemParts SplitProblem(absl::string_view line);

// Splits a message of several problems, one per line. Lines that begin with two
// spaces are details of the line above.
std::vector<ProblemParts> SplitProblems(absl::string_view text);

}  // namespace weir

#endif  // WEIR_BASE_PROBLEM_PARTS_H_
