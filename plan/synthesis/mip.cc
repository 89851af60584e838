// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/mip.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/child_program.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"

namespace weir::plan {

int MipModel::AddVariable(Variable variable) {
  variables.push_back(variable);
  return static_cast<int>(variables.size()) - 1;
}

int MipModel::AddBoolean() { return AddVariable({0, 1, true, 0}); }

void MipModel::AddRow(std::vector<std::pair<int, double>> terms, double lower,
                      double upper) {
  rows.push_back({std::move(terms), lower, upper});
}

double LargestViolation(const MipModel& model,
                        const std::vector<double>& values) {
  double worst = 0;
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const MipModel::Variable& variable = model.variables[i];
    worst = std::max(
        {worst, variable.lower - values[i], values[i] - variable.upper});
    if (variable.is_integer) {
      worst = std::max(worst, std::abs(values[i] - std::round(values[i])));
    }
  }
  for (const MipModel::Row& row : model.rows) {
    double sum = 0;
    for (const auto& [variable, factor] : row.terms) {
      sum += factor * values[variable];
    }
    worst = std::max({worst, row.lower - sum, sum - row.upper});
  }
  return worst;
}

std::string Describe(const MipResult& result) {
  switch (result.state) {
    case MipResult::State::kOptimal:
      return "optimal, proven";
    case MipResult::State::kFeasible:
      if (result.bound > 0) {
        return absl::StrCat("feasible, not proven: at most ",
                            FormatPercent(result.objective / result.bound - 1),
                            " above the optimum");
      }
      return "feasible, not proven";
    case MipResult::State::kInfeasible:
      return "infeasible, proven";
    case MipResult::State::kUnknown:
      break;
  }
  return "no result within the time limit";
}

