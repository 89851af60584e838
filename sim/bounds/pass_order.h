// SPDX-License-Identifier: Apache-2.0
// The passes of a schedule in topological order, prepared once per schedule.
// The longest path through them then takes one or two nanoseconds per pass for
// any costs.
#ifndef WEIR_SIM_BOUNDS_PASS_ORDER_H_
#define WEIR_SIM_BOUNDS_PASS_ORDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schedules/schedule.h"

namespace weir::sim {

// Passes of one rank that take the same seconds, represented by one of them.
struct PassKind {
  int rank = 0;
  schedules::Action action{};
  std::optional<schedules::Action> overlapped = {};  // runs together with it
};

// Transfers that take the same seconds.
struct HopKind {
  int from_rank = 0, to_rank = 0;
  int stage = 0;  // the sender
  bool forward = true;
  int num_microbatches = 1;
};

class PassOrder {
 public:
  // Builds the dependencies of PipelineGraph, except for reductions and steps.
  // If `blocking`, ranks go on only together; see exchange.h. Requires:
  // ValidateSchedule(schedule) is OK.
  PassOrder(const schedules::Schedule& schedule, bool blocking);

  // Returns false if passes wait for each other, which blocking transfers can
  // cause.
  bool complete() const { return complete_; }

  const std::vector<PassKind>& passes() const { return passes_; }
  const std::vector<HopKind>& hops() const { return hops_; }
  int64_t num_nodes() const { return std::ssize(nodes_); }

  // Scratch memory of evaluations; may be reused for other orders.
  struct Buffers {
    std::vector<double> ends, hop_seconds, pass_seconds;
  };
  // Returns the seconds at which all ranks have ended their passes and tails,
  // and offloads and reloads have ended. A tail ([rank], or empty) follows the
  // rank's passes. `pass_seconds` and `hop_seconds` are in the order of
  // passes() and hops(). Does not allocate if `buffers` has been used before.
  // Requires: complete().
  double Makespan(std::span<const double> pass_seconds,
                  std::span<const double> hop_seconds,
                  std::span<const double> tail_seconds, Buffers* buffers) const;

  // After Makespan, with its buffers: return the seconds at which a rank has
  // ended its last pass, apart from sends, and at which the last pass that
  // computes weight gradients of its stage begins; 0 if there is none.
  double EndOfPasses(int rank, const Buffers& buffers) const;
  double StartOfLastGradient(int rank, int stage, const Buffers& buffers) const;

 private:
  // Ends at max(end of chain, end of input + its hop) + its seconds. Node 0 is
  // the start of the run; kinds 0 take no time.
  struct Node {
    int32_t chain = 0, input = 0;
    int32_t hop = 0, pass = 0;
  };
  friend class PassOrderBuilder;

  bool complete_ = true;
  std::vector<Node> nodes_;
  std::vector<int32_t> last_of_rank_;  // [rank]
  std::vector<int32_t> last_of_channels_;
  // The last passes of ranks, and those that complete stages' gradients, by
  // rank and stage.
  std::vector<int32_t> last_pass_;  // [rank]
  absl::flat_hash_map<std::pair<int, int>, int32_t> last_gradient_;
  std::vector<PassKind> passes_;
  std::vector<HopKind> hops_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_PASS_ORDER_H_
