// SPDX-License-Identifier: Apache-2.0
// Generates tables in comma-separated values.
#ifndef WEIR_TESTS_FUZZ_GENERATE_TABLE_H_
#define WEIR_TESTS_FUZZ_GENERATE_TABLE_H_

#include <string>
#include <vector>

#include "results/compare/measured_columns.pb.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

struct GeneratedTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  std::string ToCsv(Choices* choices) const;
};

// Generates arbitrary cells and column names.
GeneratedTable GenerateTable(Choices* choices);

// Generates measured runs and the meaning of their columns.
struct MeasuredRuns {
  GeneratedTable table;
  MeasuredColumns columns;
};
MeasuredRuns GenerateMeasuredRuns(Choices* choices);

// Generates a timeline in the format of results/compare/measured_timeline.h.
std::string GenerateTimelineCsv(Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_TABLE_H_
