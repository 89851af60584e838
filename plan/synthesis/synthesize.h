// SPDX-License-Identifier: Apache-2.0
// A better order than any named system's, and how far from the best it can be.
#ifndef WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_
#define WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/synthesis/named_orders.h"
#include "plan/synthesis/order_problem.h"

namespace weir {

enum class SynthesisMethod {
  kAuto,   // local search; the program where it is small and CBC is there
  kMip,    // the program from the best named order
  kLocal,  // local search alone: the same bytes on any machine
};

struct SynthesisOptions {
  SynthesisMethod method = SynthesisMethod::kAuto;
  double seconds = 20;    // for CBC, all placements together
  int64_t num_moves = 0;  // of the local search; 0: by the size
  uint64_t seed = 1;
  std::string solver = "cbc";
  // Called now and then from this thread: what is done, and the part of it.
  std::function<void(const std::string& text, double done)> progress = {};
};

struct Synthesis {
  Schedule schedule;
  std::string source;  // "local search from zb-1p", "zb-h1", ...
  double value = 0;    // of the objective
  double makespan = 0, span = 0;
  std::vector<double> peak_held;  // [rank]
  std::vector<NamedOrder> named;  // see NamedOrders
  // No order on any placement is below; where it is from.
  double bound = 0;
  std::string bound_reason;
  bool is_proven = false;  // value is the bound, rounding aside
  std::string mip;         // what CBC said; empty: not asked
  std::vector<std::string> notes;
  bool interrupted = false;  // the best so far

  double gap() const { return bound > 0 ? value / bound - 1 : 0; }
  const NamedOrder* best_named() const;  // null: none fits
};

// Never worse than the best named order that fits. Deterministic but for what
// CBC has found when its time is up. InvalidArgument as CheckOrderProblem and
// where it needs too much (synthesis_size.h); Unavailable when kMip lacks CBC;
// Cancelled when interrupted before an order that fits was found.
absl::StatusOr<Synthesis> Synthesize(const OrderProblem& problem,
                                     const SynthesisOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_SYNTHESIS_SYNTHESIZE_H_
