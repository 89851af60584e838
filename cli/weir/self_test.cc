// SPDX-License-Identifier: Apache-2.0
// check                                     expected  found    result
// gpipe: (m + p - 1) (f + b) seconds        33        33       ok
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

constexpr double kTolerance = 1e-9;  // relative
constexpr char kPreset[] = "pipedream-2bw-gpt-2.2b";

// What one check compares.
struct Comparison {
  double expected = 0, found = 0;
};

struct SelfCheck {
  std::string name;
  std::function<absl::StatusOr<Comparison>()> run;
};

// Returns the seconds of a batch of 8 microbatches on 4 ranks.
absl::StatusOr<double> BatchSeconds(const std::string& schedule,
                                    const std::string& costs) {
  Scenario scenario;
  scenario.set_schedule(schedule);
  scenario.mutable_parallelism()->set_pipeline(4);
  scenario.set_num_microbatches(8);
  ASSIGN_OR_RETURN(*scenario.mutable_costs(), scenarios::ParseCosts(costs));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario("self-test", scenario));
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(resolved));
  return result.batch_seconds();
}

absl::StatusOr<Comparison> ComparePreset() {
  ASSIGN_OR_RETURN(Scenario scenario, scenarios::LoadScenario(kPreset));
  scenario.set_schedule("1f1b");
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   scenarios::ResolveScenario(kPreset, scenario));
  ASSIGN_OR_RETURN(const Result full, sim::Simulate(resolved));
  sim::FastSimulator fast;
  ASSIGN_OR_RETURN(const sim::FastEstimate estimate, fast.Estimate(resolved));
  return Comparison{full.batch_seconds(), estimate.batch_seconds};
}

std::vector<SelfCheck> Checks() {
  const auto closed_form = [](const char* schedule, const char* costs,
                              double expected) {
    return [=]() -> absl::StatusOr<Comparison> {
      ASSIGN_OR_RETURN(const double found, BatchSeconds(schedule, costs));
      return Comparison{expected, found};
    };
  };
  return {
      {"gpipe: (m + p - 1) (f + b)", closed_form("gpipe", "f=1,b=2", 11 * 3)},
      {"1f1b: (m + p - 1) (f + b)", closed_form("1f1b", "f=1,b=2", 11 * 3)},
      {"interleaved-1f1b v=2: (m + (p - 1) / v) (f + b)",
       closed_form("interleaved-1f1b:v=2", "f=1,b=2", (8 + 1.5) * 3)},
      {"zb-h1: m (f + i + w) + (p - 1) f",
       closed_form("zb-h1", "f=1,i=1,w=1", 8 * 3 + 3)},
      {absl::StrCat(kPreset, ": fast estimate equals simulation"),
       ComparePreset},
  };
}

}  // namespace

int RunSelfTest(const Flags& flags) {
  TextTable table;
  table.header = {"check", "expected", "found", "result"};
  table.left = {true, false, false, true};
  int num_failed = 0;
  for (const SelfCheck& check : Checks()) {
    const absl::StatusOr<Comparison> outcome = check.run();
    if (!outcome.ok()) {
      ++num_failed;
      table.rows.push_back(
          {check.name, "", "", std::string(outcome.status().message())});
      continue;
    }
    const bool ok = std::abs(outcome->found - outcome->expected) <=
                    kTolerance * std::abs(outcome->expected);
    if (!ok) ++num_failed;
    table.rows.push_back({check.name, absl::StrCat(outcome->expected),
                          absl::StrCat(outcome->found), ok ? "ok" : "FAILED"});
  }
  const absl::Status printed = PrintResult(absl::StrCat(
      PrintTable(table), "\n",
      num_failed == 0 ? "weir works on this machine\n"
                      : absl::StrCat(num_failed,
                                     " checks failed: the installation is "
                                     "damaged, or weir has a bug\n")));
  if (!printed.ok()) return PrintError(printed, flags.output);
  return num_failed == 0 ? kExitOk : kExitInternal;
}

}  // namespace weir::cli
