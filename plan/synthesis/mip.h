// SPDX-License-Identifier: Apache-2.0
// Mixed-integer linear problems, solved by CBC (Debian's coinor-cbc) in a child
// process under a hard time limit. Results state what is proven.
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

namespace weir::plan {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Minimizes the sum of cost * variable.
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
  // After its time limit, the solver may write its result for this long. Then
  // it is killed with all processes that it started.
  double grace_seconds = 2;
  std::string solver = "cbc";  // found on PATH
  // One value per variable to start from; may be empty.
  std::vector<double> start = {};
  // Called at least ten times a second while the solver runs.
  std::function<void()> tick = {};
};

struct MipResult {
  enum class State {
    kOptimal,     // values are proven optimal
    kFeasible,    // values are feasible; `bound` is a lower bound
    kInfeasible,  // proven: no feasible values exist
    kUnknown,     // neither within the time limit
  };
  State state = State::kUnknown;
  // For kOptimal and kFeasible, with the eight digits that CBC writes.
  std::vector<double> values;
  double objective = kInfinity;  // value for `values`
  double bound = -kInfinity;     // proven lower bound of feasible values
  bool was_killed = false;       // exceeded its seconds and its grace period
  double seconds = 0;            // time taken

  bool has_values() const { return !values.empty(); }
};

// Returns for example "optimal, proven" or "feasible, not proven: at most 3.1 %
// above the optimum".
std::string Describe(const MipResult& result);

// Returns Unavailable, with what to install, if the solver is not installed;
// InvalidArgument for a model that is malformed or unbounded; Aborted if the
// solver dies or its output cannot be parsed; Cancelled after Ctrl-C. Requires:
// the calling thread lives as long as the call, as the child dies with it.
absl::StatusOr<MipResult> SolveMip(const MipModel& model,
                                   const MipOptions& options = {});

// Returns the largest violation of a bound, a row or integrality by `values`.
double LargestViolation(const MipModel& model,
                        const std::vector<double>& values);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_MIP_H_
