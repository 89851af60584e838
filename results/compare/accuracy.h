// SPDX-License-Identifier: Apache-2.0
// Comparison of predictions with measured runs.
#ifndef WEIR_RESULTS_COMPARE_ACCURACY_H_
#define WEIR_RESULTS_COMPARE_ACCURACY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/error_statistics.h"
#include "results/compare/calibration.h"
#include "results/compare/measured_table.h"

namespace weir::results {

// One measured number and its prediction. A run may have several.
struct ComparedNumber {
  int line = 0;          // number in the file
  std::string row;       // the run's name
  std::string quantity;  // a column of results/compare/quantities.h
  double measured = 0;
  double predicted = 0;
  bool fits_memory = true;
  // The interval that contains the value in nine cases of ten; 0: none.
  double low = 0, high = 0;
  double memory_use = 0;  // predicted peak / capacity; 0: nothing limits it

  bool has_interval() const { return high > low; }
  bool inside() const { return low <= measured && measured <= high; }
  double error() const { return predicted / measured - 1; }
};

// A run of the file that was not compared.
struct SkippedRun {
  int line = 0;
  std::string row;
  std::string reason;
};

// A run that was measured not to fit in memory.
struct OutOfMemoryRun {
  int line = 0;
  std::string row;
  bool predicted_to_fit = false;
  double memory_use = 0;  // as in ComparedNumber
};

struct Accuracy {
  std::string label;  // the file
  int num_runs = 0;
  int num_left_out = 0;                 // by conditions that the user set
  int num_not_reached = 0;              // not run because of an interrupt
  std::vector<ComparedNumber> numbers;  // in the order of the file
  std::vector<SkippedRun> skipped;
  std::vector<OutOfMemoryRun> out_of_memory;
  std::vector<MeasuredRow> runs;                // of the file, in its order
  std::optional<Calibration> calibration = {};  // absent: not asked for
};

// The errors of one quantity; ErrorsByQuantity returns quantities in order of
// first appearance.
struct QuantityErrors {
  std::string quantity;
  std::vector<const ComparedNumber*> numbers;
  ErrorStatistics statistics;
  int num_intervals = 0;
  int num_inside = 0;  // of num_intervals
};
std::vector<QuantityErrors> ErrorsByQuantity(const Accuracy& accuracy);

// Returns the largest mean absolute error of a quantity; 0 without numbers.
double LargestMeanError(const Accuracy& accuracy);

// Returns a table of the worst five rows of each quantity, or of all rows,
// worst first, followed by statistics, by runs that were not compared, with
// reasons, and by proposed parameters.
std::string AccuracyTable(const Accuracy& accuracy, bool all);

// Returns everything as a JSON object, in the order of the file.
std::string AccuracyJson(const Accuracy& accuracy);

// Returns everything as CSV with the columns
// line,row,quantity,measured,predicted,error,fits_memory,reason,low,high,
// memory_use, in
// the order of the file. The interval is empty if there is none.
std::string AccuracyCsv(const Accuracy& accuracy);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_ACCURACY_H_