namespace {

// CBC's improvement threshold and gaps are absolute: practically zero.
constexpr absl::string_view kExact = "1e-9";
// The most that CBC's tolerances, 1e-6 per variable, may add up to in a row.
constexpr double kMaxViolation = 1e-3;

absl::Status CheckModel(const MipModel& model, const MipOptions& options) {
  const int num_variables = static_cast<int>(model.variables.size());
  for (const MipModel::Variable& variable : model.variables) {
    // Negated, to reject NaN.
    if (!(variable.lower <= variable.upper) || !std::isfinite(variable.cost)) {
      return absl::InvalidArgumentError(
          "a variable has crossed bounds or an invalid cost");
    }
  }
  for (const MipModel::Row& row : model.rows) {
    for (const auto& [variable, factor] : row.terms) {
      if (variable < 0 || variable >= num_variables || !std::isfinite(factor)) {
        return absl::InvalidArgumentError(
            "a row has an unknown variable or an invalid number");
      }
    }
  }
  if (!options.start.empty() &&
      options.start.size() != model.variables.size()) {
    return absl::InvalidArgumentError("the start has different variables");
  }
  return absl::OkStatus();
}

void AppendBounds(int i, const MipModel::Variable& variable,
                  std::string* text) {
  const auto bound = [&](absl::string_view kind, double value) {
    absl::StrAppendFormat(text, " %s BND x%d %.17g\n", kind, i, value);
  };
  const bool has_lower = std::isfinite(variable.lower);
  const bool has_upper = std::isfinite(variable.upper);
  if (!has_lower && !has_upper) {
    absl::StrAppendFormat(text, " FR BND x%d\n", i);
    return;
  }
  if (!has_lower) absl::StrAppendFormat(text, " MI BND x%d\n", i);
  if (has_lower) bound("LO", variable.lower);
  if (has_upper) bound("UP", variable.upper);
  // Without this, some readers limit integers to 1.
  if (!has_upper) absl::StrAppendFormat(text, " PL BND x%d\n", i);
}

// Returns the model in MPS format. A row r with both bounds is split into
// "l<r>" and "u<r>".
std::string MpsOf(const MipModel& model) {
  std::string rows = "NAME weir FREE\nROWS\n N obj\n", sides = "RHS\n";
  std::vector<std::vector<std::pair<std::string, double>>> columns(
      model.variables.size());
  for (size_t r = 0; r < model.rows.size(); ++r) {
    const MipModel::Row& row = model.rows[r];
    const auto add = [&](char sense, char letter, double side) {
      const std::string name = absl::StrCat(std::string(1, letter), r);
      absl::StrAppendFormat(&rows, " %c %s\n", sense, name);
      absl::StrAppendFormat(&sides, " RHS %s %.17g\n", name, side);
      for (const auto& [variable, factor] : row.terms) {
        columns[variable].emplace_back(name, factor);
      }
    };
    if (row.lower == row.upper) {
      add('E', 'e', row.lower);
      continue;
    }
    if (std::isfinite(row.lower)) add('G', 'l', row.lower);
    if (std::isfinite(row.upper)) add('L', 'u', row.upper);
  }
  std::string body = "COLUMNS\n", bounds = "BOUNDS\n";
  for (size_t i = 0; i < columns.size(); ++i) {
    const MipModel::Variable& variable = model.variables[i];
    if (variable.is_integer) body += " M MARKER INTORG\n";
    // Written even if it is 0, as a column must have an entry.
    absl::StrAppendFormat(&body, " x%d obj %.17g\n", i, variable.cost);
    for (const auto& [row, factor] : columns[i]) {
      absl::StrAppendFormat(&body, " x%d %s %.17g\n", i, row, factor);
    }
    if (variable.is_integer) body += " M MARKER INTEND\n";
    AppendBounds(static_cast<int>(i), variable, &bounds);
  }
  // Adds the quotes that the format requires.
  body = absl::StrReplaceAll(body, {{"MARKER INT", "'MARKER' 'INT"},
                                    {"ORG\n", "ORG'\n"},
                                    {"END\n", "END'\n"}});
  return absl::StrCat(rows, body, sides, bounds, "ENDATA\n");
}

std::string StartOf(const std::vector<double>& start) {
  std::string text = "Stopped on time - objective value 0\n";
  for (size_t i = 0; i < start.size(); ++i) {
    absl::StrAppendFormat(&text, "%7d x%d %.17g 0\n", i, i, start[i]);
  }
  return text;
}

// Parses the values of a solution file without its first line. "**" marks
// values out of bounds.
absl::StatusOr<std::vector<double>> ValuesOf(absl::string_view text,
                                             size_t num_variables) {
  std::vector<double> values(num_variables, 0);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipWhitespace());
    const size_t first = !words.empty() && words[0] == "**" ? 1 : 0;
    if (words.size() < first + 3 || words[first + 1].empty() ||
        words[first + 1][0] != 'x') {
      continue;
    }
    size_t variable = 0;
    double value = 0;
    if (!absl::SimpleAtoi(words[first + 1].substr(1), &variable) ||
        variable >= num_variables ||
        !absl::SimpleAtod(words[first + 2], &value)) {
      return absl::AbortedError(
          absl::StrCat("CBC's solution cannot be parsed: ", line));
    }
    values[variable] = value;
  }
  return values;
}

// Parses "Lower bound:   8.25" at the end of CBC's log.
std::optional<double> BoundOf(absl::string_view log) {
  constexpr absl::string_view kLabel = "\nLower bound:";
  const size_t at = log.rfind(kLabel);
  if (at == absl::string_view::npos) return {};
  absl::string_view rest = log.substr(at + kLabel.size());
  rest = rest.substr(0, rest.find('\n'));
  double bound = 0;
  if (!absl::SimpleAtod(rest, &bound) || std::abs(bound) > 1e40) return {};
  return bound;
}

absl::Status TakeValues(const MipModel& model, absl::string_view lines,
                        MipResult* result) {
  ASSIGN_OR_RETURN(std::vector<double> values,
                   ValuesOf(lines, model.variables.size()));
  result->objective = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (model.variables[i].is_integer) values[i] = std::round(values[i]);
    result->objective += model.variables[i].cost * values[i];
  }
  if (LargestViolation(model, values) > kMaxViolation) {
    return absl::AbortedError("CBC's solution violates the model");
  }
  result->values = std::move(values);
  return absl::OkStatus();
}

