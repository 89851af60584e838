// SPDX-License-Identifier: Apache-2.0
// Mixed-integer linear problems, solved by CBC (Debian's coinor-cbc) in a child
// process under a hard time limit. What comes back says what is proven.
#ifndef WEIR_PLAN_SYNTHESIS_MIP_H_
#define WEIR_PLAN_SYNTHESIS_MIP_H_

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Minimises the sum of cost * variable.
struct MipModel {
  struct Variable {
    double lower = 0, upper = kInfinity;
    bool is_integer = false;
    double cost = 0;
  };
  // lower <= sum of coefficient * variable <= upper; each variable once.
  struct Row {
    std::vector<std::pair<int, double>> terms;
    double lower = -kInfinity, upper = kInfinity;
  };
  std::vector<Variable> variables;
  std::vector<Row> rows;

  int AddVariable(Variable variable);  // returns its number
  int AddBoolean();
  void AddRow(std::vector<std::pair<int, double>> terms, double lower,
              double upper = kInfinity);
};

struct MipOptions {
  double seconds = 20;
  // After its seconds the solver may write down what it has; then it, and all
  // that it started, is killed.
  double grace_seconds = 2;
  std::string solver = "cbc";  // found on PATH
  // One value for each variable: where to start; may be empty.
  std::vector<double> start = {};
  // Called at least ten times a second while the solver runs.
  std::function<void()> tick = {};
};

struct MipResult {
  enum class State {
    kOptimal,     // values are proven to be best
    kFeasible,    // values are legal; nothing is below `bound`
    kInfeasible,  // proven: there are no values
    kNoAnswer,    // neither within the time
  };
  State state = State::kNoAnswer;
  // kOptimal and kFeasible; to the eight digits that CBC writes.
  std::vector<double> values;
  double objective = kInfinity;  // of `values`
  double bound = -kInfinity;     // proven: no legal values are below
  bool was_killed = false;       // it outlived its seconds and its grace
  double seconds = 0;            // that it took

  bool has_values() const { return !values.empty(); }
};

// "optimal, proven", "feasible, not proven: at most 3.1 % above the optimum".
std::string Describe(const MipResult& result);

// Unavailable when the solver is not installed, with what to install;
// InvalidArgument for a model that is malformed or has no least value;
// Aborted when it dies or says what is not understood; Cancelled after Ctrl-C.
// To be called from a thread that lives as long as the call: the child
// dies with it.
absl::StatusOr<MipResult> SolveMip(const MipModel& model,
                                   const MipOptions& options = {});

// The most that `values` are outside of a bound, a row or the whole numbers.
double LargestViolation(const MipModel& model,
                        const std::vector<double>& values);

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_MIP_H_
