// SPDX-License-Identifier: Apache-2.0
// A row of a table of measured runs as the question to the simulator and what
// was measured.
#ifndef WEIR_CLI_MEASURED_RUN_H_
#define WEIR_CLI_MEASURED_RUN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags.h"
#include "results/measured_table.h"
#include "results/quantities.h"
#include "scenarios/scenario.h"

namespace weir {

struct MeasuredNumber {
  const Quantity* quantity = nullptr;
  double value = 0;  // in the quantity's unit
};

struct MeasuredRun {
  int line = 0;
  std::string name;  // empty: nobody named it
  ScenarioFlags flags;
  FlopsFormula formula = FlopsFormula::kNone;
  std::vector<MeasuredNumber> numbers;
  bool misfit = false;  // measured not to fit in memory: "OOM"
};

// InvalidArgument for columns that mean nothing, all at once: a column is an
// option of "simulate" without its dashes, a field of weir.Transformer, a
// quantity, flops_formula, name, scenario, or begins with "note".
absl::Status CheckColumns(const MeasuredTable& table);

// `base` says what the row does not. InvalidArgument, all at once, "<file>:
// <line>: <column> is x, expected y"; `run` then holds what could be read.
absl::Status ReadRun(const MeasuredTable& table, const MeasuredRow& row,
                     const ScenarioFlags& base, MeasuredRun* run);

}  // namespace weir

#endif  // WEIR_CLI_MEASURED_RUN_H_