// Reads CBC's solution file: the state, then a line for each variable.
absl::Status ReadSolution(const MipModel& model, absl::string_view solution,
                          absl::string_view log, MipResult* result) {
  using State = MipResult::State;
  const size_t end = solution.find('\n');
  const absl::string_view state = solution.substr(0, end);
  const absl::string_view lines =
      end == absl::string_view::npos ? "" : solution.substr(end);
  if (absl::StartsWith(state, "Optimal")) {
    RETURN_IF_ERROR(TakeValues(model, lines, result));
    result->state = State::kOptimal;
    result->bound = result->objective;
    return absl::OkStatus();
  }
  if (absl::StrContains(state, "nfeasible")) {
    result->state = State::kInfeasible;
    result->bound = kInfinity;
    return absl::OkStatus();
  }
  if (absl::StartsWith(state, "Unbounded")) {
    return absl::InvalidArgumentError("the model is unbounded");
  }
  if (!absl::StartsWith(state, "Stopped")) {
    return absl::AbortedError(
        absl::StrCat("CBC's output cannot be parsed: ", state));
  }
  result->bound = BoundOf(log).value_or(-kInfinity);
  if (absl::StrContains(state, "no integer solution")) return absl::OkStatus();
  RETURN_IF_ERROR(TakeValues(model, lines, result));
  result->state = State::kFeasible;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MipResult> SolveMip(const MipModel& model,
                                   const MipOptions& options) {
  RETURN_IF_ERROR(CheckModel(model, options));
  if (FindProgram(options.solver).empty()) {
    return absl::UnavailableError(
        absl::StrCat(options.solver,
                     ": not found on PATH, but needed for mixed-integer "
                     "problems (Debian: coinor-cbc)"));
  }
  ASSIGN_OR_RETURN(const ScratchFile mps, ScratchFile::Make(MpsOf(model)));
  ASSIGN_OR_RETURN(const ScratchFile start,
                   ScratchFile::Make(StartOf(options.start)));
  ASSIGN_OR_RETURN(const ScratchFile solution_file, ScratchFile::Make());
  ASSIGN_OR_RETURN(const ScratchFile log_file, ScratchFile::Make());
  std::vector<std::string> words = {options.solver, mps.path()};
  if (!options.start.empty()) {
    words.insert(words.end(), {"-mips", start.path()});
  }
  for (absl::string_view option : {"-increment", "-allow", "-ratio"}) {
    words.insert(words.end(), {std::string(option), std::string(kExact)});
  }
  words.insert(
      words.end(),
      {"-timeMode", "elapsed", "-sec", absl::StrFormat("%.3f", options.seconds),
       "-printingOptions", "all", "-solve", "-solution", solution_file.path()});
  ASSIGN_OR_RETURN(const ChildEnd child,
                   RunChildProgram(words, log_file.path(),
                                   options.seconds + options.grace_seconds,
                                   /*error_path=*/"", options.tick));
  MipResult result;
  result.was_killed = child.was_killed;
  result.seconds = child.seconds;
  // If the solver was killed, its files may be incomplete.
  if (child.was_killed) return result;
  ASSIGN_OR_RETURN(const std::string log, ReadFile(log_file.path()));
  ASSIGN_OR_RETURN(const std::string solution, ReadFile(solution_file.path()));
  if (child.exit_code != 0 || solution.empty()) {
    return absl::AbortedError(absl::StrFormat(
        "%s: ended with exit code %d and without a result: %s", options.solver,
        child.exit_code,
        log.substr(log.size() - std::min<size_t>(log.size(), 300))));
  }
  RETURN_IF_ERROR(ReadSolution(model, solution, log, &result));
  return result;
}

}  // namespace weir::plan
