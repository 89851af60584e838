// SPDX-License-Identifier: Apache-2.0
// A row of a table of measured runs: the scenario to simulate, and the measured
// values.
#ifndef WEIR_CLI_WEIR_MEASURED_RUN_H_
#define WEIR_CLI_WEIR_MEASURED_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "results/compare/measured_table.h"
#include "results/compare/quantities.h"
#include "scenarios/scenario.h"

namespace weir::cli {

struct MeasuredNumber {
  const results::Quantity* quantity = nullptr;
  double value = 0;  // in the quantity's unit
};

struct MeasuredRun {
  int line = 0;
  std::string name;  // empty: unnamed
  ScenarioFlags flags;
  results::FlopsFormula formula = results::FlopsFormula::kNone;
  std::vector<MeasuredNumber> numbers;
  bool out_of_memory = false;  // measured not to fit in memory: "OOM"
};

// Returns InvalidArgument with all columns that weir does not know, or if no
// column is measured. Known columns are the options of "simulate" without their
// dashes, the fields of weir.Transformer, quantities, flops_formula, name,
// scenario, and names that begin with "note".
absl::Status CheckColumns(const results::MeasuredTable& table);

// Reads a row. `base` specifies what the row does not. Returns InvalidArgument
// with all problems, "<file>:<line>: <column> is x, expected y"; `run` then
// contains what could be read.
absl::Status ReadRun(const results::MeasuredTable& table,
                     const results::MeasuredRow& row, const ScenarioFlags& base,
                     MeasuredRun* run);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_MEASURED_RUN_H_
