// SPDX-License-Identifier: Apache-2.0
// Synthesis of an order better than those of the named systems, with a bound on
// its distance from the optimum.
#ifndef WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_
#define WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/synthesis/named_orders.h"
#include "plan/synthesis/order_problem.h"

namespace weir::plan {

enum class SynthesisMethod {
  kAuto,   // local search, and the program if small and CBC is there
  kMip,    // the program, from the best named order
  kLocal,  // local search only: the same bytes on any machine
};

struct SynthesisOptions {
  SynthesisMethod method = SynthesisMethod::kAuto;
  double seconds = 20;    // for CBC, over all placements
  int64_t num_moves = 0;  // for the local search; 0: depends on the size
  uint64_t seed = 1;
  std::string solver = "cbc";
  // Called from time to time by this thread with the step and its fraction
  // done.
  std::function<void(const std::string& text, double done)> progress = {};
};

struct Synthesis {
  schedules::Schedule schedule;
  std::string source;  // "local search from zb-1p", "zb-h1", ...
  double value = 0;    // objective
  double makespan = 0, span = 0;
  std::vector<double> peak_held;  // [rank]
  std::vector<NamedOrder> named;  // see NamedOrders
  // A lower bound for all orders on all placements, and its origin.
  double bound = 0;
  std::string bound_reason;
  bool is_proven = false;  // value equals the bound, up to rounding
  std::string mip;         // result of CBC; empty: it did not run
  std::vector<std::string> notes;
  bool interrupted = false;  // this is the best so far

  double gap() const { return bound > 0 ? value / bound - 1 : 0; }
  const NamedOrder* best_named() const;  // null: none fits
};

// Returns an order that is never worse than the best named order that fits.
// Deterministic, except for what CBC has found at its time limit.
// Returns InvalidArgument as CheckOrderProblem and for problems that are too
// large (synthesis_size.h); Unavailable if kMip needs CBC and it is missing;
// Cancelled if interrupted before an order that fits was found.
absl::StatusOr<Synthesis> Synthesize(const OrderProblem& problem,
                                     const SynthesisOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_
