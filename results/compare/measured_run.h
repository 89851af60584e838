// SPDX-License-Identifier: Apache-2.0
// A row of a table of measured runs: the settings of its simulation, its
// measured values, and their comparison with the simulation.
#ifndef WEIR_RESULTS_COMPARE_MEASURED_RUN_H_
#define WEIR_RESULTS_COMPARE_MEASURED_RUN_H_

#include <google/protobuf/message.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "results/compare/accuracy.h"
#include "results/compare/measured_table.h"
#include "results/compare/quantities.h"
#include "results/result.pb.h"

namespace weir::results {

// A setting of a simulation that a column may give.
struct RunSetting {
  std::vector<std::string> columns;  // all of its names
  // Sets the value. The error message is "is x, expected y".
  std::function<absl::Status(const std::string& text)> set;
};

// Returns a setting for each field of a message. Only fields of type bool,
// uint32 and double can be set. `message` is called when one is set.
std::vector<RunSetting> SettingsOfFields(
    const google::protobuf::Descriptor& descriptor,
    const std::function<google::protobuf::Message*()>& message);

struct MeasuredNumber {
  const Quantity* quantity = nullptr;
  double value = 0;  // in the quantity's unit
};

struct MeasuredRun {
  int line = 0;
  std::string name;      // empty: unnamed
  std::string scenario;  // preset or file; empty: not given
  FlopsFormula formula = FlopsFormula::kNone;
  std::vector<MeasuredNumber> numbers;
  bool out_of_memory = false;  // measured not to fit in memory: "OOM"
};

// Returns InvalidArgument with all columns that weir does not know, or if no
// column is measured. Known columns are those of settings, quantities,
// flops_formula, name, scenario, and names that begin with "note".
absl::Status CheckColumns(const MeasuredTable& table,
                          const std::vector<RunSetting>& settings);

// Reads a row; calls the settings that it has. If several have the same column,
// calls the first one. Returns InvalidArgument with all problems,
// "<file>:<line>: <column> is x, expected y"; `run` then contains what could be
// read.
absl::Status ReadRun(const MeasuredTable& table, const MeasuredRow& row,
                     const std::vector<RunSetting>& settings, MeasuredRun* run);

// Adds the measured values of a run and their predictions to `accuracy`.
// `result` is that of its simulation, or the reason why there is none
// (Cancelled if the simulation was not reached). The basis has the run's
// formula.
void CompareRun(const MeasuredRun& run, const absl::StatusOr<Result>& result,
                const FlopsBasis& basis, Accuracy* accuracy);

// Returns the measured time of a batch: from the first measured value that is a
// time, or one that is inversely proportional to it, such as a throughput.
// Absent if there is none.
std::optional<double> MeasuredBatchSeconds(const MeasuredRun& run,
                                           const Result& result,
                                           const FlopsBasis& basis);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_MEASURED_RUN_H_
